"""Metrics of repetitions, jumps and sit-to-stand transfers, and one row per repetition.

A transfer begins and ends when the vertical speed of the pelvis falls below a share of its largest value. Adamowicz et
al., Sensors 20(22), 2020, use the zero crossings of this speed. A share is less affected by drift of the height.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pose.analysis.jumps import Jump, find_jumps, knee_flexions, knee_valgus
from pose.analysis.metrics import (
    FRONTAL,
    LEGS,
    NORMAL_95,
    SAGITTAL,
    VIEW_DEGREES,
    Event,
    Metric,
    mean_interval,
    method_sd,
    quality,
    view_angle,
)
from pose.analysis.plausible import LIMITS
from pose.analysis.repetitions import MIN_SINK_M, find_repetitions, movement_name
from pose.body.segments import SIDES, Motion, angle_between
from pose.structures.extrema import turning_points
from pose.structures.smooth import zero_phase
from pose.structures.types import F64

Part = tuple[list[Metric], list[Event], str]  # metrics, events, and the reason if there are no metrics (else empty)

TRANSFER_ERROR_S = 0.2  # standard deviation of an error that all observations of a person share
COUNT_ERROR = 1  # of 79 lifted recordings, 74 are counted exactly
JUMP_FIELDS = {
    "height from flight time": "flight_height", "height from pelvis": "pelvis_height",
    "countermovement depth": "countermovement", "knee flexion after landing": "landing_flexion",
    "knee valgus after landing": "landing_valgus",
}  # fmt: skip


def repetition_metrics(person: int, motion: Motion) -> Part:
    """Compute count, tempo, size, left-right difference and largest deviation of a repeated movement."""
    repetitions = find_repetitions(motion)
    items = repetitions.items
    if not items:
        return [], [], repetitions.reason
    name = movement_name(repetitions.courses, motion.movement)
    start, end, count = items[0].start, items[-1].end, len(items)
    flag, doubt = quality(motion, start, end)

    def metric(what: str, unit: str, values: list[float]) -> Metric:
        error = method_sd("repetitions", what, float(np.mean(values)))
        mean, low, high = mean_interval(values, error, *(() if what == "smoothness" else (0.0,)))
        return Metric(
            person, "repetitions", f"{name}: {what}", mean, low, high, unit, flag, start, end, count, doubt=doubt
        )

    middle = np.median(repetitions.courses, axis=0)
    deviations = np.sqrt(((repetitions.courses - middle) ** 2).sum(axis=-1).mean(axis=(1, 2)))
    worst = int(np.argmax(deviations))
    complete = [repetition for repetition in items if repetition.complete]
    odd = complete[worst]
    tempos = [60 / (after.start - before.start) for before, after in pairwise(complete)]
    sinks = np.ptp(repetitions.courses[:, :, 0, 1], axis=1).tolist()  # of the pelvis
    sizes = [repetition.amplitude for repetition in complete]
    deviation = NORMAL_95 * method_sd("repetitions", "largest deviation", 0.0)
    metrics = [
        Metric(
            person, "repetitions", f"{name}: count", count, max(count - COUNT_ERROR, 0),
            count + COUNT_ERROR, "repetitions", flag, start, end, count,
            doubt=doubt,
        ),
        metric("duration", "s", [repetition.end - repetition.start for repetition in complete]),
        *([metric("tempo", "repetitions/min", tempos)] if tempos else []),
        *([metric("depth", "m", sinks)] if min(sinks) > MIN_SINK_M else []),
        metric("amplitude", "m", sizes),
        metric("smoothness", "log jerk", [repetition.smoothness for repetition in complete]),
        metric("left-right difference", "m", [_asymmetry(course) for course in repetitions.courses]),
        Metric(
            person, "repetitions", f"{name}: largest deviation", float(deviations[worst]),
            max(float(deviations[worst]) - deviation, 0.0), float(deviations[worst]) + deviation, "m", flag,
            odd.start, odd.end, 1,
            f"repetition {items.index(odd) + 1} against the median of all", doubt,
        ),
    ]  # fmt: skip
    events = [
        Event(person, "repetitions", label, "", time)
        for repetition in items
        for label, time in (
            (f"{name} start", repetition.start),
            (f"{name} turning point", repetition.peak),
            (f"{name} end", repetition.end),
        )
    ]
    return metrics, events, ""


def _asymmetry(course: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> float:
    """Return the mean distance in m between left limbs and mirrored right ones of a course (S, 17, 3)."""
    pairs = ((5, 2), (6, 3), (12, 15), (13, 16))  # knees, ankles, elbows, wrists: left, right
    mirror = np.array([-1.0, 1.0, 1.0])
    return float(np.mean([np.linalg.norm(course[:, a] - course[:, b] * mirror, axis=1).mean() for a, b in pairs]))


def jump_metrics(person: int, motion: Motion) -> Part:
    """Compute height, countermovement and landing of every jump, and the reason if there are none."""
    metrics: list[Metric] = []
    events: list[Event] = []
    for number, jump in enumerate(find_jumps(motion), start=1):
        metrics += _jump(person, number, jump, motion)
        events += [
            Event(person, "jumps", "takeoff", "", jump.takeoff),
            Event(person, "jumps", "highest point", "", (jump.takeoff + jump.landing) / 2),
            Event(person, "jumps", "landing", "", jump.landing),
        ]
    return metrics, events, "" if metrics else _too_slow(motion) or "no jump with both feet in the air"


def _too_slow(motion: Motion) -> str:
    """Return a message if the frame rate is too low to detect jumps and transfers, else an empty text."""
    if motion.rate >= MIN_RATE:
        return ""
    return f"only {motion.rate:.0f} frames/s, at least {MIN_RATE:.0f} are needed"


def _jump(person: int, number: int, jump: Jump, motion: Motion) -> list[Metric]:
    flight = jump.landing - jump.takeoff
    timing = 9.81 * flight / 4 / motion.rate / np.sqrt(6)  # uncertainty of two times with a resolution of one frame
    metrics = []
    for name, field in JUMP_FIELDS.items():
        value, unit = float(getattr(jump, field)), "degrees" if name.startswith("knee") else "m"
        error = float(np.hypot(method_sd("jumps", name, value), timing if "flight" in name else 0.0))
        plane = FRONTAL if "valgus" in name else SAGITTAL if "flexion" in name else ""
        flag, doubt = quality(motion, jump.takeoff - 0.5, jump.landing + 0.5, LEGS, plane=plane, rates=(24.0, 10.0))
        _, low, high = mean_interval([value], error, -np.inf if "valgus" in name else min(value, 0.0))
        metrics.append(
            Metric(
                person, "jumps", f"jump {number}: {name}", value, low, high, unit,
                flag, jump.takeoff, jump.landing, 1, doubt=doubt,
            )
        )  # fmt: skip
    return metrics


def transfer_metrics(person: int, motion: Motion) -> Part:
    """Compute the durations of standing up and sitting down."""
    transfers = find_transfers(motion)
    metrics = []
    for rising, name in ((True, "sit to stand"), (False, "stand to sit")):
        matching = [transfer for transfer in transfers if transfer.rising == rising]
        if matching:
            mean, low, high = mean_interval([transfer.duration for transfer in matching], TRANSFER_ERROR_S, 0.0)
            flag, doubt = quality(motion, matching[0].start, matching[-1].end, rates=(15.0, 10.0))
            metrics.append(
                Metric(
                    person, "sit-to-stand", f"{name}: duration", mean, low, high, "s", flag,
                    matching[0].start, matching[-1].end, len(matching), doubt=doubt,
                )
            )  # fmt: skip
    events = [
        Event(person, "sit-to-stand", f"{'sit to stand' if transfer.rising else 'stand to sit'} {label}", "", time)
        for transfer in transfers
        for label, time in (("start", transfer.start), ("end", transfer.end))
    ]
    reason = _too_slow(motion) or "the person does not sit and stand up, or sit down"
    return metrics, events, "" if metrics else reason


# height of the pelvis above the ankles, in leg lengths: maximum seated, minimum standing
SEATED_LEGS, STANDING_LEGS = 0.66, 0.85
MIN_SEATED_S = 0.4  # minimum rest on the seat
MIN_BEHIND_M = 0.1  # minimum distance of the trunk behind the ankles when seated; in a squat it is above the feet
REST_SPEED_MPS = 0.2
SLOW_SHARE = 0.2  # vertical speed at the start and the end of a transfer, as a fraction of its largest
DURATION_S = (0.4, 6.0)
# frames/s, nominally 10; below, a rest on a seat cannot be distinguished from the turning point of a squat
MIN_RATE = 9.5
SMOOTH_HZ = 3.0


@dataclass(frozen=True, slots=True)
class Transfer:
    """A sit-to-stand or stand-to-sit movement."""

    start: float  # start time, s
    end: float  # end time, s
    rising: bool  # whether the person stands up; otherwise the person sits down

    @property
    def duration(self) -> float:
        """Duration, s."""
        return self.end - self.start


def find_transfers(motion: Motion) -> list[Transfer]:
    """Find sit-to-stand and stand-to-sit movements, in the order of time."""
    if motion.rate < MIN_RATE:
        return []
    ankles = (motion.joint("left_ankle") + motion.joint("right_ankle")) / 2
    above = (motion.joint("pelvis") - ankles)[:, 1]
    height = zero_phase(above, motion.times, SMOOTH_HZ) / motion.leg_length
    speed = np.abs(np.gradient(height * motion.leg_length, motion.times))
    seated = (height < SEATED_LEGS) & (speed < REST_SPEED_MPS) & (_behind(motion) > MIN_BEHIND_M)
    points = turning_points(height, STANDING_LEGS - SEATED_LEGS, 0.02)
    ends = [0, *(index for index, _ in points), len(height) - 1]
    transfers = []
    for first, last in pairwise(ends):
        low, high = (first, last) if height[first] < height[last] else (last, first)
        if height[low] > SEATED_LEGS or height[high] < STANDING_LEGS or not _rests(seated, motion.times, low):
            continue
        start, end = _moving(height[first : last + 1], motion.times[first : last + 1])
        if DURATION_S[0] <= end - start <= DURATION_S[1]:
            transfers.append(Transfer(start, end, rising=first == low))
    return transfers


def _behind(motion: Motion) -> F64:
    """Return the distance (T,) m of the middle of the trunk behind the ankles."""
    trunk = (motion.joint("pelvis") + motion.joint("thorax")) / 2
    ankles = (motion.joint("left_ankle") + motion.joint("right_ankle")) / 2
    return np.asarray(((ankles - trunk) * motion.facing).sum(axis=1))


def _rests(seated: NDArray[np.bool_], times: F64, at: int) -> bool:
    """Return whether the person rests on the seat for `MIN_SEATED_S` around a turning point."""
    near = np.flatnonzero(~seated)
    before = near[near < at]
    after = near[near > at]
    first = int(before[-1]) + 1 if len(before) else 0
    last = int(after[0]) - 1 if len(after) else len(seated) - 1
    return bool(times[last] - times[first] >= MIN_SEATED_S)


def _moving(height: F64, times: F64) -> tuple[float, float]:
    """Return start and end in s of the vertical movement around the largest speed; heights in leg lengths."""
    speed = np.gradient(height, times) * np.sign(height[-1] - height[0])
    between = (height > SEATED_LEGS) & (height < STANDING_LEGS)
    fastest = int(np.argmax(np.where(between, speed, -np.inf)))
    slow = np.flatnonzero(speed <= SLOW_SHARE * speed[fastest])
    start, end = slow[slow < fastest], slow[slow > fastest]
    return float(times[start[-1] if len(start) else 0]), float(times[end[0] if len(end) else -1])


_HAND_HZ = 6.0  # cut-off of the hands' positions before their speed


@dataclass(frozen=True, slots=True)
class RepetitionRow:
    """A repetition. The turning point is the moment farthest from rest: the bottom of a squat, the end of a throw."""

    person: int  # track id
    movement: str  # name of the movement
    number: int  # number of the repetition, from 1
    start: float  # s
    turning_point: float  # s
    end: float  # s
    out_s: float  # from the start to the turning point: the way down of a squat
    back_s: float  # from the turning point to the end
    pelvis_travel_m: float  # vertical travel of the pelvis
    trunk_lean_degrees: float  # at the turning point, from the vertical, in any direction
    knee_flexion_left_degrees: float  # at the turning point; 0 is straight
    knee_flexion_right_degrees: float
    thigh_left_degrees: float  # at the turning point; 0 is parallel to the floor, positive below it
    thigh_right_degrees: float
    valgus_left_degrees: float | None  # at the turning point, inwards positive; None if impossible or not shown
    valgus_right_degrees: float | None
    ankle_rise_left_m: float  # of the ankle from the start to the turning point: a heel that lifts raises it
    ankle_rise_right_m: float
    hip_flexion_left_degrees: float  # between trunk and thigh at the turning point; 0 is straight
    hip_flexion_right_degrees: float
    elbow_flexion_left_degrees: float  # at the turning point; 0 is straight
    elbow_flexion_right_degrees: float
    front_foot_m: float  # at the turning point: how far the left foot is in front of the right; negative: behind
    hand_speed_left_mps: float  # largest speed of the hand relative to the pelvis
    hand_speed_right_mps: float


def repetition_rows(person: int, motion: Motion) -> list[RepetitionRow]:
    """Return a row for each complete repetition."""
    found = find_repetitions(motion)
    if not found.items:
        return []
    name, signals = movement_name(found.courses, motion.movement), _signals(motion)
    complete = [(number, one) for number, one in enumerate(found.items, start=1) if one.complete]
    rows = []
    for number, one in complete:
        inside = (motion.times >= one.start) & (motion.times <= one.end)
        if not inside.any():
            continue

        def at(signal: str, time: float) -> float:
            return round(float(np.interp(time, motion.times, signals[signal])), 4)

        low, high = LIMITS["knee valgus after landing"]
        shown = motion.camera is None or view_angle(motion, inside, FRONTAL) >= VIEW_DEGREES[0]
        valgus = [at(f"valgus_{side}", one.peak) for side in SIDES]
        rises = [at(f"ankle_{side}", one.peak) - at(f"ankle_{side}", one.start) for side in SIDES]
        travel = float(np.ptp(motion.joint("pelvis")[inside, 1]))
        values: list[Any] = [
            one.start, one.peak, one.end, one.peak - one.start, one.end - one.peak, travel, at("lean", one.peak),
            *(at(f"{what}_{side}", one.peak) for what in ("flexion", "thigh") for side in SIDES),
            *(value if shown and low <= value <= high else None for value in valgus), *rises,
            *(at(f"{what}_{side}", one.peak) for what in ("hip", "elbow") for side in SIDES),
            at("front_foot", one.peak), *(float(signals[f"hand_{side}"][inside].max()) for side in SIDES),
        ]  # fmt: skip
        rows.append(RepetitionRow(person, name, number, *values))
    return rows


def _signals(motion: Motion) -> dict[str, F64]:
    """Return the quantities of a row over time, (T,) each."""
    flexion, valgus = knee_flexions(motion), knee_valgus(motion)
    trunk = motion.joint("thorax") - motion.joint("pelvis")
    apart = motion.joint("left_ankle") - motion.joint("right_ankle")
    signals = {
        "lean": np.degrees(np.arctan2(np.hypot(trunk[:, 0], trunk[:, 2]), trunk[:, 1])),
        "front_foot": (apart * motion.facing).sum(axis=1),
    }
    for column, side in enumerate(SIDES):
        thigh = motion.joint(f"{side}_knee") - motion.joint(f"{side}_hip")
        hand = zero_phase(motion.joint(f"{side}_wrist") - motion.joint("pelvis"), motion.times, _HAND_HZ)
        forearm, upper = (
            motion.joint(f"{side}_{end}") - motion.joint(f"{side}_{start}")
            for start, end in (("elbow", "wrist"), ("shoulder", "elbow"))
        )
        signals |= {
            f"hip_{side}": angle_between(-trunk, thigh),
            f"elbow_{side}": angle_between(upper, forearm),
            f"flexion_{side}": flexion[:, column],
            f"valgus_{side}": valgus[:, column],
            f"thigh_{side}": np.degrees(np.arctan2(thigh[:, 1], np.hypot(thigh[:, 0], thigh[:, 2]))),
            f"ankle_{side}": motion.joint(f"{side}_ankle")[:, 1],
            f"hand_{side}": np.linalg.norm(np.gradient(hand, motion.times, axis=0), axis=1),
        }
    return signals
