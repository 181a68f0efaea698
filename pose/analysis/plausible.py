"""Values that no body can have, and differences that the view cannot show. They are left out, with a reason.

Source of the ranges of motion: American Academy of Orthopaedic Surgeons, Joint Motion, 1965. In walking an ankle moves
by 30 degrees (Perry, Gait Analysis, 1992); twice that is the limit. The other limits are choices.
"""

from dataclasses import dataclass, replace

from pose.analysis.metrics import AMBER, GREEN, NORMAL_95, Curve, Metric
from pose.analysis.norms import CHILDREN, Norms
from pose.analysis.quality import FRONTAL, SAGITTAL, VIEW_DEGREES, view_angle
from pose.body.segments import Motion

RANGE = ": range of motion"
DIFFERENCE = ", left less right"
RANGES = {  # degrees, from one end of a joint's range to the other
    "hip flexion": 150.0, "hip adduction": 75.0, "knee flexion": 150.0, "ankle flexion": 70.0, "elbow flexion": 150.0,
    "shoulder flexion": 240.0, "shoulder abduction": 180.0, "shoulder elevation": 180.0, "neck flexion": 90.0,
}  # fmt: skip
MARGIN = 1.1  # people differ: a value may exceed its limit by this factor
WALKING_ANKLE_DEGREES = 60.0
# Smallest and largest value by the end of a metric's name. Sprinters reach 12.4 m/s, hands of throwers 25 m/s, and step
# widths are below a leg.
LIMITS = {
    "knee valgus after landing": (-40.0, 40.0),
    "knee flexion after landing": (-10.0, 160.0),
    "height from flight time": (0.0, 1.3),
    "height from pelvis": (0.0, 1.3),
    "hand speed": (0.0, 30.0),
    "speed": (0.0, 12.5),
    "step width": (0.0, 0.8),
}
_FRONTAL_EXERCISES = ("side lunge", "arm raise", "one-arm raise", "jumping jack")
_SAGITTAL_EXERCISES = ("squat", "lunge", "forward bend", "leg raise")


@dataclass(frozen=True, slots=True)
class Kept:
    """The metrics and curves of a person that can be true."""

    metrics: list[Metric]
    curves: list[Curve]
    reasons: list[str]  # why others are left out


def plausible(metrics: list[Metric], curves: list[Curve], parts: list[Motion]) -> Kept:
    """Leave out impossible values with all that follows from them, and differences that the view cannot show."""
    reasons = {metric.name: reason for metric in metrics if (reason := impossible_reason(metric))}
    gone = {name.removesuffix(RANGE) for name in reasons}
    pairs = {name.replace(", left", "").replace(", right", "") for name in gone}
    kept = []
    for metric in metrics:
        base = metric.name.removesuffix(RANGE + DIFFERENCE)
        if metric.name in reasons or (base != metric.name and base in pairs):
            continue
        if reason := unshown_reason(metric, parts):
            reasons[metric.name] = reason
        else:
            kept.append(metric)
    left = [one for one in curves if f"{one.movement}: {one.angle}{f', {one.side}' if one.side else ''}" not in gone]
    return Kept(kept, left, [f"{name}: {reason}" for name, reason in reasons.items()])


def impossible_reason(metric: Metric) -> str:
    """Return why no body can have the value of a metric; empty if one can."""
    limits = next((limits for name, limits in LIMITS.items() if metric.name.endswith(name)), None)
    if metric.name.endswith(RANGE):
        movement, angle = _movement_and_angle(metric)
        most = MARGIN * RANGES[angle] if angle in RANGES else None
        if (movement, angle) == ("walking", "ankle flexion"):
            most = WALKING_ANKLE_DEGREES
        limits = None if most is None else (0.0, most)
    if limits is None or limits[0] <= metric.value <= limits[1]:
        return ""
    return f"{metric.value:.3g} {metric.unit} is impossible ({limits[0]:g} to {limits[1]:g})"


def unshown_reason(metric: Metric, parts: list[Motion]) -> str:
    """Return why the view cannot show a left-right difference; empty if it can, and for other metrics."""
    plane = _plane_of_difference(metric)
    motion = next((part for part in parts if part.times[0] - 1e-6 <= metric.start <= part.times[-1] + 1e-6), None)
    if not plane or motion is None or motion.camera is None:
        return ""
    rows = (motion.times >= metric.start - 1e-6) & (motion.times <= metric.end + 1e-6)
    angle = view_angle(motion, rows, plane)
    return f"the view does not show it: {plane} plane seen at {angle:.0f} degrees" if angle < VIEW_DEGREES[0] else ""


def with_norm_quality(metric: Metric, norms: Norms = CHILDREN) -> Metric:
    """Return the metric, not green if its interval is wider than the norm: it then says nothing about the person."""
    wide = metric.name.endswith(RANGE) and metric.high - metric.low > norm_width(metric, norms)
    if not wide or metric.quality != GREEN:
        return metric
    return replace(metric, quality=AMBER, doubt="interval wider than the norm")


def norm_width(metric: Metric, norms: Norms) -> float:
    """Return the width in degrees of the norm of a range of motion: 95 % of people, else half of the joint's range."""
    movement, angle = _movement_and_angle(metric)
    norm = norms.of(movement, angle)
    if norm is not None:
        return 2 * NORMAL_95 * float(norm[1].mean())
    return RANGES.get(angle, 90.0) / 2


def _movement_and_angle(metric: Metric) -> tuple[str, str]:
    movement, _, angle = metric.name.removesuffix(DIFFERENCE).removesuffix(RANGE).partition(": ")
    return movement, angle.partition(",")[0]


def _plane_of_difference(metric: Metric) -> str:
    """Return the plane whose view a left-right difference needs; empty for other metrics, and without a fixed plane."""
    if metric.group == "gait":
        return SAGITTAL if metric.name.startswith("asymmetry") else ""
    if metric.group == "repetitions" and metric.name.endswith(": left-right difference"):
        name = metric.name.partition(":")[0]
        return FRONTAL if name in _FRONTAL_EXERCISES else SAGITTAL if name in _SAGITTAL_EXERCISES else ""
    if metric.group == "angles" and metric.name.endswith(DIFFERENCE):
        return measured_plane(_movement_and_angle(metric)[1], _movement_and_angle(metric)[0])
    return ""


def measured_plane(angle: str, movement: str) -> str:
    """Return the plane in which an angle is measured; empty if it is in no fixed plane, as in arm exercises."""
    part, _, kind = angle.partition(" ")
    if kind in ("adduction", "abduction", "obliquity", "bending"):
        return FRONTAL
    arm = part in ("shoulder", "elbow") and movement not in ("walking", "running")
    return SAGITTAL if kind == "flexion" and not arm else ""
