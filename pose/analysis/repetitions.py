"""Detection of repetitions of any periodic movement, without prior knowledge of it, and their names.

The pose in the body's own frame is projected on its first principal component. A repetition starts at the resting end
of this signal, passes the middle in both directions and returns. A repetition is kept if its poses over time correlate
with those of the other repetitions.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.body.segments import SIDES, Motion, angle_between
from pose.structures.extrema import turning_points
from pose.structures.skeletons import H36M17
from pose.structures.smooth import zero_phase
from pose.structures.types import F64

MIN_SINK_M = 0.15  # minimum vertical range of the pelvis that is part of a movement; errors of the depth cause less
MIN_RANGE_M = 0.06  # minimum RMS movement of a joint
SWING_SHARE = 0.4  # minimum amplitude of a repetition, as a fraction of the signal's range
END_SWING_SHARE = 0.2  # the same for an incomplete repetition at an end of the recording
PERIOD_S = (0.5, 15.0)
MIN_COUNT = 2
MIN_CORRELATION = 0.7  # minimum correlation of a repetition's course with the median course
MAX_DRIFT_MPS = 0.35  # maximum median speed of the person; faster people walk
SMOOTH_HZ = 3.0
START_SHARE = 0.06  # level at the start and the end of a repetition, as a fraction of the range
REST_SHARE = 0.25  # maximum distance from rest at an end of the recording, as a fraction of the range
# level to which a repetition at the end of a recording must have returned, as a fraction of the peak
RETURN_SHARE = 0.75
SAMPLES = 64
COMPONENTS = 3  # principal components in which courses are compared; the others are mostly noise


@dataclass(frozen=True, slots=True)
class Repetition:
    """One repetition."""

    start: float  # start time, s
    peak: float  # time of the largest displacement, s
    end: float  # end time, s
    amplitude: float  # RMS displacement of the joints at the peak, m
    complete: bool = True  # whether the whole repetition lies within the recording
    smoothness: float = 0.0  # negative logarithm of the dimensionless jerk; larger is smoother


@dataclass(frozen=True, slots=True)
class Repetitions:
    """All repetitions of one movement."""

    items: list[Repetition]  # repetitions in the order of time
    courses: F64  # (R, 64, 17, 3) m
    reason: str = ""  # reason why there are no repetitions; otherwise empty


def find_repetitions(motion: Motion) -> Repetitions:
    """Find the repetitions of the main movement; the result is empty, with the reason, if there are none."""
    poses = body_frame_poses(motion)
    flat = poses.reshape(len(poses), -1)
    signal, scale = _main_signal(flat, motion)
    low, high = np.percentile(signal, [2, 98])
    if (high - low) * scale < MIN_RANGE_M:
        return _none(f"the joints move by less than {100 * MIN_RANGE_M:.0f} cm")
    if np.median(np.linalg.norm(motion.velocity, axis=1)) > MAX_DRIFT_MPS:
        return _none("the person moves through the room")
    rest_is_low = _rest(signal) < (low + high) / 2
    signal = signal - low if rest_is_low else high - signal
    span = high - low
    points = turning_points(signal, SWING_SHARE * span, END_SWING_SHARE * span)
    candidates = []
    for index, sign in points:
        if sign > 0:
            first, last = _first_and_last(signal, index, START_SHARE * span, points)
            if first is not None and last is not None:
                candidates.append((first, index, last))
    times = motion.times
    candidates = [frames for frames in candidates if PERIOD_S[0] <= times[frames[2]] - times[frames[0]] <= PERIOD_S[1]]
    if len(candidates) < MIN_COUNT:
        return _none("no movement is repeated")
    courses = np.stack([_resampled(poses, times, [first, last]) for first, _, last in candidates])
    aligned = np.stack([_resampled(poses, times, _phases(signal, *frames)) for frames in candidates])
    level = 2 * START_SHARE * span
    is_complete = np.array([max(signal[first], signal[last]) <= level for first, _, last in candidates])
    if is_complete.sum() < MIN_COUNT:  # the person does not pause at rest
        is_complete = np.array([_is_recorded(signal, first, last, level) for first, _, last in candidates])
    correlated = _correlated(aligned) if is_complete.all() else is_complete & _correlated(aligned)
    if correlated.sum() < MIN_COUNT:
        return _none("movements come back to rest, but they are not alike")
    items = [
        Repetition(
            float(times[a]),
            float(times[b]),
            float(times[c]),
            float(signal[b] * scale),
            bool(kept),
            _smoothness(signal[a : c + 1], times[a : c + 1]),
        )
        for (a, b, c), keep, kept in zip(candidates, correlated | ~is_complete, correlated, strict=True)
        if keep
    ]
    return Repetitions(items, courses[correlated])


def _none(reason: str) -> Repetitions:
    return Repetitions([], np.zeros((0, SAMPLES, 17, 3)), reason)


def body_frame_poses(motion: Motion) -> F64:
    """Transform poses to the body's frame, (T, 17, 3) m: x left, y up, z forward, without position and heading."""
    # If the pelvis sinks by less than `MIN_SINK_M`, heights are relative to the pelvis, placed at its median height.
    # Otherwise, as in a squat, the height of the pelvis is part of the movement.
    joints = motion.joints - motion.joint("pelvis")[:, None] * np.array([1.0, 0.0, 1.0])
    height = motion.joint("pelvis")[:, 1]
    low, high = np.percentile(zero_phase(height, motion.times, SMOOTH_HZ), [2, 98])
    if high - low < MIN_SINK_M:
        joints[..., 1] -= (height - np.median(height))[:, None]
    forward = motion.facing
    left = np.stack([forward[:, 2], np.zeros(len(forward)), -forward[:, 0]], axis=1)
    axes = np.stack([left, np.broadcast_to([0.0, 1.0, 0.0], left.shape), forward], axis=1)
    result: F64 = np.einsum("tij,tkj->tki", axes, joints)
    return result


