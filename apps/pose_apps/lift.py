"""`pose-lift`: 2D keypoints of one person in, 3D out. The lifter alone, for keypoints from anywhere."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser

from pose.config import DEVICES, check_options, option
from pose.errors import UsageError
from pose.files.keypoints import read_keypoints
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import add_config_option, add_options, config_first, config_of

if TYPE_CHECKING:
    from pose.sequences import Sequence3D


@dataclass(frozen=True, slots=True, kw_only=True)
class LiftConfig:
    """How `pose-lift` lifts. Raises UsageError for a value that is not allowed."""

    out: str | None = option(None, "the .npz file for the answer; a folder when there are several inputs")
    lifter: str = option("offline", "offline, stream, or a checkpoint file")
    lookahead: int = option(0, "frames that a streaming lifter may wait for", least=0)
    repair: bool = option(True, "undo left/right swaps and drop outliers first")
    device: str = option("auto", "where the network runs; auto: cuda where there is one", choices=DEVICES)
    overwrite: bool = option(False, "replace answers that are there already")
    quiet: bool = option(False, "print nothing but errors")

    def __post_init__(self) -> None:
        check_options(self)


@run_command
def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of `pose-lift`."""
    parser = ArgumentParser(
        prog="pose-lift",
        description="Lift the 2D keypoints of one person to 3D. docs/outputs.md describes both files.",
        exit_on_error=False,
    )
    parser.add_argument("keypoints", nargs="*", type=str, help="one or more .npz files with keypoints")
    add_config_option(parser)
    add_options(parser, LiftConfig)
    parsed = parse_arguments(parser, config_first(argv))
    if not parsed.keypoints:
        raise UsageError("no keypoints: name one or more .npz files")
    lift([Path(name) for name in parsed.keypoints], config_of(LiftConfig, parsed))


def lift(inputs: list[Path], config: LiftConfig) -> None:
    """Answer every input. Everything is read and checked before the first network runs."""
    targets = plan_targets(inputs, config)
    sequences = [read_keypoints(path) for path in inputs]
    from pose.lifter.predict import Lifter
    from pose.system.device import resolve_device

    lifter = Lifter.load(config.lifter, resolve_device(config.device))
    if config.lookahead and not lifter.streaming:
        raise UsageError(f"lookahead: the lifter {lifter.name!r} sees the whole file; choose a streaming one")
    if config.repair:
        from pose.repair.person import repair

        sequences = [repair(sequence) for sequence in sequences]
    for target, answer in zip(targets, lifter.lift_many(sequences, config.lookahead), strict=True):
        write_answer(target, answer)
        if not config.quiet:
            print(f"{target}: {len(answer)} frames")


def plan_targets(inputs: list[Path], config: LiftConfig) -> list[Path]:
    """The file for each answer. Raises UsageError when two would be one, or one is there already."""
    out = None if config.out is None else Path(config.out)
    if out is None:
        targets = [path.with_name(f"{path.stem}-3d.npz") for path in inputs]
    elif len(inputs) > 1 or out.is_dir():
        targets = [out / f"{path.stem}.npz" for path in inputs]
    else:
        targets = [out]
    for place, target in enumerate(targets):
        if target in targets[:place]:
            raise UsageError(f"two inputs would both be answered in {target}; give them different names")
        if any(target.exists() and target.samefile(path) for path in inputs if path.exists()):
            raise UsageError(f"{target}: the answer would replace an input; name another file with --out")
        if target.exists() and not config.overwrite:
            raise UsageError(f"{target} exists; give --overwrite to replace it, or another file with --out")
    return targets


def write_answer(path: Path, answer: "Sequence3D") -> None:
    """Raises PoseError when the folder cannot take it."""
    import numpy as np

    from pose.system.whole_file import file_errors, whole_file

    with file_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as hidden, hidden.open("wb") as file:
        np.savez(file, joints3d=answer.joints, root=answer.root, sigma=answer.sigma, timestamps=answer.times)
