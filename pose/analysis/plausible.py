"""Values that no body can have, differences that the view cannot show, and people outside the definitions.

Source of the ranges of motion: American Academy of Orthopaedic Surgeons, Joint Motion, 1965. In walking an ankle moves
by 30 degrees (Perry, Gait Analysis, 1992); twice that is the limit. The other limits are choices.
"""

from dataclasses import dataclass, replace

import numpy as np

from pose.analysis.metrics import AMBER, FRONTAL, GREEN, NORMAL_95, SAGITTAL, VIEW_DEGREES, Curve, Metric, view_angle
from pose.analysis.norms import CHILDREN, Norms
from pose.body.gait import analyse_gait
from pose.body.segments import MAX_GAP_S, MIN_DURATION_S, MIN_FRAMES, SIDES, Motion
from pose.results import Recording
from pose.structures.types import F32, F64
from pose.world.foot_points import foot_joints

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


CHILD_HEIGHT_M = 1.3  # minimum of body height plus sigma; metrics are validated for adults and older children only
SEATED_LEGS = 0.72  # maximum height of a seated person's pelvis above the ankles, in leg lengths
SEATED_SHARE = 0.8  # minimum fraction of seated frames
TRAVELLED_M = 2.0
SWAP_S = 0.3  # s before and after a frame over which the motion of two people is compared
SWAP_GAIN_M = 0.8  # minimum decrease of the deviation when two tracks are swapped
SWAP_SHARE = 0.35  # maximum deviation of swapped tracks, relative to that of the tracks as they are


def small_body_reason(table: Recording, person: int) -> str:
    """Return why the person with this track id is too small to analyse; empty if large enough or of unknown height."""
    heights = {} if table.world_info is None else table.world_info.heights
    height, sigma = heights.get(person, (np.inf, 0.0))
    if height + sigma >= CHILD_HEIGHT_M:
        return ""
    return f"body height {height:.2f} m: the errors of small children are not known"


def no_world_reason(joints: F32) -> str:
    """Return why a person is excluded whose world coordinates (T, 17, 3) m are all unknown; empty for others."""
    if not len(joints) or np.isfinite(joints).any():
        return ""
    return "the camera's motion is unknown while the person is in view"


def too_short_reason(times: F64) -> str:
    """Return the reason to report for a person without a part that is long enough to analyse."""
    if len(times) > MIN_FRAMES and float(np.median(np.diff(times))) > MAX_GAP_S:
        return f"frames are more than {MAX_GAP_S:g} s apart"
    return f"the person is fully visible for less than {MIN_DURATION_S:g} s at a time"


def unobserved_angles(table: Recording) -> list[str]:
    """Return the joint angles that may be missing, each with its reason."""
    feet = "heels and toes are not seen in all frames of two cycles"
    ends = "the lifted skeleton ends at the wrist; --hands adds hands, but no wrist angle"
    hands = "the error of an angle between forearm and estimated hand was not measured"
    return [
        f"ankle: {'the 2D keypoints have no heel and toe' if foot_joints(table.skeleton) is None else feet}",
        f"wrist: {ends if table.hand_keypoints is None else hands}",
        "pelvic tilt: two hip joints do not show it",
    ]


def seated_traveller_reason(parts: list[Motion]) -> str:
    """Return why a person who travels without steps (wheelchair or vehicle) is excluded; empty for others."""
    for motion in parts:
        ankles = np.mean([motion.joint(f"{side}_ankle") for side in SIDES], axis=0)
        height = (motion.joint("pelvis") - ankles)[:, 1] / motion.leg_length
        steps_m = np.linalg.norm(motion.velocity, axis=1) * np.gradient(motion.times)
        if (
            (height < SEATED_LEGS).mean() > SEATED_SHARE
            and steps_m.sum() > TRAVELLED_M
            and not analyse_gait(motion).strides
        ):
            return "moves without steps, seated (wheelchair or vehicle): metrics are defined for people on their legs"
    return ""


def id_switches(table: Recording) -> dict[int, str]:
    """Find probable id switches between two people who come close, as a text by track id."""
    # People are assumed to move at constant velocity over `SWAP_S` before and after a frame. Two tracks are swapped if
    # the later part of each fits the earlier part of the other far better than its own.
    assert table.placed is not None
    switches: dict[int, str] = {}
    people = table.people
    pelvises = {person: _pelvis(table, person) for person in people}
    for at, first in enumerate(people):
        for second in people[at + 1 :]:
            time = _switch_time(pelvises[first], pelvises[second])
            if time is not None:
                text = f"the tracks of persons {first} and {second} are probably swapped at {time:.1f} s"
                switches.setdefault(first, text)
                switches.setdefault(second, text)
    return switches


def _pelvis(table: Recording, person: int) -> tuple[F64, F64]:
    """Return times (T,) s and horizontal positions of the pelvis (T, 2) m."""
    assert table.placed is not None
    rows = np.flatnonzero((table.id == person) & np.isfinite(table.placed.joints[:, 0, 0]))
    return table.time[rows], table.placed.joints[rows, 0][:, [0, 2]].astype(np.float64)


def _switch_time(a: tuple[F64, F64], b: tuple[F64, F64]) -> float | None:
    """Return the time in s at which two tracks are probably swapped; None if they are not."""
    times = np.intersect1d(a[0], b[0])
    inner = times[(times - 2 * SWAP_S >= times[:1]) & (times + 2 * SWAP_S <= times[-1:])] if len(times) else times
    if not len(inner):
        return None

    def positions(track: tuple[F64, F64], shift: float) -> F64:
        return np.stack([np.interp(inner + shift, track[0], track[1][:, axis]) for axis in range(2)], axis=1)

    before = [
        (positions(track, -SWAP_S), positions(track, -SWAP_S) - positions(track, -2 * SWAP_S)) for track in (a, b)
    ]
    after = [(positions(track, SWAP_S), positions(track, 2 * SWAP_S) - positions(track, SWAP_S)) for track in (a, b)]

    def deviation(one: tuple[F64, F64], other: tuple[F64, F64]) -> F64:
        """Return the distance in m of `other` from the continuation of `one`, plus the change of movement."""
        ahead = np.linalg.norm(one[0] + 2 * one[1] - other[0], axis=1)
        return np.asarray(ahead + np.linalg.norm(one[1] - other[1], axis=1))

    unswitched = deviation(before[0], after[0]) + deviation(before[1], after[1])
    switched = deviation(before[0], after[1]) + deviation(before[1], after[0])
    clear = (unswitched - switched > SWAP_GAIN_M) & (switched < SWAP_SHARE * unswitched)
    return float(inner[np.argmax(np.where(clear, unswitched - switched, -np.inf))]) if clear.any() else None
