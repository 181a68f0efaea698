"""`pose-mcp`: tools for assistants over the files of one folder, by the Model Context Protocol (extra `[mcp]`)."""

import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

from pose.config import PresetName
from pose.errors import PoseError, UsageError
from pose.utils.options import REQUIRED, Options, argument
from pose.utils.presets import preset_names
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import command_parser, config_of

VIDEOS = (".mp4", ".mov", ".m4v", ".avi", ".mkv", ".webm")
MAX_SAMPLES = 200  # samples of one angle in an answer
MAX_EVENTS = 500
FOLDER_END = "-pose"  # end of the name of the folder that `run` writes

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class McpOptions(Options):
    """Options of `pose-mcp`."""

    folder: str = argument(REQUIRED, "the only folder in which the tools read and write", metavar="FOLDER")


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-mcp`."""
    about = "Serve five tools (run, list_people, angles, events, export) to an assistant, on standard input and output."
    options = config_of(McpOptions, parse_arguments(command_parser("pose-mcp", about, McpOptions), argv))
    server = make_server(Path(options.folder).expanduser())
    server.run()
    return 0


def make_server(folder: Path) -> Any:
    """Return the server of the tools; UsageError without the `folder`, PoseError without the library."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder")
    try:
        from mcp.server.mcpserver import MCPServer
    except ImportError as error:
        raise PoseError("pose-mcp needs mcp 2: pip install 'pose-run[mcp]'") from error
    server = MCPServer("pose", instructions="Human motion in videos. File names are relative to one folder.")
    tools = Tools(folder.resolve())
    for tool in (tools.run, tools.list_people, tools.angles, tools.events, tools.export):
        server.add_tool(_quiet(tool))
    return server


def _quiet(tool: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Keep what a tool prints from standard output, which carries the protocol, and errors to one line."""

    @wraps(tool)
    def called(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        with redirect_stdout(sys.stderr):
            try:
                return tool(*args, **kwargs)
            except PoseError as error:
                raise _tool_error(str(error)) from error

    return called


def _tool_error(text: str) -> Exception:
    from mcp.server.mcpserver.exceptions import ToolError

    return cast(Exception, ToolError(text))


class Tools:
    """The tools. All paths are names in one folder; results are folders with a `poses.npz`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _inside(self, name: str) -> Path:
        """Return a path of the folder; links that lead out of it are refused."""
        path = (self._folder / name).resolve()
        if not path.is_relative_to(self._folder):
            raise UsageError(f"{name}: is outside the folder of this server")
        return path

    def _result(self, name: str) -> Any:
        from pose import load

        path = self._inside(name)
        path = self._inside(f"{name}/poses.npz") if path.is_dir() else path
        if not path.is_file():
            raise UsageError(f"{name}: no such result; the tool run makes one of a video")
        return load(path)

    def run(self, video: str, preset: str = "fast", start: float = 0.0, end: float | None = None) -> dict[str, Any]:
        """Track all people of a video in 3D. Takes about as long as the video.

        Args:
            video: File name of the video in the folder.
            preset: fast, balanced, accurate, best or permissive.
            start: Start of the part to process, s.
            end: End of the part to process, s.

        Returns:
            The name of the result for the other tools, and its people.
        """
        from pose import Pipeline

        path = self._inside(video)
        if path.suffix.lower() not in VIDEOS or not path.is_file():
            there = sorted(one.name for one in self._folder.iterdir() if one.suffix.lower() in VIDEOS)
            raise UsageError(f"{video}: no such video; there are: {', '.join(there) or 'none'}")
        if preset not in preset_names():
            raise UsageError(f"preset {preset!r} is unknown; known: {', '.join(preset_names())}")
        out = self._inside(path.relative_to(self._folder).with_suffix("").as_posix() + FOLDER_END)
        pipeline = Pipeline.from_preset(cast(PresetName, preset))
        result = pipeline.process(path, start=start, end=float("inf") if end is None else end)
        out.mkdir(exist_ok=True)
        result.save(self._inside(f"{out}/poses.npz"), overwrite=True)
        return {"result": out.relative_to(self._folder).as_posix(), **_people(result)}

    def list_people(self, result: str) -> dict[str, Any]:
        """List the people of a result with times and body heights.

        Args:
            result: Name that the tool run returned, or a folder with a poses.npz.
        """
        return _people(self._result(result))

    def angles(self, result: str, person: int, angle: str | None = None) -> dict[str, Any]:
        """Return joint angles of a person in degrees: minimum, mean and maximum of all, or samples of one over time.

        Args:
            result: Name of the result.
            person: Id of the person.
            angle: Name of an angle, such as left_knee_flexion, for at most 200 samples over time.
        """
        import numpy as np

        loaded = self._result(result)
        found = loaded.angles([person])
        if angle is None:
            summary = {}
            for at, name in enumerate(found.names):
                values = found.degrees[0, :, at]
                values = values[np.isfinite(values)]
                if len(values):
                    numbers = (values.min(), values.mean(), values.max())
                    summary[name] = dict(
                        zip(("min", "mean", "max"), (round(float(one), 1) for one in numbers), strict=True)
                    )
            return {"person": person, "degrees": summary}
        if angle not in found.names:
            raise UsageError(f"angle {angle!r} is unknown; known: {', '.join(found.names)}")
        values = found[angle][0]
        rows = np.flatnonzero(np.isfinite(values))
        rows = rows[:: max(1, -(-len(rows) // MAX_SAMPLES))]
        return {
            "person": person, "angle": angle, "times_s": loaded.times[rows].round(3).tolist(),
            "degrees": values[rows].round(1).tolist(),
        }  # fmt: skip

    def events(self, result: str, person: int) -> dict[str, Any]:
        """Return the events of a person, such as foot strikes, jumps and repetitions; needs a result with a world.

        Args:
            result: Name of the result.
            person: Id of the person.
        """
        from pose import analyse

        loaded = self._result(result)
        if person not in loaded.people:
            raise UsageError(f"person {person} is not in the result; it has {', '.join(map(str, loaded.people))}")
        found = [one for one in analyse(loaded, ["gait", "repetitions", "throws", "jumps", "sit-to-stand"]).events
                 if one.person == person]  # fmt: skip
        listed = [
            {"time_s": round(one.time, 3), "event": one.name, "side": one.side} for one in found[:MAX_EVENTS]
        ]  # fmt: skip
        return {"person": person, "events": listed, "left_out": len(found) - len(listed)}

    def export(self, result: str, formats: list[str]) -> dict[str, Any]:
        """Write a result in other formats, such as bvh, glb, csv, html, trc, c3d, into its folder.

        Args:
            result: Name of the result.
            formats: Names of the formats.
        """
        from pose import convert

        loaded = self._result(result)
        path = self._inside(result)
        folder = path if path.is_dir() else path.parent
        files = convert(loaded, formats, folder, overwrite=True)
        return {"files": [Path(one).resolve().relative_to(self._folder).as_posix() for one in files]}


def _people(result: Any) -> dict[str, Any]:
    import numpy as np

    joints, times, heights = result.joints(), result.times, result.heights
    people = []
    for row, person in enumerate(result.people):
        there = times[np.isfinite(joints[row, :, 0, 0])]
        if len(there):
            height = heights.get(person)
            people.append(
                {
                    "id": person, "first_s": round(float(there[0]), 3), "last_s": round(float(there[-1]), 3),
                    "frames": len(there), "height_m": None if height is None else round(height[0], 2),
                    "doubtful": person in result.doubtful,
                }
            )  # fmt: skip
    return {"frames": len(times), "world": result.has_world, "people": people}
