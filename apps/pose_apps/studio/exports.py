"""What the studio writes and sends of a result: files for the browser and for Blender, and live playback."""

import asyncio
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from aiohttp import web

from pose.errors import PoseError, UsageError
from pose.live.links.table import LINKS, parse_links
from pose.results.edits import parse_edits, to_json
from pose_apps.studio.jobs import Jobs, WorkerProcess
from pose_apps.studio.projects import FIRST, Project, Projects, result_name

SHOWN_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; media-src data: blob:"
)


@dataclass
class ResultExporter:
    """Writes results in other formats, in a process of its own."""

    projects: Projects
    jobs: Jobs
    worker: WorkerProcess = field(default_factory=WorkerProcess)

    async def file(self, project: Project, name: str, poses: Path, query: Mapping[str, str]) -> web.FileResponse:
        """Return the file of a result in a format, or an archive of several files; `written` lists the errors."""
        folder = tempfile.TemporaryDirectory(prefix="pose-studio-")
        try:
            files = await self.written(project, name, poses, Path(folder.name), query)
            if len(files) == 1:
                target = files[0]
            else:
                target = Path(folder.name) / f"{_stem(project)}-{name}.zip"
                await asyncio.to_thread(_zip, files, target)
        except BaseException:
            folder.cleanup()
            raise
        headers = {"Content-Disposition": f'attachment; filename="{target.name}"'}
        if "show" in query and target.suffix == ".html":  # a page without access to this server
            headers = {"Content-Disposition": "inline", "Content-Security-Policy": SHOWN_POLICY}
        return _TemporaryFile(target, folder, headers)

    async def written(
        self, project: Project, name: str, poses: Path, folder: Path, query: Mapping[str, str]
    ) -> list[Path]:
        """Write a result into an empty folder, and return the files.

        Raises:
            UsageError: If the format does not go with the result or the query.
            PoseError: If the result cannot be written.
        """
        stem = _stem(project)
        if name == "npz":
            shutil.copy(poses, folder / f"{stem}.npz")
        elif name == "overlay":
            edits = to_json(project.edits() if poses.stem != FIRST else [])
            if result_name(parse_edits(edits)) != poses.stem:
                raise UsageError("overlay: only of the first result and of the one with the edits that are kept")
            target = folder / f"{stem}-overlay.mp4"
            await self.worker.ask(self.jobs.request(project, edits, str(poses)) | {"overlay": str(target)})
        else:
            request: dict[str, Any] = {
                "do": "export", "format": name, "folder": str(folder), "poses": str(poses), "video": str(project.clip),
                "stem": stem, "other": str(poses), "people": [],
            }  # fmt: skip
            if name == "compare":
                other = self.projects.find(query.get("other", "")) or project
                request["other"] = str(other.result(result_name(other.edits()) if other is not project else poses.stem))
                request["people"] = [int(word) for word in re.findall(r"\d{1,15}", query.get("people", ""))][:2]
                if len(request["people"]) == 1 or not Path(request["other"]).is_file():
                    raise UsageError("compare: give two people, and clips that are processed")
            await self.worker.ask(request)
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


class LivePlayer:
    """Plays one result at a time to other programs, in a process of its own."""

    def __init__(self) -> None:
        self._worker = WorkerProcess()
        self._playing: asyncio.Task[dict[str, Any]] | None = None

    async def play(self, poses: Path, send: str) -> None:
        """Play a result in real time, in place of what is sent at the moment.

        Raises:
            UsageError: If the link or its address is invalid.
            PoseError: If playing cannot begin.
        """
        await self._worker.stop()
        await asyncio.to_thread(parse_links, send)
        request = {"do": "send", "poses": str(poses), "send": send}
        started = asyncio.get_running_loop().create_future()
        self._playing = asyncio.create_task(self._worker.ask(request, lambda content: _settle(started, content)))
        await asyncio.wait([self._playing, started], return_when=asyncio.FIRST_COMPLETED)
        if self._playing.done():
            self._playing.result()  # raises its error

    async def pause(self) -> None:
        """End what is sent at the moment."""
        if self._playing is not None:
            self._playing.cancel()
            with suppress(asyncio.CancelledError, PoseError):
                await self._playing

    async def stop(self) -> None:
        """End the process."""
        await self._worker.stop()


