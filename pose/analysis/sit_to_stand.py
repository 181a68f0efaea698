"""Sit-to-stand and stand-to-sit movements with their durations.

A transfer begins and ends when the vertical speed of the pelvis falls below a share of its largest value. Adamowicz et
al., Sensors 20(22), 2020, use the zero crossings of this speed. A share is less affected by drift of the height.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pose.body.segments import Motion
from pose.structures.extrema import turning_points
from pose.structures.smooth import zero_phase
from pose.structures.types import F64

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
