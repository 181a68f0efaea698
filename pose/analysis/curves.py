"""Joint angles over the cycles of a walk or of a repeated movement: mean, deviation, range, left-right difference.

Hips, knees, shoulders, elbows and neck are those of `pose.body.joint_angles`. This module adds pelvis and trunk. Ankle
angles come from `pose.world.foot_points` and need detected heels and toes. `pose.analysis.plausible.unobserved_angles`
states why there are no wrist angles and no pelvic tilt.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from pose.analysis.metrics import BODY, LEGS, NORMAL_95, SAGITTAL, Curve, Metric, mean_interval, quality, view_angle
from pose.analysis.norms import CHILDREN, POINTS, Norms
from pose.analysis.plausible import measured_plane
from pose.analysis.repetitions import find_repetitions, movement_name
from pose.body.gait import analyse_gait
from pose.body.joint_angles import NAMES, joint_angles
from pose.body.segments import MAX_GAP_S, SIDES, Motion
from pose.structures.types import F64
from pose.world.foot_points import ANKLE_SD

METHOD_ERRORS = Path(__file__).with_name("method_errors.csv")  # by benchmarks.analysis method-errors
COLUMNS = ("error", "range", "difference")
ANY, VIEWS = "any", ("side", "oblique", "front")  # by the angle between line of sight and sagittal plane
SIDE_DEGREES, FRONT_DEGREES = 60.0, 30.0
MAX_ABDUCTION_DEGREES = 60.0  # degrees; shoulder flexion is undefined beyond it
UP = np.array([0.0, 1.0, 0.0])


@dataclass(frozen=True, slots=True)
class MethodError:
    """Standard deviations of the errors of a lifted angle, degrees (docs/reference/method-errors.md)."""

    error: float  # of the angle in a frame
    range: float  # of the mean range of motion over cycles
    difference: float  # of the left-right difference of this range


def view_of(motion: Motion, start: float = -np.inf, end: float = np.inf) -> str:
    """Return from where a person is filmed between two times: side, oblique, front (or back), or any if unknown."""
    if motion.camera is None:
        return ANY
    angle = view_angle(motion, (motion.times >= start - 1e-6) & (motion.times <= end + 1e-6), SAGITTAL)
    return VIEWS[0] if angle >= SIDE_DEGREES else VIEWS[2] if angle < FRONT_DEGREES else VIEWS[1]


@cache
def method_errors() -> dict[tuple[str, str], MethodError]:
    """Return the errors of each angle from each view, by (angle, view)."""
    with METHOD_ERRORS.open(encoding="utf-8", newline="") as file:
        rows = [
            (row["angle"], row["view"], [float(row[name] or "nan") for name in COLUMNS]) for row in csv.DictReader(file)
        ]
    # Ankles were measured against force plates' shoes, not against lifted feet: the errors of a range and of a
    # difference follow from that of an angle.
    ankle = MethodError(ANKLE_SD, ANKLE_SD * 2**0.5, ANKLE_SD * 2)
    return {(angle, view): MethodError(*values) for angle, view, values in rows} | {
        ("ankle flexion", view): ankle for view in (ANY, *VIEWS)
    }


def body_angles(motion: Motion) -> dict[tuple[str, str], F64]:
    """Return every angle over time, (T,) degrees, by (name, side); side is '' for the angles of trunk and neck."""
    found = joint_angles(motion.joints, motion.sigma, UP).degrees
    columns = dict(zip(NAMES, found.T, strict=True))
    angles: dict[tuple[str, str], F64] = {}
    hips = motion.joint("left_hip") - motion.joint("right_hip")
    shoulders = motion.joint("left_shoulder") - motion.joint("right_shoulder")
    forward = motion.facing
    left = np.stack([forward[:, 2], np.zeros(len(forward)), -forward[:, 0]], axis=1)
    tilt = np.degrees(np.arctan2(hips[:, 1], np.hypot(hips[:, 0], hips[:, 2])))  # left side up
    turn = np.degrees(np.arctan2(_dot(hips, forward), _dot(hips, left)))  # left side forward
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
        for joint, end in (("hip", "knee"), ("shoulder", "elbow")):
            angles[f"{joint} flexion", side] = _overhead(columns[f"{side}_{joint}_flexion"])
            angles[f"{end} flexion", side] = columns[f"{side}_{end}_flexion"]
        angles["hip adduction", side] = -columns[f"{side}_hip_abduction"]
        angles["shoulder abduction", side] = columns[f"{side}_shoulder_abduction"]
        angles["shoulder elevation", side] = columns[f"{side}_shoulder_elevation"]
        angles["pelvis obliquity", side] = sign * tilt
        angles["pelvis rotation", side] = sign * turn
    trunk = motion.joint("thorax") - motion.joint("pelvis")
    angles["trunk flexion", ""] = np.degrees(np.arctan2(_dot(trunk, forward), trunk[:, 1]))
    angles["trunk bending", ""] = -np.degrees(np.arctan2(_dot(trunk, left), trunk[:, 1]))  # to the right
    chest = np.degrees(np.arctan2(_dot(shoulders, forward), _dot(shoulders, left)))
    angles["trunk rotation", ""] = turn - chest  # of the chest on the pelvis, to the left
    angles["neck flexion", ""] = columns["neck_flexion"]
    if motion.ankles is not None:
        for column, side in enumerate(SIDES):
            angles["ankle flexion", side] = _bridged(motion.ankles[:, column], motion.times)
    return angles


def _bridged(values: F64, times: F64) -> F64:
    """Return values (T,) with gaps of at most `MAX_GAP_S` interpolated."""
    known = np.flatnonzero(np.isfinite(values))
    if len(known) < 2:
        return values
    filled = np.interp(times, times[known], values[known], np.nan, np.nan)
    after = np.clip(np.searchsorted(known, np.arange(len(times))), 1, len(known) - 1)
    long = times[known[after]] - times[known[after - 1]] > MAX_GAP_S
    return np.where(np.isfinite(values), values, np.where(long, np.nan, filled))


def is_defined(angles: dict[tuple[str, str], F64], angle: str, side: str) -> F64:
    """Return (T,) 1.0 for frames in which an angle is defined, else 0.0."""
    # Shoulder flexion is undefined while the arm is raised sideways by `MAX_ABDUCTION_DEGREES` or more.
    values = angles[angle, side]
    if angle != "shoulder flexion":
        return np.isfinite(values).astype(float)
    return np.asarray((np.abs(angles["shoulder abduction", side]) < MAX_ABDUCTION_DEGREES).astype(float))


def _overhead(degrees: F64) -> F64:
    """Wrap from -180..180 to -90..270, so that raised limbs pass the vertical without a jump."""
    return np.asarray(np.where(degrees < -90, degrees + 360, degrees))


def _dot(a: F64, b: F64) -> F64:
    return np.asarray((a * b).sum(axis=1))


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
