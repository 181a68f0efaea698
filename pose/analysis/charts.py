"""Charts of a report as SVG elements: curves over a cycle with bands, and steps over time."""

import math
from collections.abc import Sequence
from itertools import pairwise

from pose.analysis.metrics import Curve, Series
from pose.utils.shown import shown_in_html

WIDTH, HEIGHT = 340.0, 200.0
LEFT, RIGHT, TOP, BOTTOM = 40.0, 14.0, 10.0, 34.0
MIN_SPAN_DEGREES = 5.0  # minimum range of a chart, degrees
MAX_POINTS = 600  # maximum number of drawn points; a longer series is drawn as the maximum of each interval
_CLASSES = {"left": "l", "right": "r", "": "m"}


def cycle_chart(curves: Sequence[Curve], unit: str) -> str:
    """Draw the mean and one standard deviation of an angle for each side, with the published norm, as SVG."""
    first = curves[0]
    rows = [(curve.mean, curve.sd) for curve in curves]
    rows += [(first.norm_mean, first.norm_sd)] if first.norm_mean else []
    low = min(mean - sd for means, sds in rows for mean, sd in zip(means, sds, strict=True))
    high = max(mean + sd for means, sds in rows for mean, sd in zip(means, sds, strict=True))
    plot = _Plot((0.0, 100.0), (low, max(high, low + MIN_SPAN_DEGREES)))
    parts = [plot.axes(f"% of the {unit}", "degrees")]
    if first.norm_mean:
        parts.append(plot.band(first.norm_mean, first.norm_sd, "n"))
    parts += [plot.band(curve.mean, curve.sd, _CLASSES[curve.side]) for curve in curves]
    parts += [plot.line(range(len(curve.mean)), curve.mean, _CLASSES[curve.side]) for curve in curves]
    return plot.svg("".join(parts), f"{first.angle} over the {unit}, degrees")


def series_chart(series: Series) -> str:
    """Draw a value over time as a step chart in SVG."""
    times, values = _thinned(series)
    plot = _Plot((times[0], max(times[-1], times[0] + 1e-3)), (0.0, max(1.0, *values)))
    xs = [x for pair in pairwise(times) for x in pair] or list(times)
    ys = [y for y in values[:-1] for _ in range(2)] or list(values)
    body = plot.axes("time, s", series.unit) + plot.line(xs, ys, "m")
    return plot.svg(body, f"{series.name} over time, {series.unit}")


def _thinned(series: Series) -> tuple[list[float], list[float]]:
    step = -(-len(series.times) // MAX_POINTS)
    starts = range(0, len(series.times), step)
    return [series.times[at] for at in starts], [max(series.values[at : at + step]) for at in starts]


class _Plot:
    """Mapping of data coordinates to the area of a chart."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._x = x
        self._ticks = _ticks(*y)
        self._y = min(y[0], self._ticks[0]), max(y[1], self._ticks[-1])

    def _px(self, x: float) -> float:
        return LEFT + (x - self._x[0]) / (self._x[1] - self._x[0]) * (WIDTH - LEFT - RIGHT)

    def _py(self, y: float) -> float:
        return HEIGHT - BOTTOM - (y - self._y[0]) / (self._y[1] - self._y[0]) * (HEIGHT - TOP - BOTTOM)

    def axes(self, x_label: str, y_label: str) -> str:
        """Draw grid, tick values and axis labels with units."""
        parts = []
        for tick in self._ticks:
            y = self._py(tick)
            parts.append(f'<path class="g{" z" if tick == 0 else ""}" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            parts.append(f'<text x="{LEFT - 4}" y="{y + 3.5:.1f}" text-anchor="end">{tick:g}</text>')
        for tick in _ticks(*self._x):
            if self._x[0] <= tick <= self._x[1]:
                x = self._px(tick)
                parts.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 13}" text-anchor="middle">{tick:g}</text>')
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(f'<text x="{middle}" y="{HEIGHT - 4}" text-anchor="middle">{shown_in_html(x_label)}</text>')
        at = (TOP + HEIGHT - BOTTOM) / 2
        turned = f'transform="rotate(-90 10 {at})"'
        parts.append(f'<text x="10" y="{at}" text-anchor="middle" {turned}>{shown_in_html(y_label)}</text>')
        return "".join(parts)

    def line(self, xs: Sequence[float], ys: Sequence[float], kind: str) -> str:
        """Draw a line through points."""
        return f'<path class="c {kind}" d="M{self._points(xs, ys)}"/>'

    def band(self, means: Sequence[float], deviations: Sequence[float], kind: str) -> str:
        """Draw a band of one standard deviation around a mean, over the percent of the cycle."""
        xs = list(range(len(means)))
        above = [mean + sd for mean, sd in zip(means, deviations, strict=True)]
        below = [mean - sd for mean, sd in zip(means, deviations, strict=True)]
        points = self._points([*xs, *reversed(xs)], [*above, *reversed(below)])
        return f'<path class="b {kind}" d="M{points}Z"/>'

    def _points(self, xs: Sequence[float], ys: Sequence[float]) -> str:
        return "L".join(f"{self._px(x):.1f} {self._py(y):.1f}" for x, y in zip(xs, ys, strict=True))

    def svg(self, body: str, label: str) -> str:
        """Return the SVG element."""
        box = f"0 0 {WIDTH:g} {HEIGHT:g}"
        return f'<svg viewBox="{box}" role="img" aria-label="{shown_in_html(label)}">{body}</svg>'


def _ticks(low: float, high: float) -> list[float]:
    """Return four to eight round numbers that enclose the range from `low` to `high`."""
    raw = max(high - low, 1e-6) / 5
    power = 10 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]
