"""Foot strikes, foot offs and spatio-temporal parameters of walking and running.

Events follow Zeni, Richards and Higginson, Gait & Posture 27(4), 2008: a foot strikes where it is farthest ahead of the
pelvis along the direction of walking, and leaves the floor where it is farthest behind. They use heel and toe; the
skeleton here has ankles only, whose turning points come earlier than the events. `STRIKE_SHIFT_S` and `OFF_SHIFT_S`
are the median differences to the events of six walkers with force plates (docs/studies/analysis.md).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pose.analysis.extrema import refined_time, turning_points
from pose.analysis.motion import SIDES, Motion

F64 = NDArray[np.float64]

STRIKE_SHIFT_S = 0.031
OFF_SHIFT_S = 0.018
MIN_SWING_LEGS = 0.25  # of the leg length: smaller swings of an ankle against the pelvis are no steps
MIN_END_SWING_LEGS = 0.03  # the same, before the first and after the last step
STRIDE_S = (0.4, 2.5)  # seconds that a stride may take
MIN_SPEED_MPS = 0.3  # of a person who walks, or of the belt of a treadmill
BACKWARDS = -0.7  # cosine between path and facing
MAX_TURN_DEGREES = 20.0  # of heading within a stride; beyond it the stride belongs to a turn
MIN_STRIDES = 2  # fewer are no walk


@dataclass(frozen=True, slots=True)
class Stride:
    """From one strike of a foot to its next.

    Attributes:
        side: 'left' or 'right'.
        start: time of the first strike, s.
        end: time of the second strike, s.
        off: time at which this foot leaves the floor, s.
        other_off: time at which the other foot leaves the floor, s.
        other_strike: time at which the other foot strikes, s.
        length: m, along the direction of walking.
        step_length: m, from the other foot to this one at the second strike.
        width: m, between both feet across the direction of walking.
        turn: change of heading, degrees.
        flight: seconds in which neither foot is on the floor; 0 in walking.
    """

    side: str
    start: float
    end: float
    off: float
    other_off: float
    other_strike: float
    length: float
    step_length: float
    width: float
    turn: float
    flight: float

    @property
    def duration(self) -> float:
        """Stride time, s."""
        return self.end - self.start

    @property
    def stance(self) -> float:
        """Share of the stride in which the foot stands."""
        return (self.off - self.start) / self.duration

    @property
    def double_support(self) -> float:
        """Share of the stride in which both feet stand."""
        first = max(self.other_off - self.start, 0.0)
        second = max(self.off - self.other_strike, 0.0)
        return (first + second) / self.duration

    @property
    def straight(self) -> bool:
        """Whether it belongs to no turn."""
        return abs(self.turn) <= MAX_TURN_DEGREES


@dataclass(frozen=True, slots=True)
class Gait:
    """Events (s, by side, ascending) and strides of one person, in the order of time."""

    strikes: dict[str, list[float]]
    offs: dict[str, list[float]]
    strides: list[Stride]


def analyse_gait(motion: Motion) -> Gait:
    """The gait of one person; without strides where nobody walks."""
    forward = _direction(motion)
    strikes: dict[str, list[float]] = {}
    offs: dict[str, list[float]] = {}
    for side in SIDES:
        ahead = ((motion.joint(f"{side}_ankle") - motion.joint("pelvis")) * forward).sum(axis=1)
        points = turning_points(ahead, MIN_SWING_LEGS * motion.leg_length, MIN_END_SWING_LEGS * motion.leg_length)
        times = [(refined_time(ahead, motion.times, index), sign) for index, sign in points]
        strikes[side] = [time + STRIKE_SHIFT_S for time, sign in times if sign > 0]
        offs[side] = [time + OFF_SHIFT_S for time, sign in times if sign < 0]
    strides = [
        stride
        for side, other in (SIDES, SIDES[::-1])
        for start, end in pairwise(strikes[side])
        if (stride := _stride(motion, forward, side, start, end, offs[side], offs[other], strikes[other])) is not None
    ]
    strides.sort(key=lambda stride: stride.start)
    return _only_of_walks(Gait(strikes, offs, strides))


def _direction(motion: Motion) -> F64:
    """(T, 3) horizontal unit vectors of walking: where the body faces; of the pelvis' path in walking backwards.

    The heading is more accurate than the path: one camera observes turns of the body well, and depth badly.
    """
    speed = np.linalg.norm(motion.velocity, axis=1)
    along = motion.velocity / np.maximum(speed, 1e-9)[:, None]
    backwards = (speed > MIN_SPEED_MPS) & ((along * motion.facing).sum(axis=1) < BACKWARDS)
    mostly = backwards.mean() > 0.5  # of the recording: a direction that changes back and forth has no strides
    return along if mostly else motion.facing


def _stride(
    motion: Motion, forward: F64, side: str, start: float, end: float,
    offs: list[float], other_offs: list[float], other_strikes: list[float],
) -> Stride | None:  # fmt: skip
    """The stride between two strikes of a foot; None unless both feet do what they do in a stride."""
    off = [time for time in offs if start < time < end]
    other_strike = [time for time in other_strikes if start < time < end]
    if not STRIDE_S[0] <= end - start <= STRIDE_S[1] or len(off) != 1 or len(other_strike) != 1:
        return None
    other_off = [time for time in other_offs if other_strike[0] - (end - start) < time < other_strike[0]]
    if not other_off:
        return None
    other = SIDES[1 - SIDES.index(side)]
    at_start, at_end = (_at(motion, f"{side}_ankle", time) for time in (start, end))
    support = _at(motion, f"{other}_ankle", other_strike[0])
    along = _at_time(forward, motion.times, (start + end) / 2)
    across = np.array([along[2], 0.0, -along[0]])
    belt = _belt_speed(motion, side, along, start, off[0])
    heading = np.unwrap(np.arctan2(*(_rows(forward, motion.times, start, end)[:, [0, 2]].T)))
    gaps = [max(other_strike[0] - off[0], 0.0), max(start - other_off[-1], 0.0)]
    return Stride(
        side, start, end, off[0], other_off[-1], other_strike[0],
        length=float(((at_end - at_start) * along).sum() + belt * (end - start)),
        step_length=float(((at_end - support) * along).sum() + belt * (end - other_strike[0])),
        width=float(abs((((at_start + at_end) / 2 - support) * across).sum())),
        turn=float(np.degrees(heading[-1] - heading[0])) if len(heading) else 0.0,
        flight=float(sum(gaps)),
    )  # fmt: skip


def _belt_speed(motion: Motion, side: str, along: F64, start: float, off: float) -> float:
    """How fast the standing foot moves backwards in mid-stance, m/s: the speed of a treadmill, 0 on solid ground."""
    first, last = start + 0.2 * (off - start), start + 0.6 * (off - start)
    moved = ((_at(motion, f"{side}_ankle", last) - _at(motion, f"{side}_ankle", first)) * along).sum()
    speed = -float(moved) / (last - first)
    return speed if speed > MIN_SPEED_MPS else 0.0


def _only_of_walks(gait: Gait) -> Gait:
    """Without strides, and events, that are not part of at least `MIN_STRIDES` strides in a row."""
    if len(gait.strides) < MIN_STRIDES or len({stride.side for stride in gait.strides}) < 2:
        return Gait({side: [] for side in SIDES}, {side: [] for side in SIDES}, [])
    first = min(stride.start for stride in gait.strides)
    last = max(stride.end for stride in gait.strides)
    slack = 0.6 * max(stride.duration for stride in gait.strides)

    def kept(times: dict[str, list[float]]) -> dict[str, list[float]]:
        return {side: [time for time in times[side] if first - slack <= time <= last + slack] for side in SIDES}

    return Gait(kept(gait.strikes), kept(gait.offs), gait.strides)


def _at(motion: Motion, joint: str, time: float) -> F64:
    return _at_time(motion.joint(joint), motion.times, time)


def _at_time(rows: F64, times: F64, time: float) -> F64:
    """(3,) row at a moment, linear between frames."""
    return np.array([np.interp(time, times, rows[:, axis]) for axis in range(rows.shape[1])])


def _rows(rows: F64, times: F64, start: float, end: float) -> F64:
    return rows[(times >= start) & (times <= end)]