class _TemporaryFile(web.FileResponse):
    """A file whose folder is deleted when the file is sent."""

    def __init__(self, path: Path, folder: "tempfile.TemporaryDirectory[str]", headers: Mapping[str, str]) -> None:
        super().__init__(path, headers=headers)
        self._folder = folder

    async def prepare(self, request: web.BaseRequest) -> Any:
        try:
            return await super().prepare(request)
        finally:
            await asyncio.to_thread(self._folder.cleanup)


def _stem(project: Project) -> str:
    return project.id.rpartition("-")[0]


def _settle(future: "asyncio.Future[dict[str, Any]]", content: dict[str, Any]) -> None:
    if not future.done():
        future.set_result(content)


def _zip(written: list[Path], target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in written:
            archive.write(path, path.name)


EXPORTS = {
    "report": "For coaches and physiotherapists: measures of the movement with charts, to read and print.",
    "html": "For everyone: a page with video, 3D and joint angles that opens without any program.",
    "overlay": "For everyone: the video with the skeletons drawn on it.",
    "compare": "For coaches: the measures of two people or two clips, by repetition.",
    "angles": "For spreadsheets: the joint angles of every frame.",
    "csv": "For spreadsheets and statistics: the position of every joint in every frame.",
    "glb": "For animators: characters with their motion for Blender, Unity, Unreal and browsers.",
    "bvh": "For animators: the motion of a skeleton for nearly every animation program.",
    "fbx": "For animators: characters for Maya, MotionBuilder and game engines.",
    "usd": "For studios: characters for Omniverse, Houdini and Maya.",
    "trc": "For biomechanics: marker positions for OpenSim.",
    "c3d": "For motion laboratories: markers for Visual3D, Mokka and MATLAB.",
    "opensim": "For biomechanics: markers and a set-up for inverse kinematics in OpenSim.",
    "coco": "For machine learning: 2D joints as COCO annotations.",
    "npz": "For Python: everything, as pose-run writes it.",
}
if find_spec("bpy") is None:
    del EXPORTS["fbx"]
if find_spec("pxr") is None:
    del EXPORTS["usd"]
# Formats that a browser shows; the others are files.
SHOWN = {"report", "html", "compare"}
# Links that send in real time, with what they are for; those whose packages are installed.
LIVE = {
    "vmc": "For animators: characters in VSeeFace, Warudo, Unity and Unreal.",
    "vrchat": "For VRChat: trackers of one person.",
    "osc": "For TouchDesigner, Max and other programs with OSC.",
    "lsl": "For laboratories: streams of the Lab Streaming Layer.",
    "mqtt": "For smart homes and Node-RED.",
    "foxglove": "For robotics: Foxglove Studio.",
}
_IMPORT = "import bpy, sys; bpy.ops.import_scene.gltf(filepath=sys.argv[-1])"


def live_links() -> Iterator[tuple[str, str]]:
    """Yield name and purpose of the links whose packages are installed."""
    for name, purpose in LIVE.items():
        if all(find_spec(module) is not None for module in LINKS[name].modules):
            yield name, purpose


def blender() -> str | None:
    """Return the path of Blender's program; None if it is not installed."""
    return shutil.which("blender")


async def open_in_blender(characters: Path) -> None:
    """Start Blender with the characters of a GLB file; PoseError if Blender is not installed, or cannot be started."""
    program = blender()
    if program is None:
        raise PoseError("Blender is not installed, or its folder is not in PATH")
    nowhere = asyncio.subprocess.DEVNULL
    try:
        await asyncio.create_subprocess_exec(
            program, "--python-expr", _IMPORT, "--", str(characters), stdin=nowhere, stdout=nowhere, stderr=nowhere,
            start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise PoseError(f"{program}: {error.strerror}") from error