def _main_signal(flat: F64, motion: Motion) -> tuple[F64, float]:
    """Return poses on their first principal component, low-passed (T,), and the RMS displacement in m of one unit."""
    smooth = zero_phase(flat, motion.times, SMOOTH_HZ)
    centred = smooth - smooth.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    return centred @ directions[:, -1], 1 / np.sqrt(17)


def _rest(signal: F64) -> float:
    """Return the resting value: that of the first or last frame if near an end of the range, else the median."""
    low, high = float(signal.min()), float(signal.max())
    for value in (float(signal[0]), float(signal[-1])):
        if min(value - low, high - value) < REST_SHARE * (high - low):
            return value
    return float(np.median(signal))


def _smoothness(signal: F64, times: F64) -> float:
    """Return the negative logarithm of the dimensionless jerk; 0 for fewer than 6 frames."""
    # Source: Balasubramanian et al., IEEE TBME 59(8), 2012.
    if len(signal) < 6:
        return 0.0
    speed = np.gradient(signal, times)
    jerk = np.gradient(np.gradient(speed, times), times)
    total = float(np.trapezoid(jerk**2, times)) * float(times[-1] - times[0]) ** 3
    return -float(np.log(max(total / max(float(np.max(np.abs(speed))) ** 2, 1e-12), 1e-12)))


def _first_and_last(
    signal: F64, peak: int, level: float, points: list[tuple[int, int]]
) -> tuple[int | None, int | None]:  # fmt: skip
    """Return the first and last frame of the repetition around a peak; None for an end outside of the recording."""
    before = [index for index, sign in points if sign < 0 and index < peak]
    after = [index for index, sign in points if sign < 0 and index > peak]
    begin, end = (before[-1] if before else 0), (after[0] if after else len(signal) - 1)
    below_before = np.flatnonzero(signal[begin:peak] <= level)
    below_after = np.flatnonzero(signal[peak : end + 1] <= level)
    first = begin + int(below_before[-1]) if len(below_before) else begin
    last = peak + int(below_after[0]) if len(below_after) else end
    nearly = RETURN_SHARE * signal[peak]  # a recording may start or end just before the resting level
    return (first if signal[first] <= nearly else None), (last if signal[last] <= nearly else None)


def _is_recorded(signal: F64, first: int, last: int, level: float) -> bool:
    """Return whether the recording holds the whole repetition: the signal is at rest near both ends."""
    return bool((first > 0 or signal[first] <= level) and (last < len(signal) - 1 or signal[last] <= level))


def _phases(signal: F64, first: int, peak: int, last: int) -> list[int]:
    """Return the frames that divide a repetition into movement out, hold (above half of the peak) and movement back."""
    # Pauses differ between repetitions of one movement, so repetitions are compared phase by phase.
    half = min(signal[peak] / 2, signal[peak])  # a peak below the resting level is negative
    high = first + np.flatnonzero(signal[first : last + 1] >= half)
    return [first, int(high[0]), int(high[-1]), last]


