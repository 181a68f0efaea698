"""`pose-convert`: a result in other programs' formats."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import PoseError, UsageError
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.status import Status

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser, Namespace

    from pose.export import Recording


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `pose-convert`."""
    options = parse_arguments(_parser(), argv)
    names = list(dict.fromkeys(name.strip() for name in options.to.split(",") if name.strip()))
    if not names:
        raise UsageError("--to: nothing to write")
    _check_ranges(options)
    with Status("converting", hidden=options.quiet) as status:
        return _convert(options, names, status.say)


def _convert(options: "Namespace", names: list[str], say: Callable[[str], None]) -> int:
    from pose.export import check_formats, export, open_recording, targets
    from pose_apps.support.folders import made_folder

    check_formats(names, "--to")
    poses = Path(options.poses)
    recording = open_recording(
        poses,
        fps=options.fps,
        start=options.start,
        end=options.end,
        space=options.space,
        video=None if options.video is None else Path(options.video),
    )
    people = _people(options.person, recording)
    folder = poses.parent if options.out is None else Path(options.out)
    if not options.overwrite:
        for target in targets(recording, names, people, folder, poses.stem):
            if target.exists():
                raise UsageError(f"{target} exists; give --overwrite to replace it, or another folder with --out")
    with made_folder(folder):
        made = 0
        if not options.quiet:
            say(f"space: {recording.space.note}")
        for written in export(recording, names, folder, poses.stem, people):
            made += 1
            if not options.quiet:
                say(str(written))
    if not made:
        raise PoseError(f"{poses}: nobody is in it; nothing was written")
    return 0


def _check_ranges(options: "Namespace") -> None:
    if options.fps is not None and not 0 < options.fps <= 1000:
        raise UsageError(f"--fps {options.fps:g}: must be above 0, at most 1000")
    if not 0 <= options.start < options.end:
        raise UsageError(
            f"--start {options.start:g} --end {options.end:g}: the start must be 0 or more, the end after it"
        )
    if options.video is not None and not Path(options.video).is_file():
        raise UsageError(f"--video {options.video}: no such file")


def _people(wanted: str | None, recording: "Recording") -> list[int]:
    known = recording.people
    if wanted is None:
        return known
    words = [word.strip() for word in wanted.split(",") if word.strip()]
    people = []
    for word in words:
        if not word.isdigit() or int(word) not in known:
            there = ", ".join(map(str, known)) or "nobody"
            raise UsageError(f"--person: {word!r} is not in the result; it has {there}")
        people.append(int(word))
    return people


def _parser() -> "ArgumentParser":
    from typing import Literal

    from jsonargparse import ArgumentParser

    from pose.export import FORMATS
    from pose.export.space import SPACES

    parser = ArgumentParser(
        prog="pose-convert",
        description="Write a poses.npz of pose-run, of the live demo or of pose-lift in other programs' formats.",
        exit_on_error=False,
    )
    parser.add_argument("poses", help="the poses.npz")
    parser.add_argument("--to", required=True, metavar="FORMATS", help=f"separated by commas: {', '.join(FORMATS)}")
    parser.add_argument("--out", metavar="DIR", help="folder for the files; by default that of the result")
    parser.add_argument("--person", metavar="ID", help="only these people, separated by commas")
    parser.add_argument("--fps", type=float, help="resample the motion to this rate")
    parser.add_argument("--start", type=float, default=0.0, help="from this second of the video on")
    parser.add_argument("--end", type=float, default=math.inf, help="up to this second")
    parser.add_argument(
        "--space",
        type=Literal[SPACES],
        default=SPACES[0],
        help="camera: the camera's frame; level: on a floor, with the vertical that the people show",
    )
    parser.add_argument("--video", metavar="FILE", help="the video, for formats that hold pictures (rrd, html)")
    parser.add_argument("--overwrite", action="store_true", help="replace files that are there already")
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    return parser
