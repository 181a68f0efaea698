"""The plots of a report, as self-contained SVG."""

import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from pose.errors import PoseError
from pose.training.evaluation.results import EvaluationResult, benchmark_of, latency_of
from pose.training.evaluation.scores import Summary
from pose.training.evaluation.table import SHORT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours that colour-blind readers can distinguish (Okabe and Ito).
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")


def require_matplotlib() -> None:
    """Check that matplotlib is installed.

    Raises:
        PoseError: If matplotlib is missing. The message has the command that installs it.
    """
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
