"""Text tables of results, laid out as in papers: one row per method and measure, one column per action."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pose.training.evaluation.results import EvaluationResult, benchmark_of, latency_of
from pose.training.evaluation.scores import MEASURES, THRESHOLD_MEASURES

# Name of a measure -> heading, decimals.
COLUMNS = {name: (measure.heading, measure.decimals) for name, measure in MEASURES.items()} | THRESHOLD_MEASURES
SHORT = {
    "Directions": "Dir.", "Discussion": "Disc.", "Eating": "Eat", "Greeting": "Greet", "Phoning": "Phone",
    "Photo": "Photo", "Posing": "Pose", "Purchases": "Purch.", "Sitting": "Sit", "SittingDown": "SitD.",
    "Smoking": "Smoke", "Waiting": "Wait", "WalkDog": "WalkD.", "Walking": "Walk", "WalkTogether": "WalkT.",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text cells. The first cell of a row is the name of the row."""

    title: str  # title of the table
    heads: tuple[str, ...]  # column headings
    rows: tuple[tuple[str, ...], ...]  # cells of each row, as text
    scope: str = ""  # title of the benchmark, appended to the title if the table is printed alone
    averaged: bool = False  # whether the last column is the average of the other columns

    def text(self) -> str:
        """Return the table as text, with columns aligned by spaces."""
        lines = [self.heads, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.heads))]
        body = [
            "  ".join(
                [line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))]
            )
            for line in lines
        ]
        title = f"{self.title}: {self.scope}" if self.scope else self.title
        return "\n".join([title, body[0], "-" * len(body[0]), *body[1:]])


def measure_table(results: Sequence[EvaluationResult], measure: str) -> Table:
    """Make the table of one measure: one row per method and variant, one column per action, and the average."""
    benchmark = benchmark_of(results[0])
    assert all(result["benchmark"] == results[0]["benchmark"] for result in results)
    name, digits = COLUMNS[measure]
    present = [group for group in benchmark.groups if any(group in _actions(result) for result in results)]
    rows = []
    for result in results:
        for variant, summary in result["variants"].items():
            values = [summary["actions"].get(group, {}).get(measure) for group in present]
            cells = [_cell(value, digits) for value in (*values, summary["average"][measure])]
            rows.append((f"{result['name']}, {variant}", *cells))
    heads = ("", *(SHORT.get(group, group) for group in present), "Avg.")
    return Table(name, heads, tuple(rows), benchmark.title, averaged=True)


def footnote(results: Sequence[EvaluationResult]) -> str:
    """Return what distinguishes the input of our lifters from that of methods in papers; empty without a lifter."""
    if not any(result["sha256"] for result in results) or benchmark_of(results[0]).input_2d == "given":
        return ""
    return (
        "Lifters get undistorted 2D and the camera's intrinsics. Most methods in papers get distorted pixels without "
        "intrinsics."
    )


def part_table(result: EvaluationResult, part: Literal["joints", "cameras", "subjects"]) -> Table:
    """Make the table of all measures by joint, camera or subject, with flip augmentation where evaluated."""
    variant, summary = list(result["variants"].items())[-1]
    measures = [one for one in benchmark_of(result).measures if one in next(iter(summary[part].values()))]
    rows = [
        (name, *(_cell(values[measure], COLUMNS[measure][1]) for measure in measures))
        for name, values in summary[part].items()
    ]
    heads = ("", *(COLUMNS[measure][0] for measure in measures))
    return Table(f"By {part.removesuffix('s')}, {variant}", heads, tuple(rows), benchmark_of(result).title)


def lookahead_table(result: EvaluationResult) -> Table:
    """Make the table of one result's accuracy with each look-ahead."""
    measures = ("mpjpe", "p_mpjpe", "mpjve", "accel")
    rows = [
        (str(frames), f"{delay:.0f}", *(_cell(point[m], COLUMNS[m][1]) for m in measures))
        for point in result["lookahead"]
        for frames, delay in [latency_of(point)]
    ]
    heads = ("look-ahead (frames)", "latency (ms)", *(COLUMNS[measure][0] for measure in measures))
    return Table(f"Accuracy against latency: {result['name']}", heads, tuple(rows), benchmark_of(result).title)


def speed_table(results: Sequence[EvaluationResult]) -> Table:
    """Make the table of speeds: frames per second of the lifter and of the metrics, one row per method."""
    rows = []
    for result in results:
        speed = result["speed"]
        fraction = speed["metrics_seconds"] / speed["lifter_seconds"] if speed["lifter_seconds"] else None
        rows.append(
            (
                result["name"],
                _cell(speed["lifter_frames_per_second"], 0),
                _cell(speed["metrics_frames_per_second"], 0),
                "-" if fraction is None else f"{100 * fraction:.1f} %",
            )
        )
    return Table("Speed", ("", "lifter (frames/s)", "metrics (frames/s)", "metrics' time / lifter's"), tuple(rows))


def _actions(result: EvaluationResult) -> set[str]:
    return {action for summary in result["variants"].values() for action in summary["actions"]}


def _cell(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
