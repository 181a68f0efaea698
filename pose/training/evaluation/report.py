"""HTML report of an evaluation: one self-contained file with tables, and plots as inline SVG."""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING

from pose.errors import PoseError
from pose.training.evaluation.results import EvaluationResult, benchmark_of, latency_of, tables
from pose.training.evaluation.scores import Summary
from pose.training.evaluation.table import (
    SHORT,
    Table,
    footnote,
    lookahead_table,
    measure_table,
    part_table,
    speed_table,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Additions to the style sheet of the live page, which defines the colours.
_STYLE = """
body { font-size: 15px; margin: 2rem auto; padding: 0 1rem; max-width: 76rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; background: var(--card); }
th, td { padding: .25rem .55rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { text-align: left; } .averaged td:last-child { font-weight: 600; }
figure { margin: 1rem 0; padding: .75rem; } figcaption { position: static; font-size: .85rem; }
svg { max-width: 100%; height: auto; background: #fff; border-radius: 6px; } code { overflow-wrap: anywhere; }
"""


def html_report(results: Sequence[EvaluationResult]) -> str:
    """Return the HTML page of the results, with one section per benchmark."""
    sections = "\n".join(_section(group) for group in tables(results))
    names = ", ".join(dict.fromkeys(result["name"] for result in results))
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>pose-eval: {escape(names)}</title><style>{_page_style()}{_STYLE}</style></head>\n"
        f"<body><h1>pose-eval: {escape(names)}</h1>\n{sections}\n</body></html>\n"
    )


def _page_style() -> str:
    return (files("pose.live.web") / "static" / "style.css").read_text(encoding="utf-8")


def _section(results: list[EvaluationResult]) -> str:
    benchmark = benchmark_of(results[0])
    parts = [f"<h2>{escape(benchmark.title)}</h2>"]
    parts.extend(_table(measure_table(results, name)) for name in benchmark.measures)
    if note := footnote(results):
        parts.append(f"<p>{escape(note)}</p>")
    parts.append(_figure("Error by action", by_action(results)))
    parts.append(_figure("Error by joint, relative to the pelvis", by_joint(results)))
    if curves := [result for result in results if result["lookahead"]]:
        parts.append(_figure("Accuracy against latency", latency(curves)))
        parts.extend(_table(lookahead_table(result)) for result in curves)
    for result in results:
        parts.extend(_details(result))
    parts.append(_table(speed_table(results)))
    return "\n".join(parts)


def _details(result: EvaluationResult) -> list[str]:
    name = result["name"]
    parts = [f"<h2>{escape(name)}</h2>"]
    if result["sha256"]:
        parts.append(f"<p>Weights: SHA-256 <code>{escape(result['sha256'])}</code></p>")
    if result["over_time"]:
        parts.append(
            _figure(f"{name}: error over time of the best, the median and the worst sequence", over_time(result))
        )
    if calibration := result["calibration"]:
        inside = 100 * calibration["inside_one_sigma"]
        caption = f"{name}: {inside:.1f} % of errors lie within one sigma (expected: 68 %)"
        parts.append(_figure(caption, uncertainty(result)))
    return [*parts, *(_table(part_table(result, part)) for part in ("joints", "cameras", "subjects"))]


def _figure(caption: str, svg: str) -> str:
    return f"<figure>{svg}<figcaption>{escape(caption)}</figcaption></figure>"


def _table(table: Table) -> str:
    heads = "".join(f"<th>{escape(head)}</th>" for head in table.heads)
    rows = "\n".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows)
    kind = ' class="averaged"' if table.averaged else ""
    body = f"<table{kind}><thead><tr>{heads}</tr></thead><tbody>\n{rows}\n</tbody></table>"
    return f'<h3>{escape(table.title)}</h3><div class="scroll">{body}</div>'


