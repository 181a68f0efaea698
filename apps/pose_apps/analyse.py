"""`pose-analyse`: compute movement measures from a result."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pose.errors import UsageError
from pose.structures.defaults import RESULT_NPZ
from pose.utils.options import REQUIRED, Options, argument, option, overwrite_option, quiet_option
from pose_apps.support.analysis import (
    OTHERS,
    analysis_lines,
    check_analysis,
    summary_lines,
    write_analysis,
    write_compared,
)
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import command_parser, config_of


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyseOptions(Options):
    """Options of `pose-analyse`."""

    poses: str = argument(REQUIRED, "a poses.npz of pose-run, or its folder", metavar="POSES.npz")
    out: str | None = option(None, "folder for the tables; default: the folder of the result", metavar="DIR")
    only: str = option(
        "gait,repetitions,throws,jumps,sit-to-stand,angles",
        "groups of measures, separated by commas, of these and ergonomics, or all",
        metavar="GROUPS",
    )
    formats: str = option(
        "csv,json,html", "separated by commas: csv, json, parquet (tables), html (report), c3d (events)"
    )
    norms: str | None = option(
        None, "CSV of walking norms: angle, percent, mean, sd; default: children (Schwartz 2008)", metavar="FILE"
    )
    movement: str = option("", "name of the repeated movement, such as 'back squat'; default: found", metavar="NAME")
    compare: str | None = option(
        None, "compare with this result (or the same, for two people): writes comparison.html and .csv instead",
        metavar="POSES.npz",
    )  # fmt: skip
    people: str | None = option(
        None, "ids of the two people to compare, such as 1,2; default: those with the most measures", metavar="ID,ID"
    )
    video: str | None = option(
        None, "source video, for the images of the report; default: the video named in the result", metavar="FILE"
    )
    wrist: int = option(1, "RULA and REBA: wrist score, 1 neutral to 3", minimum=1, maximum=3)
    wrist_twist: int = option(1, "RULA: wrist twist, 1 mid range or 2", minimum=1, maximum=2)
    load: int = option(0, "score of load or force in RULA and REBA, 0 to 3", minimum=0, maximum=3)
    coupling: int = option(0, "REBA: grip score, 0 good to 3 unacceptable", minimum=0, maximum=3)
    muscle_use: int = option(0, "RULA and REBA: 1 for static or repeated postures", minimum=0, maximum=1)
    overwrite: bool = overwrite_option("existing tables")
    verbose: bool = option(False, "print every measure")
    quiet: bool = quiet_option()


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-analyse`."""
    parser = command_parser(
        "pose-analyse", "Gait, repetitions, throws, jumps, sit-to-stand and ergonomics.", AnalyseOptions
    )
    options = config_of(AnalyseOptions, parse_arguments(parser, argv))
    from pose.analysis import GROUPS, Inputs
    from pose.analysis.norms import CHILDREN, read_norms
    from pose.analysis.tables import FORMATS

    formats = _words(options.formats, (*FORMATS, *OTHERS), "formats")
    groups = GROUPS if options.only == "all" else _words(options.only, GROUPS, "only")
    path = _result(options.poses)
    folder = path.parent if options.out is None else Path(options.out).expanduser()
    if options.compare is None:
        check_analysis(folder, formats, overwrite=options.overwrite)
    video = None if options.video is None else Path(options.video).expanduser()
    if video is not None and not video.is_file():
        raise UsageError(f"--video {video}: no such file")
    if options.people is not None and options.compare is None:
        raise UsageError("--people: applies only to --compare")
    norms = CHILDREN if options.norms is None else read_norms(Path(options.norms).expanduser())
    inputs = Inputs(options.wrist, options.wrist_twist, options.load, options.coupling, options.muscle_use)
    if options.compare is not None:
        others = path, _result(options.compare)
        written = write_compared(
            others, _pair(options.people), folder, groups, options.movement, overwrite=options.overwrite
        )
        if not options.quiet:
            print(f"comparison: {', '.join(map(str, written))}")
        return 0
    analysis, written = write_analysis(
        path, folder, formats, groups, inputs, video, movement=options.movement, norms=norms
    )
    if not options.quiet:
        details = analysis_lines(analysis) if options.verbose else []
        for line in [*details, *summary_lines(analysis, written)]:
            print(line)
    return 0


def _result(name: str) -> Path:
    source = Path(name).expanduser()
    return source / RESULT_NPZ if source.is_dir() else source


def _pair(people: str | None) -> tuple[int, int] | tuple[None, None]:
    """Return the ids of two people from text such as '1,2'."""
    if people is None:
        return None, None
    words = [word.strip() for word in people.split(",")]
    if len(words) != 2 or not all(word.isascii() and word.isdigit() and len(word) < 19 for word in words):
        raise UsageError(f"people: {people!r} must be two ids, such as 1,2")
    return int(words[0]), int(words[1])


def _words(text: str, known: Sequence[str], key: str) -> list[str]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in known:
            raise UsageError(f"{key}: {word!r} is unknown; known: {', '.join(known)}")
    if not words:
        raise UsageError(f"{key}: name at least one of {', '.join(known)}")
    return list(dict.fromkeys(words))
