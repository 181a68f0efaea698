"""Foot strikes, foot offs and spatio-temporal parameters of walking and running.

Events follow Zeni, Richards and Higginson, Gait & Posture 27(4), 2008. At a foot strike the foot is farthest ahead of
the pelvis along the walking direction, and at a foot off it is farthest behind.

The published method uses heel and toe. This skeleton has only ankles, whose turning points are earlier than the events.
`STRIKE_SHIFT_S` and `OFF_SHIFT_S` are the median differences between lifted joints and the events of walkers on force
plates (docs/studies/analysis.md).

A runner also lands after the turning point, but leaves the floor long before the ankle is farthest behind.
`RUN_STRIKE_SHIFT_S` and `RUN_OFF_SHIFT_S` are the median differences between lifted joints and the flight phases of
recorded runs.

The bounce of the pelvis distinguishes walking from running. Over the standing leg the pelvis is highest in a walk and
lowest in a run (Cavagna, Thys and Zamboni, Journal of Physiology 262(3), 1976).
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pose.body.segments import SIDES, Motion
from pose.structures.extrema import refined_time, turning_points
from pose.structures.types import F64

STRIKE_SHIFT_S = 0.015
OFF_SHIFT_S = 0.018
RUN_STRIKE_SHIFT_S = 0.060
RUN_OFF_SHIFT_S = -0.110
MIN_BOUNCE_M = 0.008  # minimum amplitude of the pelvis in a run
RUN_STEP_S = (0.2, 0.5)  # minimum and maximum step time of a run
BOUNCE_SAMPLES = 32
MIN_SWING_LEGS = 0.25  # minimum swing of an ankle relative to the pelvis, in leg lengths
MIN_END_SWING_LEGS = 0.03  # minimum swing before the first and after the last step
STRIDE_S = (0.4, 2.5)  # minimum and maximum stride time, s
MIN_SPEED_MPS = 0.3  # minimum speed of a walking person or of a treadmill
BACKWARDS = -0.7  # maximum cosine between path and facing direction of a person who walks backwards
MAX_TURN_DEGREES = 20.0  # maximum change of heading in a stride of a straight walk
MIN_STRIDES = 2  # minimum number of strides of a walk


@dataclass(frozen=True, slots=True)
class Stride:
    """A stride, from one strike of a foot to its next strike."""

    side: str  # 'left' or 'right'
    start: float  # time of the first strike, s
    end: float  # time of the second strike, s
    off: float  # time at which this foot leaves the floor, s
    other_off: float  # time at which the other foot leaves the floor, s
    other_strike: float  # time of the other foot's strike, s
    length: float  # length along the walking direction, m
    step_length: float  # distance from the other foot to this one at the second strike, m
    width: float  # distance of the feet across the walking direction, m
    turn: float  # change of heading, degrees
    flight: float  # time in which neither foot is on the floor, s; 0 in walking

    @property
    def duration(self) -> float:
        """Stride time, s."""
        return self.end - self.start

    @property
    def stance(self) -> float:
        """Fraction of the stride, 0 to 1, in which the foot is on the floor."""
        return (self.off - self.start) / self.duration

    @property
    def double_support(self) -> float:
        """Fraction of the stride, 0 to 1, in which both feet are on the floor."""
        first = max(self.other_off - self.start, 0.0)
        second = max(self.off - self.other_strike, 0.0)
        return (first + second) / self.duration

    @property
    def straight(self) -> bool:
        """Whether the heading changes by at most `MAX_TURN_DEGREES` in the stride."""
        return abs(self.turn) <= MAX_TURN_DEGREES


@dataclass(frozen=True, slots=True)
class Gait:
    """Gait events and strides of one person."""

    strikes: dict[str, list[float]]  # times of the foot strikes in s, ascending, under the keys 'left' and 'right'
    offs: dict[str, list[float]]  # times at which the foot leaves the floor, as in `strikes`
    strides: list[Stride]  # strides of both feet
    running: bool = False  # whether the person runs


def analyse_gait(motion: Motion) -> Gait:
    """Detect the gait events and strides of one person; there are none if the person does not walk or run."""
    forward = walking_direction(motion)
    ahead_at: dict[str, list[float]] = {}
    behind_at: dict[str, list[float]] = {}
    for side in SIDES:
        ahead = ((motion.joint(f"{side}_ankle") - motion.joint("pelvis")) * forward).sum(axis=1)
        points = turning_points(ahead, MIN_SWING_LEGS * motion.leg_length, MIN_END_SWING_LEGS * motion.leg_length)
        times = [(refined_time(ahead, motion.times, index), sign) for index, sign in points]
        ahead_at[side] = [time for time, sign in times if sign > 0]
        behind_at[side] = [time for time, sign in times if sign < 0]
    running = _is_run(motion, sorted(time for times in ahead_at.values() for time in times))
    shifts = (RUN_STRIKE_SHIFT_S, RUN_OFF_SHIFT_S) if running else (STRIKE_SHIFT_S, OFF_SHIFT_S)
    strikes = {side: [time + shifts[0] for time in times] for side, times in ahead_at.items()}
    offs = {side: [time + shifts[1] for time in times] for side, times in behind_at.items()}
    strides = [
        stride
        for side, other in (SIDES, SIDES[::-1])
        for start, end in pairwise(strikes[side])
        if (stride := _stride(motion, forward, side, start, end, offs[side], offs[other], strikes[other])) is not None
    ]
    strides.sort(key=lambda stride: stride.start)
    return _only_walks(Gait(strikes, offs, strides, running))


def _is_run(motion: Motion, steps: list[float]) -> bool:
    """Return whether the pelvis is highest with an ankle farthest ahead, lowest half a step later, as in a run."""
    share = np.arange(BOUNCE_SAMPLES) / BOUNCE_SAMPLES
    height = motion.joint("pelvis")[:, 1]
    waves, durations = [], []
    for start, end in pairwise(steps):
        first, last = np.interp([start, end], motion.times, height)
        over = np.interp(start + share * (end - start), motion.times, height) - first - share * (last - first)
        if end - start >= RUN_STEP_S[0]:
            waves.append(2 * float((over * np.cos(2 * np.pi * share)).mean()))
            durations.append(end - start)
    return bool(waves) and float(np.median(durations)) <= RUN_STEP_S[1] and float(np.mean(waves)) > MIN_BOUNCE_M


def walking_direction(motion: Motion) -> F64:
    """Return the horizontal walking direction, (T, 3) unit vectors: the facing direction, or its opposite backwards."""
    # One camera observes rotations of the body well, but not depth: the facing direction is more accurate than the
    # path.
    speed = np.linalg.norm(motion.velocity, axis=1)
    along = motion.velocity / np.maximum(speed, 1e-9)[:, None]
    backwards = (speed > MIN_SPEED_MPS) & ((along * motion.facing).sum(axis=1) < BACKWARDS)
    mostly = backwards.mean() > 0.5  # over the whole recording, because an alternating direction would have no strides
    return along if mostly else motion.facing


def _stride(
    motion: Motion, forward: F64, side: str, start: float, end: float,
    offs: list[float], other_offs: list[float], other_strikes: list[float],
) -> Stride | None:  # fmt: skip
    """Return the stride between two strikes of a foot; None if the events of both feet do not form a stride."""
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
    """Return the backward speed of the stance foot in mid-stance, m/s: the speed of a treadmill, 0 on the floor."""
    first, last = start + 0.2 * (off - start), start + 0.6 * (off - start)
    moved = ((_at(motion, f"{side}_ankle", last) - _at(motion, f"{side}_ankle", first)) * along).sum()
    speed = -float(moved) / (last - first)
    return speed if speed > MIN_SPEED_MPS else 0.0


def _only_walks(gait: Gait) -> Gait:
    """Remove events far from the strides; remove everything unless there are `MIN_STRIDES` strides and both feet."""
    if len(gait.strides) < MIN_STRIDES or len({stride.side for stride in gait.strides}) < 2:
        return Gait({side: [] for side in SIDES}, {side: [] for side in SIDES}, [], gait.running)
    first = min(stride.start for stride in gait.strides)
    last = max(stride.end for stride in gait.strides)
    slack = 0.6 * max(stride.duration for stride in gait.strides)

    def near_strides(times: dict[str, list[float]]) -> dict[str, list[float]]:
        return {side: [time for time in times[side] if first - slack <= time <= last + slack] for side in SIDES}

    return Gait(near_strides(gait.strikes), near_strides(gait.offs), gait.strides, gait.running)


def _at(motion: Motion, joint: str, time: float) -> F64:
    return _at_time(motion.joint(joint), motion.times, time)


def _at_time(rows: F64, times: F64, time: float) -> F64:
    """Return the row (3,) at a point in time, interpolated linearly."""
    after = int(np.clip(np.searchsorted(times, time), 1, max(len(times) - 1, 1)))
    near = slice(after - 1, after + 1)
    return np.array([np.interp(time, times[near], column) for column in rows[near].T])


def _rows(rows: F64, times: F64, start: float, end: float) -> F64:
    first, last = np.searchsorted(times, start), np.searchsorted(times, end, side="right")
    return rows[first:last]
