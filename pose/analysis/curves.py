"""Joint angles over the cycles of a walk or of a repeated movement: mean, deviation, range, left-right difference."""

from dataclasses import dataclass

import numpy as np

from pose.analysis.body_angles import MethodError, body_angles, is_defined, method_errors, view_of
from pose.analysis.metrics import BODY, LEGS, NORMAL_95, Curve, Metric, mean_interval, quality
from pose.analysis.norms import CHILDREN, POINTS, Norms
from pose.analysis.plausible import measured_plane
from pose.analysis.repetitions import find_repetitions, movement_name
from pose.body.gait import analyse_gait
from pose.body.segments import SIDES, Motion
from pose.structures.types import F64

MIN_CYCLES = 2  # minimum number of cycles for a standard deviation
FEW_CYCLES = 6


@dataclass(frozen=True, slots=True)
class _Cycles:
    """Cycles of one movement, such as the strides of a walk: spans (start, end) in s by side ('' without a side)."""

    movement: str
    spans: dict[str, list[tuple[float, float]]]  # (start, end) s of the cycles by side; '' for angles without a side


def angle_curves(person: int, motion: Motion, norms: Norms = CHILDREN) -> tuple[list[Metric], list[Curve], str]:
    """Compute joint angle curves over the cycles of a movement and their metrics; the text says why there are none."""
    metrics: list[Metric] = []
    curves: list[Curve] = []
    methods: dict[str, MethodError] = {}  # by name of the metric
    angles: dict[tuple[str, str], F64] | None = None
    for cycles in _all_cycles(motion):
        angles = body_angles(motion) if angles is None else angles
        for (angle, side), degrees in angles.items():
            spans = cycles.spans.get(side, [])
            if len(spans) < MIN_CYCLES or not _is_defined_in(angles, angle, side, motion.times, spans):
                continue
            rows = np.stack([_normalised(degrees, motion.times, *span) for span in spans])
            method = method_errors()[angle, view_of(motion, spans[0][0], spans[-1][1])]
            metric = _range(person, motion, cycles.movement, angle, side, rows, spans, method)
            methods[metric.name] = method
            metrics.append(metric)
            curves.append(_curve(person, cycles.movement, angle, side, rows, metric, norms, method))
    if not curves:
        return [], [], f"fewer than {MIN_CYCLES} strides or complete repetitions"
    return [*metrics, *_differences(metrics, methods)], curves, ""


def _all_cycles(motion: Motion) -> list[_Cycles]:
    cycles = []
    gait = analyse_gait(motion)
    strides = [stride for stride in gait.strides if stride.straight]
    if strides:
        by_side = {side: [(item.start, item.end) for item in strides if item.side == side] for side in SIDES}
        by_side[""] = max(by_side.values(), key=len)
        cycles.append(_Cycles("running" if gait.running else "walking", by_side))
    repetitions = find_repetitions(motion)
    spans = [(item.start, item.end) for item in repetitions.items if item.complete]
    if spans:
        cycles.append(_Cycles(movement_name(repetitions.courses, motion.movement), dict.fromkeys((*SIDES, ""), spans)))
    return cycles


def _is_defined_in(
    angles: dict[tuple[str, str], F64], angle: str, side: str, times: F64, spans: list[tuple[float, float]]
) -> bool:
    """Return whether an angle is defined in all of the cycles."""
    known = is_defined(angles, angle, side)
    return all(bool((_normalised(known, times, *span) > 0.999).all()) for span in spans)


def _normalised(degrees: F64, times: F64, start: float, end: float) -> F64:
    """Return the angle (101,) at 0 to 100 % of one cycle, interpolated linearly."""
    return np.asarray(np.interp(np.linspace(start, end, POINTS), times, degrees))


def _range(
    person: int, motion: Motion, movement: str, angle: str, side: str, rows: F64, spans: list[tuple[float, float]],
    method: MethodError,
) -> Metric:  # fmt: skip
    """Return the metric of the range of motion: maximum minus minimum within each cycle."""
    ranges = np.ptp(rows, axis=1).tolist()
    start, end, count = min(a for a, _ in spans), max(b for _, b in spans), len(spans)
    mean, low, high = mean_interval(ranges, method.range)
    few = f"{count} cycles" if count < FEW_CYCLES and movement in ("walking", "running") else ""
    leg = angle.startswith(("hip", "knee", "ankle"))
    flag, doubt = quality(motion, start, end, LEGS if leg else BODY, plane=measured_plane(angle, movement), few=few)
    name = f"{movement}: {angle}{f', {side}' if side else ''}: range of motion"
    return Metric(
        person, "angles", name, mean, max(low, 0.0), high, "degrees", flag, start, end, count, doubt=doubt
    )  # fmt: skip


def _curve(
    person: int, movement: str, angle: str, side: str, rows: F64, metric: Metric, norms: Norms, method: MethodError
) -> Curve:
    norm = norms.of(movement, angle)
    return Curve(
        person, movement, angle, side, _values(rows.mean(axis=0)), _values(rows.std(axis=0, ddof=1)), method.error,
        metric.quality, metric.start, metric.end, metric.count,
        *((_values(norm[0]), _values(norm[1])) if norm else ((), ())),
    )  # fmt: skip


def _differences(metrics: list[Metric], methods: dict[str, MethodError]) -> list[Metric]:
    """Return the left-right differences of the range of motion: left minus right."""
    by_name = {metric.name: metric for metric in metrics}
    differences = []
    for left in metrics:
        right = by_name.get(left.name.replace(", left:", ", right:"))
        if right is None or right is left or "pelvis" in left.name:  # the pelvis has no sides
            continue
        difference = left.value - right.value
        half = _half(left, right, methods[left.name], methods[right.name])
        name = left.name.replace(", left: range of motion", ": range of motion, left less right")
        worse = max(left, right, key=lambda one: ("green", "amber", "red").index(one.quality))
        differences.append(
            Metric(
                left.person, "angles", name, difference, difference - half, difference + half, "degrees",
                worse.quality, min(left.start, right.start), max(left.end, right.end), min(left.count, right.count),
                doubt=worse.doubt,
            )
        )  # fmt: skip
    return differences


def _half(left: Metric, right: Metric, first: MethodError, second: MethodError) -> float:
    """Return half the interval of a left-right difference, from the spread of both sides and the method's error."""
    pairs = ((left, first), (right, second))
    spreads = [((one.high - one.value) / NORMAL_95) ** 2 - method.range**2 for one, method in pairs]
    return NORMAL_95 * float(np.sqrt(max(sum(spreads), 0.0) + max(first.difference, second.difference) ** 2))


def _values(row: F64) -> tuple[float, ...]:
    return tuple(round(float(value), 3) for value in row)
