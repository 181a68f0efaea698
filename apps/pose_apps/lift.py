"""`pose-lift`: lift 2D keypoints from any source to 3D."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

from pose.config import PipelineConfig
from pose.errors import UsageError
from pose.lifting.names import DEFAULT_LIFTER
from pose.utils.options import argument, option, overwrite_option, quiet_option, same_option
from pose.utils.written_files import check_target, writing
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import command_parser, config_first, config_of
from pose_apps.support.status import StatusLine
from pose_apps.support.world import WorldConfig, steps_of, unknown_heights, world_line

if TYPE_CHECKING:
    from pose.structures.sequences import Sequence2D, Sequence3D
    from pose.structures.types import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftConfig(WorldConfig):
    """Options of `pose-lift`."""

    keypoints: list[str] = argument([], ".npz, COCO or AlphaPose JSON files, or OpenPose folders", metavar="KEYPOINTS")
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
    world: bool = option(False, "for a fixed camera: world coordinates of all people; see docs/guides/world.md")
    device: str = same_option(PipelineConfig, "device")
    overwrite: bool = overwrite_option()
    quiet: bool = quiet_option()

    def __post_init__(self) -> None:
        WorldConfig.__post_init__(self)


@run_command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command `pose-lift`."""
    purpose = "Lift 2D keypoints to 3D, one file per person. File formats: docs/reference/outputs.md."
    parser = command_parser("pose-lift", purpose, LiftConfig, presets=True)
    parsed = parse_arguments(parser, config_first(argv))
    config = config_of(LiftConfig, parsed)
    if not config.keypoints:
        raise UsageError("no keypoints: give one or more .npz or .json files, or folders of JSON files")
    with StatusLine("lifting", hidden=config.quiet) as status:
        lift([Path(name) for name in config.keypoints], config, status.print)


def lift(inputs: list[Path], config: LiftConfig, log: Callable[[str], None] = print) -> None:
    """Lift every input file and write one output file per person.

    All inputs are read and checked before the first network runs.

    Args:
        inputs: Files with 2D keypoints.
        config: Options of `pose-lift`.
        log: Function that prints a line of text.
    """
    _check_used(inputs, config)
    people = [_read(path, config) for path in inputs]
    targets = plan_targets(inputs, [list(sequences_by_id) for sequences_by_id in people], config)
    if nobody := unknown_heights(config, {number for sequences_by_id in people for number in sequences_by_id}):
        raise UsageError(nobody)
    sequences = [sequence for sequences_by_id in people for sequence in sequences_by_id.values()]
    from pose.functions import lift_sequences
    from pose.lifting.fit.log import FitLog
    from pose.lifting.load import load_lifter
    from pose.utils.device import resolve_device
    from pose_apps.support.lifters import allow_research_lifters

    allow_research_lifters(config.lifter)
    lifter, fits = load_lifter(config.lifter, resolve_device(config.device)), FitLog()
    sequences, answers = lift_sequences(
        lifter,
        sequences,
        config.lookahead,
        repair=config.repair,
        constant_bones=config.constant_bones,
        fit=config.fit,
        log=fits,
    )
    shown = log if not config.quiet else lambda text: None
    with writing(targets):
        for at, sequences_by_id in zip(accumulate(map(len, people), initial=0), people, strict=False):
            rows = slice(at, at + len(sequences_by_id))
            placed = (
                _into_world(list(sequences_by_id), answers[rows], sequences[rows], config, shown)
                if config.world
                else {}
            )
            for person, target, answer in zip(sequences_by_id, targets[rows], answers[rows], strict=True):
                write_answer(target, answer, placed.get(person))
                shown(f"{target}: {len(answer)} frames")
    if fits.line:
        shown(fits.line)


def _into_world(
    ids: list[int],
    answers: "list[Sequence3D]",
    seen: "list[Sequence2D]",
    config: LiftConfig,
    log: Callable[[str], None],
) -> "dict[int, dict[str, Array]]":
    """Transform the people of one input to a common world; return further output arrays by id."""
    import json

    import numpy as np

    from pose.results import WorldInfo
    from pose.results.npz import world_arrays
    from pose.world.clean import clean
    from pose.world.person import person_of

    persons = {number: person_of(answer, one) for number, answer, one in zip(ids, answers, seen, strict=True)}
    known = all(one.camera.known for one in seen)
    world, people = clean(persons, steps=steps_of(config, config.constant_bones, known))
    heights = {number: (one.height, one.height_sigma) for number, one in people.items()}
    intervals = {number: one.height_interval for number, one in people.items()}
    info = WorldInfo(world, heights, height_intervals=intervals)
    log(world_line(info))
    text = np.array(json.dumps(info.to_dict(), allow_nan=False))
    return {
        number: {
            "joints3d": one.joints.astype(np.float32),
            "root": one.root.astype(np.float32),
            "world": one.placed.astype(np.float32),
            "contacts": one.contacts.astype(np.float32),
            "root_sigma": one.root_sigma.astype(np.float32),
            "moved": one.moved.astype(np.float32),
            "filled": one.filled,
            **world_arrays(world),
            "world_info": text,
        }
        for number, one in people.items()
    }


def _check_used(inputs: list[Path], config: LiftConfig) -> None:
    """Check that the options of JSON keypoints have an input to which they apply."""
    if any(map(_is_json, inputs)):
        return
    for name, value, key in (("fps", config.fps, "timestamps"), ("image-size", config.image_size, "image_size")):
        if value is not None:
            raise UsageError(f"--{name}: applies only to JSON keypoints; an .npz file has its own {key}")


def _is_json(path: Path) -> bool:
    return path.is_dir() or path.suffix.lower() == ".json"


def _read(path: Path, config: LiftConfig) -> "dict[int, Sequence2D]":
    """Return the 2D sequences of all people in one input, by id."""
    if _is_json(path):
        from pose.results.keypoints_json import read_people

        return read_people(path, config.fps, _image_size(config.image_size))
    from pose.results.keypoints import read_keypoints

    return {1: read_keypoints(path)}


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


def write_answer(path: Path, answer: "Sequence3D", placed: "dict[str, Array] | None" = None) -> None:
    """Write the 3D poses of one person to an .npz file, in which arrays of `placed` replace others."""
    from pose.utils.archives import write_arrays
    from pose.utils.whole_file import file_errors, make_folder

    with file_errors(path):
        make_folder(path.parent)
    arrays: dict[str, Array] = {
        "joints3d": answer.joints,
        "root": answer.root,
        "sigma": answer.sigma,
        "timestamps": answer.times,
    }
    write_arrays(path, arrays | (placed or {}))