def _resampled(poses: F64, times: F64, knots: list[int]) -> F64:
    """Resample poses to (64, 17, 3), with equally many samples in each interval between the frames `knots`."""
    places = np.linspace(0, len(knots) - 1, SAMPLES)
    at = np.interp(places, np.arange(len(knots)), times[knots])
    flat = poses.reshape(len(poses), -1)
    return np.stack([np.interp(at, times, column) for column in flat.T], axis=1).reshape(SAMPLES, 17, 3)


def _correlated(courses: F64) -> NDArray[np.bool_]:
    """Return (R,) whether each repetition (64, 17, 3) correlates with the median of all repetitions."""
    flat = _main_components(courses)
    flat -= flat.mean(axis=1, keepdims=True)
    rows = flat.reshape(len(flat), -1)
    others = rows[::-1] if len(rows) == 2 else np.median(rows, axis=0)[None]  # the median of two is half the course
    products = (rows * others).sum(axis=1)
    return np.asarray(products >= MIN_CORRELATION * np.linalg.norm(rows, axis=1) * np.linalg.norm(others, axis=1))


def _main_components(courses: F64) -> F64:
    """Return courses (R, 64, 17, 3) projected on the first `COMPONENTS` principal components of their poses."""
    poses = courses.reshape(-1, courses.shape[2] * 3)
    centred = poses - poses.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    main = directions[:, -COMPONENTS:]
    return np.asarray((centred @ main @ main.T).reshape(courses.shape))


UNNAMED = "movement A"
MIN_NAMED = 3  # repetitions from which most of them alone must have the name
MIN_AGREEING = 0.75  # minimum fraction of them; those of a dance differ


def movement_name(courses: F64, given: str = "") -> str:
    """Return the name of a movement of poses (R, S, 17, 3) m (x left, y up): `given`, or 'movement A' if none fits."""
    if given:
        return given
    name = _name_of(np.median(courses, axis=0))
    alone = [_name_of(course) == name for course in courses] if len(courses) >= MIN_NAMED else []
    return name if sum(alone) >= MIN_AGREEING * len(alone) else UNNAMED


def _name_of(course: F64) -> str:
    """Return the name of one repetition (S, 17, 3) m."""

    def joint(name: str) -> F64:
        return np.asarray(course[:, H36M17.index(name)])

    knees = [_bend(joint, side, "hip", "knee", "ankle") for side in ("left", "right")]
    flexion = [float(np.ptp(knee)) for knee in knees]
    sinks = float(np.ptp(joint("pelvis")[:, 1]))
    wrists = [joint(f"{side}_wrist") for side in ("left", "right")]
    shoulders = [joint(f"{side}_shoulder") for side in ("left", "right")]
    lifts = [float(np.ptp(wrist[:, 1] - shoulder[:, 1])) for wrist, shoulder in zip(wrists, shoulders, strict=True)]
    apart = [float(np.max(np.abs(joint("left_ankle") - joint("right_ankle"))[:, axis])) for axis in (0, 2)]
    trunk = joint("thorax") - joint("pelvis")
    lean = float(np.ptp(np.degrees(np.arctan2(trunk[:, 2], trunk[:, 1]))))
    if float(np.median(np.degrees(np.arctan2(np.hypot(trunk[:, 0], trunk[:, 2]), trunk[:, 1])))) > 60:
        bends = [_bend(joint, side, "shoulder", "elbow", "wrist") for side in SIDES]
        return "push-up" if min(float(np.ptp(bend)) for bend in bends) > 40 else UNNAMED
    if lean > 45 and 15 < min(flexion) < 80 and lean > 0.8 * max(flexion):
        return "hip hinge"
    if sinks > 0.15 and min(flexion) > 40:
        return "lunge" if apart[1] > 0.45 else "side lunge" if apart[0] > 0.75 else "squat"
    spread = float(np.ptp(np.abs(joint("left_ankle") - joint("right_ankle"))[:, 0]))
    if min(lifts) > 0.4 and spread > 0.25:
        return "jumping jack"
    if max(lifts) > 0.4 and sinks < 0.15 and max(flexion) < 40:
        return "arm raise" if min(lifts) > 0.4 else "one-arm raise"
    if lean > 45 and max(flexion) < 40:
        return "forward bend"
    if sinks < 0.15 and max(flexion) > 40 and min(flexion) < 30:
        return "leg raise"
    return UNNAMED


def _bend(joint: Callable[[str], F64], side: str, a: str, b: str, c: str) -> F64:
    """Return the angle between two bones with the common joint `b`, (S,) degrees; 0 is straight."""
    first, second, third = (joint(f"{side}_{name}") for name in (a, b, c))
    return angle_between(second - first, third - second)
