"""Movement analysis of a result in its folder: what `pose-analyse` and `pose-run --analyse` write."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import PoseError, UsageError
from pose.system.written_files import WrittenFiles, say_warning

if TYPE_CHECKING:
    from pose.analysis import Analysis, Inputs

FORMATS = ("csv", "json")  # of the tables, by default


def check_analysis(folder: Path, formats: Sequence[str] = FORMATS, *, overwrite: bool) -> None:
    """Raises UsageError where a file that `write_analysis` would write exists."""
    from pose.analysis.tables import targets

    for target in targets(folder, formats):
        if os.path.lexists(target) and not overwrite:
            raise UsageError(f"{target} exists already; add --overwrite to replace it")


def write_analysis(
    poses: Path,
    folder: Path,
    formats: Sequence[str] = FORMATS,
    groups: Sequence[str] | None = None,
    inputs: "Inputs | None" = None,
    warn: Callable[[str], None] = say_warning,
) -> "tuple[Analysis, list[Path]]":
    """Analyse a result and write the tables; earlier ones are replaced.

    Args:
        poses: a poses.npz with a world.
        folder: for the tables; it is made where it does not exist.
        formats: of the tables.
        groups: of figures; all by default.
        inputs: what RULA and REBA need and no camera observes.
        warn: told which file of the user was renamed.

    Returns:
        The analysis and the files.

    Raises:
        PoseError: for a result without a world, or where a library is missing.
    """
    from pose.analysis import GROUPS, NEUTRAL, analyse
    from pose.analysis.tables import targets, write
    from pose.files import load_poses

    analysis = analyse(load_poses(poses), groups or GROUPS, inputs or NEUTRAL)
    folder.mkdir(parents=True, exist_ok=True)
    record = WrittenFiles(folder, warn)
    for target in targets(folder, formats):
        record.make_way(target)
    written = write(analysis, folder, formats)
    for path in written:
        record.add(path)
    record.save()
    return analysis, written


def analysis_lines(analysis: "Analysis") -> list[str]:
    """What a command prints: one line for each figure, and one for each group without figures."""
    lines = []
    for figure in analysis.figures:
        value = f"{figure.value:.3g} {figure.unit} ({figure.low:.3g} to {figure.high:.3g}; {figure.quality})"
        lines.append(f"person {figure.person}, {figure.name}: {value}{f'; {figure.note}' if figure.note else ''}")
    lines += [f"person {one.person}, {one.group}: none ({one.reason})" for one in analysis.omissions]
    return lines


def analysed(poses: Path, folder: Path, warn: Callable[[str], None]) -> tuple[list[Path], list[str], list[str]]:
    """As `write_analysis`, after a run: the files, a line that sums them up, and why there are none."""
    try:
        analysis, files = write_analysis(poses, folder, warn=warn)
    except PoseError as error:
        return [], [], [str(error)]
    found = f"{len(analysis.figures)} figures and {len(analysis.events)} events of movement"
    return files, [f"analysis: {found}; groups without figures have their reason in analysis-omissions.csv"], []
