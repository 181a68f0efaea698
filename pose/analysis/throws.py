"""Throws and strokes of one hand: phases and the speed of the hand.

A throw is a fast forward movement of a hand that was behind the trunk. It is released, or a racket hits, near the
largest speed of the hand, which ends the forward phase.
"""

from dataclasses import dataclass

import numpy as np

from pose.analysis.metrics import Event, Metric, mean_interval, quality
from pose.body.segments import SIDES, Motion, angle_between
from pose.structures.smooth import zero_phase
from pose.structures.types import F64

HAND_HZ = 10.0  # cut-off of the hand's path; the fastest part of a throw takes 0.1 s
MIN_RATE = 20.0  # frames/s
MIN_SPEED_MPS = 5.0  # minimum largest speed of the hand relative to the pelvis; arms of walkers and dancers are slower
MIN_HORIZONTAL = 0.4  # minimum horizontal part of this velocity; that of raised or dropped arms is smaller
BEHIND_M = (
    0.05  # minimum distance of the hand behind the shoulders at the end of the wind-up; that of punches is smaller
)
MIN_PATH_M = 0.3  # minimum way forwards
FORWARD_S = (0.05, 0.7)  # duration of the forward phase
WIND_UP_S = 2.0  # time before the forward phase in which the wind-up begins
FOLLOW_S = 1.0  # maximum follow-through
IN_FRONT = 0.95  # fraction of the way back below which the wind-up has begun
SLOW = 0.3  # fraction of the largest speed below which the hand has come to rest
APART_S = 0.6  # minimum time between two throws
# Standard deviations of the method's errors (docs/studies/analysis.md); that of the speed is relative.
SPEED_ERROR, WIND_UP_ERROR_S, FORWARD_ERROR_S, FOLLOW_ERROR_S = 0.21, 0.35, 0.08, 0.05
ELBOW_ERROR_DEGREES, HEIGHT_ERROR_M = 32.0, 0.11
MAX_TRAVEL_MPS = 2.5  # maximum speed of the pelvis: runners swing their arms as fast


@dataclass(frozen=True, slots=True)
class Throw:
    """One throw or stroke. Times in s."""

    side: str  # 'left' or 'right': the hand
    kind: str  # 'overhead stroke', 'overarm throw', 'sidearm throw' or 'underarm throw'
    start: float  # beginning of the wind-up
    back: float  # hand farthest back: the forward phase begins
    release: float  # largest speed of the hand
    end: float  # the hand has slowed down
    speed: float  # largest speed of the hand relative to the pelvis, m/s
    elbow_flexion: float  # at release, degrees; 0 is straight
    height: float  # of the hand above the shoulder at release, m


def find_throws(motion: Motion) -> list[Throw]:
    """Find the throws and strokes of a segment, in the order of time."""
    if motion.rate < MIN_RATE:
        return []
    found = []
    for side in SIDES:
        hand = zero_phase(motion.joint(f"{side}_wrist") - motion.joint("pelvis"), motion.times, HAND_HZ)
        velocity = np.gradient(hand, motion.times, axis=0)
        speed = np.linalg.norm(velocity, axis=1)
        peaks = np.flatnonzero((speed[1:-1] >= speed[:-2]) & (speed[1:-1] > speed[2:]) & (speed[1:-1] > MIN_SPEED_MPS))
        throws = [_throw(motion, side, int(peak) + 1, velocity, speed) for peak in peaks]
        found += [one for one in throws if one is not None]
    kept: list[Throw] = []
    for one in sorted(found, key=lambda throw: -throw.speed):
        if all(abs(one.release - other.release) >= APART_S for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda throw: throw.release)


