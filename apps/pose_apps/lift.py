"""`pose-lift`: lift 2D keypoints from any source to 3D."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pose.config import PipelineConfig, WorldConfig
from pose.errors import UsageError
from pose.lifting.names import DEFAULT_LIFTER
from pose.utils.options import argument, check_options, option, overwrite_option, quiet_option, same_option
from pose.utils.written_files import check_target, writing
from pose.world.given import read_heights
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.imus import are_imus
from pose_apps.support.options import command_parser, config_first, config_of
from pose_apps.support.run_context import warn
from pose_apps.support.sensors import are_sensors, is_sensor_file
from pose_apps.support.status import StatusLine
from pose_apps.support.world import steps_of, unknown_heights, world_line

if TYPE_CHECKING:
    from pose.results.recorded import RecordedRun
    from pose.structures.types import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftConfig(WorldConfig):
    """Options of `pose-lift`."""

    keypoints: list[str] = argument(
        [],
        ".npz, COCO or AlphaPose JSON files, OpenPose folders, or recordings of inertial sensors, depth cameras, suits",
        metavar="KEYPOINTS",
    )
    out: str | None = option(None, "the .npz file to write; a folder if there are several inputs", metavar="FILE|DIR")
    lifter: str = option(DEFAULT_LIFTER, "offline, sliding, stream, or a checkpoint file")
    lookahead: int = same_option(PipelineConfig, "lookahead")
    fps: float | None = option(
        None, "frame rate in frames/s, required for JSON keypoints", minimum=0.001, maximum=1000.0
    )
    image_size: str | None = option(None, "image size in px, such as 1920x1080, for JSON keypoints without it")
    repair: bool = same_option(PipelineConfig, "repair")
    constant_bones: bool = same_option(
        PipelineConfig, "constant_bones", "keep bone lengths constant over time for each person (offline)"
    )
    fit: bool = same_option(PipelineConfig, "fit")
    imu_heading: float | None = option(
        None, "direction in degrees in which a person with inertial sensors faces while standing; default: estimated",
        minimum=-360, maximum=360,
    )  # fmt: skip
    sensor_network: bool = option(True, "correct the skeletons of depth cameras with a network")
    world: bool = option(False, "for a fixed camera: world coordinates of all people; see docs/guides/world.md")
    edits: str | None = option(None, "file of corrections of one input; see docs/reference/edits.md")
    device: str = same_option(PipelineConfig, "device")
    overwrite: bool = overwrite_option()
    quiet: bool = quiet_option()

    def __post_init__(self) -> None:
        paths = [Path(name) for name in self.keypoints]
        sensors = bool(paths) and are_sensors(paths)
        if paths and not sensors and not self.sensor_network:
            raise UsageError("--no-sensor_network: applies only to skeletons of depth cameras")
        if sensors or (paths and are_imus(paths)):
            check_options(self)
            read_heights(self.height)
            if sensors and self.imu_heading is not None:
                raise UsageError("--imu-heading: applies only to recordings of inertial sensors")
            return
        WorldConfig.__post_init__(self)
        if self.imu_heading is not None:
            raise UsageError("--imu-heading: applies only to recordings of inertial sensors")


@run_command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command `pose-lift`."""
    purpose = "Lift 2D keypoints to 3D, one file per person. File formats: docs/reference/outputs.md."
    parser = command_parser("pose-lift", purpose, LiftConfig, presets=True)
    parsed = parse_arguments(parser, config_first(argv))
    config = config_of(LiftConfig, parsed)
    if not config.keypoints:
        raise UsageError("no keypoints: give one or more .npz or .json files, or folders of JSON files")
    inputs = [Path(name) for name in config.keypoints]
    with StatusLine("lifting", hidden=config.quiet) as status:
        if are_sensors(inputs) or are_imus(inputs):
            lift_sensors(inputs, config, status.print)
        else:
            lift(inputs, config, status.print)


def lift(inputs: list[Path], config: LiftConfig, log: Callable[[str], None] = print) -> None:
    """Lift every input file, after all are read and checked, and write one output file per person."""
    _check_used(inputs, config)
    from pose.functions import LiftOptions, edit_people, read_people, record_keypoints
    from pose.lifting.fit.windows import FitLog
    from pose.lifting.load import load_lifter
    from pose.results.edits import read_edits
    from pose.utils.device import resolve_device
    from pose_apps.support.lifters import allow_research_lifters

    size = _image_size(config.image_size)
    if config.edits is not None and len(inputs) > 1:
        raise UsageError("edits: give one input; its people are named by time and place")
    edits = [] if config.edits is None else read_edits(config.edits)
    read = [read_people(path, config.fps, size) for path in inputs]
    sources = [(name, *edit_people(people, edits)) for name, people in read]
    for *_, edited in sources:
        warn([] if edited is None else edited.problems)
    targets = plan_targets(inputs, [list(people) for _, people, _ in sources], config)
    if nobody := unknown_heights(config, {number for _, people, _ in sources for number in people}):
        raise UsageError(nobody)
    allow_research_lifters(config.lifter)
    lifter, fits = load_lifter(config.lifter, resolve_device(config.device)), FitLog()
    options = LiftOptions(**{entry.name: getattr(config, entry.name) for entry in fields(LiftOptions)})
    steps = replace(steps_of(config), fill=False) if config.world else None
    shown = log if not config.quiet else lambda text: None
    remaining = iter(targets)
    with writing(targets):
        for name, people, plan in sources:
            with record_keypoints(name, people, lifter, options, steps, fits, plan) as recorded:
                if recorded.info.world is not None:
                    shown(world_line(recorded.info.world))
                for arrays in _people_of(recorded, people):
                    target = next(remaining)
                    _write(target, arrays)
                    shown(f"{target}: {len(arrays['timestamps'])} frames")
    if fits.line:
        shown(fits.line)


