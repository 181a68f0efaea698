"""Functions of the public API for results: `pose.analyse` and `pose.convert`."""

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from pose import analysis
from pose.errors import PoseError, UsageError
from pose.export import Written, check_formats, export_all, targets
from pose.result import Result, load
from pose.structures.defaults import STEM
from pose.utils.shown import shown
from pose.utils.whole_file import file_errors


def analyse(
    result: Result | Path | str, groups: Sequence[str] = analysis.GROUPS, inputs: analysis.Inputs = analysis.NEUTRAL
) -> analysis.Analysis:
    """Analyse gait, repetitions, jumps, sit-to-stand and ergonomics of all people, as `pose-analyse` does.

    Args:
        result: A result with a world, or the path of its file.
        groups: Groups of metrics to compute, from `pose.analysis.GROUPS`; default all.
        inputs: Inputs of RULA and REBA that a camera cannot observe, such as loads.

    Returns:
        Metrics with 95 % intervals, events, curves, and the groups that were not computed, with reasons.

    Raises:
        UsageError: If the result has no world, or a group is unknown.
    """
    one = result if isinstance(result, Result) else load(result)
    return analysis.analyse(one.table, groups, inputs)


def convert(
    result: Result | Path | str,
    formats: str | Sequence[str],
    out: Path | str,
    *,
    space: str | None = None,
    people: Sequence[int] | None = None,
    heights: Mapping[int | None, float] | None = None,
    stem: str = STEM,
    overwrite: bool = False,
) -> list[Path]:
    """Export a result to other formats, as `pose-convert` does.

    Args:
        result: A result, or the path of its file.
        formats: One format or several, such as 'bvh'; docs/guides/exports.md lists them.
        out: Folder for the files; created if missing.
        space: 'world' or 'camera'; default: the world if the result has one, else the camera.
        people: Track ids; default all people.
        heights: Body heights in m by track id; the id None stands for all people. People and their distances from
            the camera are scaled by the same factor.
        stem: Start of the file names.
        overwrite: Whether to replace existing files. Files that this package did not write, or that have changed since,
            are renamed to `NAME.kept`, with a warning.

    Returns:
        Paths of the written files.

    Raises:
        UsageError: If a format or id is unknown, or a file exists.
        PoseError: If a library that a format needs is not installed, or a file cannot be written.
    """
    names = [formats] if isinstance(formats, str) else list(formats)
    check_formats(names, "formats")
    if stem in ("", ".", "..") or Path(stem).name != stem:
        raise UsageError(f"stem: {shown(stem, 60)!r} is not the start of a file name; give the folder with out")
    one = result if isinstance(result, Result) else load(result)
    recording, folder = one.recording(space, heights), Path(out)
    chosen = recording.people if people is None else list(people)
    if missing := set(chosen) - set(recording.people):
        raise UsageError(f"people: unknown id {min(missing)}")
    for target in targets(recording, names, chosen, folder, stem):
        if os.path.lexists(target) and not overwrite:
            raise UsageError(f"{target} exists; give overwrite=True to replace it")
    with file_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    made: list[Written] = []
    if problems := export_all(recording, names, chosen, folder, stem, made.append, _warn):
        raise PoseError("; ".join(problems))
    return [written.path for written in made]


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=2)