# Colours that colour-blind readers can distinguish (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def require_matplotlib() -> None:
    """Raise a PoseError with the command that installs matplotlib if it is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise PoseError("the report needs matplotlib: pip install 'pose-run[human36m]', or give --no-report") from error


def figure(draw: Callable[["Axes"], None], width: float = 9.0, height: float = 3.6) -> str:
    """Render a plot as one <svg> element. The output is deterministic."""
    import matplotlib
    from matplotlib.figure import Figure

    canvas = Figure(figsize=(width, height), layout="constrained")
    axes = canvas.add_subplot()
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    draw(axes)
    text = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": "pose-eval", "svg.fonttype": "none", "font.family": "sans-serif"}):
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    svg = text.getvalue()
    return svg[svg.index("<svg") :]


def by_action(results: Sequence[EvaluationResult]) -> str:
    """Plot the MPJPE of each action as SVG, one bar per method, with flip augmentation where evaluated."""
    groups = [
        name for name in benchmark_of(results[0]).groups if any(name in _best(result)["actions"] for result in results)
    ]
    labels = [SHORT.get(group, group) for group in groups]
    series = {_label(result): [_value(_best(result)["actions"].get(group)) for group in groups] for result in results}
    return figure(lambda axes: _bars(axes, labels, series))


def by_joint(results: Sequence[EvaluationResult]) -> str:
    """Plot the MPJPE of each joint except the pelvis (the origin), with one bar per method, as SVG."""
    joints = [joint for joint in _best(results[0])["joints"] if joint != "pelvis"]
    labels = [joint.replace("right_", "r. ").replace("left_", "l. ") for joint in joints]
    series = {_label(result): [_value(_best(result)["joints"][joint]) for joint in joints] for result in results}
    return figure(lambda axes: _bars(axes, labels, series))


def over_time(result: EvaluationResult) -> str:
    """Plot the error over time of the best, the median and the worst sequence, as SVG."""

    def draw(axes: "Axes") -> None:
        for colour, line in zip(COLOURS, result["over_time"], strict=False):
            step = line["frames_a_point"] / result["fps"]
            values = [float("nan") if value is None else value for value in line["mpjpe"]]
            label = f"{line['which']}: {line['key']}"
            axes.plot([step * i for i in range(len(values))], values, color=colour, lw=1.2, label=label)
        axes.set(xlabel="seconds", ylabel="MPJPE (mm)", ylim=(0, None))
        axes.legend(frameon=False, fontsize=8)

    return figure(draw)


def uncertainty(result: EvaluationResult) -> str:
    """Plot the 68th percentile of errors against the predicted sigma, as SVG. The diagonal is perfectly calibrated."""
    bins = result["calibration"]["by_sigma"] if result["calibration"] else []
    rows = [row for row in bins if row["joints"] >= 30] or bins
    sigma = [row["sigma"] for row in rows]
    from matplotlib.ticker import LogLocator, NullLocator

    def draw(axes: "Axes") -> None:
        axes.plot(sigma, sigma, color="0.6", ls="--", lw=1, label="perfectly calibrated")
        axes.plot(sigma, [row["error_68"] for row in rows], "o-", color=COLOURS[0], ms=4, label=result["name"])
        axes.set(xlabel="predicted sigma (mm)", ylabel="68 % of errors are below (mm)", xscale="log", yscale="log")
        axes.set_aspect("equal")
        for axis in (axes.xaxis, axes.yaxis):  # ticks 10, 20, 50, 100, ...
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_locator(NullLocator())
        axes.grid(axis="x", alpha=0.3)
        axes.legend(frameon=False, fontsize=8)

    return figure(draw, width=5.5, height=4.6)


def latency(results: Sequence[EvaluationResult]) -> str:
    """Plot the MPJPE of streaming lifters against their latency, on a square-root axis, as SVG."""
    latencies = [latency_of(point) for result in results for point in result["lookahead"]]
    delays = {delay: frames for frames, delay in latencies}

    def draw(axes: "Axes") -> None:
        for colour, result in zip(COLOURS, results, strict=False):
            points = result["lookahead"]
            positions = [math.sqrt(latency_of(point)[1]) for point in points]
            axes.plot(positions, [_value(point) for point in points], "o-", color=colour, label=result["name"])
        labels = [f"{delay:.0f} ms\n{frames} frames" for delay, frames in delays.items()]
        axes.set_xticks([math.sqrt(delay) for delay in delays], labels, fontsize=8)
        axes.set(xlabel="latency (square-root scale)", ylabel="MPJPE (mm)")
        axes.ticklabel_format(axis="y", useOffset=False)
        axes.legend(frameon=False, fontsize=8)

    return figure(draw, width=6.5, height=4.2)


def _best(result: EvaluationResult) -> Summary:
    return list(result["variants"].values())[-1]


def _label(result: EvaluationResult) -> str:
    """Return a label with the names of the method and of its last variant."""
    return f"{result['name']}, {list(result['variants'])[-1]}"


def _value(values: Mapping[str, float | None] | None) -> float:
    value = values["mpjpe"] if values else None
    return float("nan") if value is None else float(value)


def _bars(axes: "Axes", labels: Sequence[str], series: dict[str, list[float]]) -> None:
    width = 0.8 / len(series)
    for index, (name, values) in enumerate(series.items()):
        positions = [group + (index - (len(series) - 1) / 2) * width for group in range(len(labels))]
        axes.bar(positions, values, width, color=COLOURS[index % len(COLOURS)], label=name)
    axes.set_xticks(range(len(labels)), labels, rotation=45, ha="right", fontsize=8)
    axes.set_ylabel("MPJPE (mm)")
    if len(series) > 1:
        axes.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0, 1), ncols=len(series))