def lift_sensors(inputs: list[Path], config: LiftConfig, log: Callable[[str], None] = print) -> None:
    """Write the motion of each person of recordings of inertial sensors, depth cameras or suits; all are read first."""
    if config.fps is not None or config.image_size is not None:
        raise UsageError("--fps and --image-size: apply only to JSON keypoints")
    results = [_sensed(path, config) for path in inputs]
    if nobody := unknown_heights(config, {number for people in results for number in people}):
        raise UsageError(nobody)
    targets = plan_targets(inputs, [list(people) for people in results], config)
    found = [result for people in results for result in people.values()]
    with writing(targets):
        for target, (arrays, line) in zip(targets, found, strict=True):
            _write(target, arrays)
            if not config.quiet:
                log(f"{target}: {len(arrays['timestamps'])} frames; {line}")


def _sensed(path: Path, config: LiftConfig) -> "dict[int, tuple[dict[str, Array], str]]":
    """Return the arrays of the output file of each person of a recording of sensors, and a line that describes it."""
    heights = read_heights(config.height)
    if is_sensor_file(path):
        from pose_apps.support.sensors import read_sensors, sensor_arrays

        return {
            number: sensor_arrays(skeleton, heights.get(number, heights.get(None)), config.sensor_network)
            for number, skeleton in read_sensors(path).items()
        }
    from pose_apps.support.imus import imu_arrays

    return {1: imu_arrays(path, heights.get(1, heights.get(None)), config.imu_heading)}


def _people_of(recorded: "RecordedRun", ids: "Collection[int]") -> "Iterator[dict[str, Array]]":
    """Yield the arrays of the output file of each person."""
    import json

    import numpy as np

    from pose.export.result import Result
    from pose.results import WorldInfo
    from pose.results.npz import world_arrays

    table, info = Result.of(recorded).table, recorded.info.world
    names = {"joints3d": "joints3d", "root": "root", "sigma": "sigma", "timestamps": "time"}
    constants: dict[str, Array] = {}
    if info is not None:
        names |= {name: name for name in ("world", "contacts", "root_sigma", "moved", "filled")}
        described = WorldInfo(info.world, info.heights, height_intervals=info.height_intervals)
        text = json.dumps(described.to_dict(), allow_nan=False)
        constants = {**world_arrays(info.world), "world_info": np.array(text)}
    for number in ids:
        rows = table.id == number
        yield {name: table.columns[column][rows] for name, column in names.items()} | constants


def _write(path: Path, arrays: "Mapping[str, Array]") -> None:
    from pose.utils.archives import write_arrays
    from pose.utils.whole_file import file_errors

    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_arrays(path, arrays)


def _check_used(inputs: list[Path], config: LiftConfig) -> None:
    """Check that the options of JSON keypoints have an input to which they apply."""
    if any(map(_is_json, inputs)):
        return
    for name, value, key in (("fps", config.fps, "timestamps"), ("image-size", config.image_size, "image_size")):
        if value is not None:
            raise UsageError(f"--{name}: applies only to JSON keypoints; an .npz file has its own {key}")


def _is_json(path: Path) -> bool:
    return path.is_dir() or path.suffix.lower() == ".json"


def _image_size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if found is None or "0" in found.groups():
        raise UsageError(f"image_size: expected width x height in px, such as 1920x1080, got {text!r}")
    return int(found[1]), int(found[2])


def plan_targets(inputs: list[Path], people: list[list[int]], config: LiftConfig) -> list[Path]:
    """Return the output file of each person, with its id if an input has several people."""
    out = None if config.out is None else Path(config.out)
    targets = []
    for path, ids in zip(inputs, people, strict=True):
        if out is None:
            target = path.with_name(f"{path.stem}-3d.npz")
        else:
            target = out / f"{path.stem}.npz" if len(inputs) > 1 or out.is_dir() else out
        named = [target.with_name(f"{target.stem}-person{person}{target.suffix}") for person in ids]
        targets += named if len(ids) > 1 else [target]
    for place, target in enumerate(targets):
        if target.suffix.lower() != ".npz":
            raise UsageError(f"--out {out}: expected a .npz file, or a folder that exists")
        if target in targets[:place]:
            raise UsageError(f"two inputs would both be written to {target}; give them different names")
        check_target(target, inputs, overwrite=config.overwrite)
    return targets
