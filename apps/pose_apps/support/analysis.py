"""Movement analysis of a result, for `pose-analyse` and `pose-run --analyse`."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import PoseError, UsageError
from pose.utils.written_files import WrittenFiles, print_warning, writing

if TYPE_CHECKING:
    from pose.analysis import Analysis, Inputs
    from pose.analysis.metrics import Metric
    from pose.analysis.norms import Norms

FORMATS = ("csv", "json", "html")  # by default
C3D = "analysis-person{}.c3d"
OTHERS = ("html", "c3d")  # than tables


def check_analysis(folder: Path, formats: Sequence[str] = FORMATS, *, overwrite: bool) -> None:
    """Check that no output file of an analysis exists, unless `overwrite` is True."""
    for target in [*_targets(folder, formats), *(sorted(folder.glob(C3D.format("*"))) if "c3d" in formats else [])]:
        if os.path.lexists(target) and not overwrite:
            raise UsageError(f"{target} exists; give --overwrite to replace it")


def _targets(folder: Path, formats: Sequence[str]) -> list[Path]:
    from pose.analysis.tables import targets
    from pose.structures.defaults import ANALYSIS_PAGE

    return [
        *targets(folder, [one for one in formats if one not in OTHERS]),
        *([folder / ANALYSIS_PAGE] if "html" in formats else []),
    ]


def write_analysis(
    poses: Path,
    folder: Path,
    formats: Sequence[str] = FORMATS,
    groups: Sequence[str] | None = None,
    inputs: "Inputs | None" = None,
    video: Path | None = None,
    warn: Callable[[str], None] = print_warning,
    movement: str = "",
    norms: "Norms | None" = None,
    *,
    beside: bool = False,
) -> "tuple[Analysis, list[Path]]":
    """Analyse poses.npz, write tables and report, and return the analysis and the files."""
    # The report's images are from `video`, or from the source of the result, if it exists. Files of an earlier analysis
    # are replaced; `warn` gets a message for each file of the user that was renamed. `beside`: the page of the poses
    # will be in the folder.
    from pose.analysis import DEFAULT_GROUPS, NEUTRAL, analyse
    from pose.analysis.norms import CHILDREN
    from pose.analysis.report import write_report
    from pose.analysis.tables import write
    from pose.results import load_poses
    from pose.results.cameras import result_title
    from pose.structures.defaults import ANALYSIS_PAGE, POSES_PAGE

    table = load_poses(poses)
    analysis = analyse(table, groups or DEFAULT_GROUPS, inputs or NEUTRAL, movement, norms or CHILDREN)
    folder.mkdir(parents=True, exist_ok=True)
    record = WrittenFiles(folder, warn)
    for target in _targets(folder, formats):
        record.move_user_file(target)
    written = write(analysis, folder, [one for one in formats if one not in OTHERS])
    if "c3d" in formats:
        written += _write_c3d(analysis, poses, folder, record)
    if "html" in formats:
        source = str(poses.parent) if table.run is None else table.run.source
        filmed = Path(source) if video is None else video
        title = result_title(table.run, source)
        beside = beside or (folder / POSES_PAGE).is_file()
        images = filmed if filmed.is_file() else None
        write_report(analysis, table, folder / ANALYSIS_PAGE, title, images, beside=beside)
        written.append(folder / ANALYSIS_PAGE)
    for path in written:
        record.add(path)
    record.save()
    return analysis, written


def write_compared(
    results: tuple[Path, Path],
    people: tuple[int | None, int | None],
    folder: Path,
    groups: Sequence[str],
    movement: str = "",
    *,
    overwrite: bool,
) -> list[Path]:
    """Compare a person of each of two results, and return the files written."""
    from pose.analysis import analyse
    from pose.analysis.compare import PAGE, TABLE, subject, write_comparison
    from pose.results import load_poses
    from pose.results.cameras import result_title

    for name in (TABLE, PAGE):
        if os.path.lexists(folder / name) and not overwrite:
            raise UsageError(f"{folder / name} exists; give --overwrite to replace it")
    sides = []
    for path, person in zip(results, people, strict=True):
        table = load_poses(path)
        source = str(path.parent) if table.run is None else table.run.source
        video = Path(source) if Path(source).is_file() else None
        title = result_title(table.run, source)
        sides.append(subject(title, table, analyse(table, groups, movement=movement), person, video))
    with writing([folder / TABLE, folder / PAGE], print_warning):
        return write_comparison(sides[0], sides[1], folder)


def _write_c3d(analysis: "Analysis", poses: Path, folder: Path, record: WrittenFiles) -> list[Path]:
    """Write a C3D file with points and events for each person with events; return the files."""
    from pose.export import open_selection
    from pose.export.c3d import write
    from pose.export.events import GENERAL, ExportEvent

    recording, written = open_selection(poses), []
    for person in sorted({event.person for event in analysis.events}):
        others = [event for event in analysis.events if event.person == person and event.group != "gait"]
        track = recording.track(person, recording.uniform)
        if track is not None:
            events = [
                ExportEvent(event_of_person.time, event_of_person.name, event_of_person.side.capitalize() or GENERAL)
                for event_of_person in others
            ]
            record.move_user_file(target := folder / C3D.format(person))
            write(track, target, events)
            written.append(target)
    return written


def summary_lines(analysis: "Analysis", files: Sequence[Path]) -> list[str]:
    """Return two lines: what was found of how many people, and where the results are."""
    people = len({one.person for one in analysis.metrics} | {one.person for one in analysis.omissions})
    groups: dict[str, set[int]] = {}
    for metric in analysis.metrics:
        groups.setdefault(metric.group, set()).add(metric.person)
    found = ", ".join(f"{group} of {len(of)}" for group, of in groups.items()) or "no measures"
    first = f"analysis: {people} {'person' if people == 1 else 'people'}; {found}"
    report = next((file for file in files if file.suffix == ".html"), None)
    return [first, f"report: {report}" if report else f"results: {', '.join(map(str, files))}"]


def analysis_lines(analysis: "Analysis") -> list[str]:
    """Format an analysis as lines for the terminal: one per metric, and one per group without metrics."""
    lines = [] if analysis.metrics or analysis.omissions else ["no metrics: the result contains no person"]
    for metric in (one for one in analysis.metrics if one.group != "angles"):
        value = f"{_amount(metric)}; {metric.quality})"
        lines.append(
            "; ".join(filter(None, (f"person {metric.person}, {metric.name}: {value}", metric.note, metric.doubt)))
        )
    for person in sorted({curve.person for curve in analysis.curves}):
        count = sum(curve.person == person for curve in analysis.curves)
        lines.append(f"person {person}, angles: {count} curves over the cycle of a movement")
    lines += [f"person {one.person}, {one.group}: none ({one.reason})" for one in analysis.omissions]
    return lines


def _amount(metric: "Metric") -> str:
    """Format value, unit and interval of a metric, without the closing bracket; shares are in per cent."""
    if metric.unit == "share":
        return f"{metric.value:.1%} ({metric.low:.1%} to {metric.high:.1%}"
    unit = "" if metric.unit == "score" else f" {metric.unit}"
    return f"{metric.value:.3g}{unit} ({metric.low:.3g} to {metric.high:.3g}"


def analysed(
    poses: Path, folder: Path, video: str, warn: Callable[[str], None], *, beside: bool
) -> tuple[list[Path], list[str], list[str]]:
    """Analyse the result of a run of `pose-run`; return files, summary lines and problems."""
    try:
        analysis, files = write_analysis(poses, folder, video=Path(video), warn=warn, beside=beside)
    except PoseError as error:
        return [], [], [str(error)]
    return files, ["; ".join(summary_lines(analysis, files))], []