def _throw(motion: Motion, side: str, peak: int, velocity: F64, speed: F64) -> Throw | None:
    """Return the throw whose hand is fastest in frame `peak`; None if it is not a throw."""
    times, fastest = motion.times, velocity[peak]
    level = float(np.hypot(fastest[0], fastest[2]))
    if level < MIN_HORIZONTAL * speed[peak] or np.linalg.norm(motion.velocity[peak]) > MAX_TRAVEL_MPS:
        return None
    ahead = np.array([fastest[0], 0.0, fastest[2]]) / level
    shoulders = (motion.joint("left_shoulder") + motion.joint("right_shoulder")) / 2
    reach = (motion.joint(f"{side}_wrist") - shoulders) @ ahead  # in front of the shoulders, along the throw
    first = int(np.searchsorted(times, times[peak] - FORWARD_S[1]))
    back = first + int(np.argmin(reach[first : peak + 1]))
    forward_s = times[peak] - times[back]
    if reach[back] > -BEHIND_M or reach[peak] - reach[back] < MIN_PATH_M or not FORWARD_S[0] <= forward_s:
        return None
    earlier = reach[int(np.searchsorted(times, times[back] - WIND_UP_S)) : back + 1]
    in_front = earlier >= reach[back] + IN_FRONT * (earlier.max() - reach[back])
    start = back + 1 - len(earlier) + int(np.flatnonzero(in_front)[-1])
    after = np.flatnonzero(speed[peak:] < SLOW * speed[peak])
    limit = int(np.searchsorted(times, times[peak] + FOLLOW_S, side="right")) - 1
    end = min(peak + int(after[0]) if len(after) else len(times) - 1, limit)
    elbow, wrist, shoulder = (motion.joint(f"{side}_{joint}")[peak] for joint in ("elbow", "wrist", "shoulder"))
    bend = float(angle_between(elbow - shoulder, wrist - elbow))
    height = float(wrist[1] - shoulder[1])
    moments = [float(times[row]) for row in (start, back, peak, end)]
    return Throw(
        side,
        _kind(motion, peak, side),
        moments[0],
        moments[1],
        moments[2],
        moments[3],
        float(speed[peak]),
        bend,
        height,
    )


def _kind(motion: Motion, row: int, side: str) -> str:
    """Return the kind of throw from the height of the hand at release."""
    hand, shoulder = motion.joint(f"{side}_wrist")[row, 1], motion.joint(f"{side}_shoulder")[row, 1]
    if hand > motion.joint("head")[row, 1] + 0.1:
        return "overhead stroke"
    trunk = shoulder - motion.joint("pelvis")[row, 1]
    if hand > shoulder - 0.3 * trunk:
        return "overarm throw"
    return "sidearm throw" if hand > shoulder - 0.7 * trunk else "underarm throw"


def throw_metrics(person: int, motion: Motion) -> tuple[list[Metric], list[Event], str]:
    """Return hand speed, phases and arm of every throw, its moments, and the reason if there are none."""
    metrics: list[Metric] = []
    events: list[Event] = []
    numbers: dict[str, int] = {}
    for throw in find_throws(motion):
        kind = motion.movement or throw.kind
        number = numbers[kind] = numbers.get(kind, 0) + 1
        flag, doubt = quality(motion, throw.start, throw.end, rates=(50.0, MIN_RATE))
        for name, unit, value, error in (
            ("hand speed", "m/s", throw.speed, SPEED_ERROR * throw.speed),
            ("wind-up", "s", throw.back - throw.start, WIND_UP_ERROR_S),
            ("forward phase", "s", throw.release - throw.back, FORWARD_ERROR_S),
            ("follow-through", "s", throw.end - throw.release, FOLLOW_ERROR_S),
            ("elbow flexion at release", "degrees", throw.elbow_flexion, ELBOW_ERROR_DEGREES),
            ("hand above shoulder", "m", throw.height, HEIGHT_ERROR_M),
        ):
            _, low, high = mean_interval([value], error, *((0.0,) if name != "hand above shoulder" else ()))
            metrics.append(
                Metric(
                    person, "throws", f"{kind} {number}: {name}", value, low, high, unit, flag,
                    throw.start, throw.end, 1, f"{throw.side} hand", doubt,
                )
            )  # fmt: skip
        moments = (("wind-up", throw.start), ("farthest back", throw.back), ("release", throw.release))
        events += [Event(person, "throws", f"{kind} {moment}", throw.side, time) for moment, time in moments]
    if metrics:
        return metrics, events, ""
    slow = f"only {motion.rate:.0f} frames/s, at least {MIN_RATE:.0f} are needed" if motion.rate < MIN_RATE else ""
    return metrics, events, slow or "no hand moves forwards fast from behind the shoulders"
