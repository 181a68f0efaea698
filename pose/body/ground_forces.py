"""Ground forces of straight walks, from the times of the steps.

Second derivatives of lifted joints are too inaccurate for forces, the times of the steps are not. The vertical force of
both feet is therefore a wave of the step frequency, for a centre of mass that rises and falls by a constant fraction of
the leg length. In double support the load passes smoothly from one foot to the other. The centre of pressure moves
along the foot at constant speed; the force along the walk is a sine over the stance. The constants are fitted to the
force plates of three people; docs/studies/analysis.md has the errors for three others.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pose.body.gait import Gait, analyse_gait, walking_direction
from pose.body.segments import SIDES, Motion
from pose.structures.types import F64, I64, Flags

GRAVITY = 9.81  # m/s^2
# Terms cos and sin of the step and of half the step, times leg length / (gravity * stride time^2).
WAVE = (1.70, 1.34, -0.07, -0.25)
DOUBLE_SUPPORT = 0.12  # of a stride, each of its two
PUSH, INWARDS = 0.13, 0.04  # largest force along the walk, in body weights; part of the load towards the body's middle
HEEL, ROLL = -0.01, 0.25  # leg lengths: centre of pressure from the ankle at the strike, and its way over the stance
FLAT = 0.4  # part of the stance at which the foot is flat
INTERVAL = 0.18  # body weights: 90 % of the vertical forces of both feet are this close
MAX_BELT_LEGS = 0.1  # maximum movement of a flat foot on the floor in a fifth of its stance, in leg lengths
MAX_STEPS_APART, MIN_STRIKES = 3.5, 3  # strikes farther apart belong to different bouts of walking
NEAR_STEPS, ROBUST_S = 4.0, 0.02  # width of the window that evens the times of steps; errors from which weights fall


@dataclass(frozen=True, slots=True)
class GroundForces:
    """Forces of the ground on both feet in T frames, world axes (y up)."""

    forces: F64  # (T, 2, 3) on the left and right foot, in body weights
    points: F64  # (T, 2, 3) m, centres of pressure on the floor
    known: Flags  # (T,) whether the person walks straight; forces are 0 elsewhere


def ground_forces(motion: Motion, times: F64) -> GroundForces:
    """Estimate the forces on the feet of a walking person at `times` (T,) s; none are known where it does not walk."""
    count, gait = len(times), analyse_gait(motion)
    found = GroundForces(np.zeros((count, 2, 3)), np.zeros((count, 2, 3)), np.zeros(count, bool))
    forward = walking_direction(motion)
    if gait.running or (forward * motion.facing).sum(axis=1).mean() < 0:
        return found
    ahead = _at(forward, motion.times, times)
    for first, starts in _bouts(gait):
        walked = np.zeros(count, bool)
        for one in gait.strides:
            if one.straight:
                walked |= (times >= max(one.start, starts[0])) & (times <= min(one.end, starts[-1]))
        rows = np.flatnonzero(walked)
        forces, points, known = _bout(motion, times[rows], ahead[rows], first, starts)
        found.forces[rows], found.points[rows], found.known[rows] = forces, points, known
    return found


def _bout(motion: Motion, times: F64, ahead: F64, first: int, starts: F64) -> tuple[F64, F64, Flags]:
    """Return forces, points and mask of one bout of walking, whose first foot and times of strikes (S,) s are given."""
    rows = np.arange(len(times))
    forces, points, known = np.zeros((len(rows), 2, 3)), np.zeros((len(rows), 2, 3)), np.ones(len(rows), bool)
    number = np.interp(times, starts, np.arange(len(starts)))
    step_s = np.interp(times, starts, np.gradient(starts))
    angle = 2 * np.pi * number
    wave = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(2 * angle)], axis=1) @ WAVE
    load = 1 + motion.leg_length / (GRAVITY * (2 * step_s) ** 2) * wave
    share = np.clip((number % 1) / (2 * DOUBLE_SUPPORT), 0, 1)
    share = share * share * (3 - 2 * share)  # of the foot in front
    left = np.stack([ahead[:, 2], np.zeros(len(rows)), -ahead[:, 0]], axis=1)
    step = np.floor(number).astype(np.int64)
    for back in (0, 1):  # the foot of the last strike, and the other one, until it leaves the floor
        own, over = step - back, (number % 1 + back) / (1 + 2 * DOUBLE_SUPPORT)
        part = np.where(over < 1, load * (share if back == 0 else 1 - share), 0)
        foot = (first + own) % 2
        flat, moved = _flat_feet(motion, starts, own, foot)
        known &= (over >= 1) | (moved <= MAX_BELT_LEGS * motion.leg_length)
        inwards = np.where(foot == 0, -INWARDS, INWARDS)[:, None] * left
        push = np.where(part > 0, -PUSH * np.sin(2 * np.pi * over), 0)
        forces[rows, foot] = part[:, None] * (np.array([0.0, 1, 0]) + inwards) + push[:, None] * ahead
        points[rows, foot] = flat + motion.leg_length * (HEEL + ROLL * np.minimum(over, 1))[:, None] * ahead
    forces[~known] = 0
    points[..., 1] = 0
    return forces, points, known


def _bouts(gait: Gait) -> Iterator[tuple[int, F64]]:
    """Yield the first foot, an index of `SIDES`, and the evened times (S,) s of the strikes of each bout of walking."""
    # Strikes and offs are fitted together, by lines through the steps near each step, with small weights for outliers.
    if not gait.strides:
        return
    every = sorted((time, foot) for foot, side in enumerate(SIDES) for time in gait.strikes[side])
    half = float(np.median([one.duration for one in gait.strides])) / 2
    offs = [(time - 2 * half * DOUBLE_SUPPORT, 1 - foot) for foot, side in enumerate(SIDES) for time in gait.offs[side]]
    breaks = np.flatnonzero(np.diff([time for time, _ in every]) > MAX_STEPS_APART * half) + 1
    for start, end in pairwise([0, *breaks.tolist(), len(every)]):
        strikes = every[start:end]
        if len(strikes) < MIN_STRIKES:
            continue
        numbers = [0]
        for (before, old), (time, foot) in pairwise(strikes):
            apart = foot != old
            numbers.append(numbers[-1] + max(2 * round(((time - before) / half - apart) / 2) + apart, 1))
        first, at, seen = strikes[0][1], np.array([time for time, _ in strikes]), [time for time, _ in strikes]
        for time, foot in offs:
            near = int(np.argmin(np.abs(at - time)))
            if abs(at[near] - time) < MAX_STEPS_APART * half:
                odd = (foot - first - numbers[near]) % 2
                numbers.append(numbers[near] + 2 * round(((time - at[near]) / half - odd) / 2) + odd)
                seen.append(time)
        order, events = np.array(numbers), np.array(seen)
        yield first, np.array([_line_at(step, order, events) for step in range(order[: len(strikes)].max() + 1)])


def _line_at(step: int, order: I64, seen: F64) -> float:
    """Return the time of a step by a robust line through the events near it."""
    close = np.abs(order - step) <= 3 * NEAR_STEPS
    order, seen = order[close], seen[close]
    near = np.exp(-(((order - step) / NEAR_STEPS) ** 2))
    robust = np.ones(len(seen))
    terms = np.stack([np.ones(len(seen)), order - step], axis=1)
    for _ in range(4):
        root = np.sqrt(near * robust)
        line = np.linalg.lstsq(terms * root[:, None], seen * root, rcond=None)[0]
        robust = 1 / np.maximum(np.abs(seen - terms @ line) / ROBUST_S, 1)
    return float(line[0])


def _flat_feet(motion: Motion, starts: F64, steps: I64, feet: I64) -> tuple[F64, F64]:
    """Return the positions (T, 3) m of the flat ankles of steps (T,), and their movement (T,) m over the stance."""
    long = (1 + 2 * DOUBLE_SUPPORT) * float(np.median(np.diff(starts)))
    begin = np.interp(steps, np.arange(-1, len(starts)), [starts[0] - np.diff(starts)[0], *starts])
    ankles = [_at(motion.joint(f"{side}_ankle"), motion.times, begin + FLAT * long) for side in SIDES]
    later = [_at(motion.joint(f"{side}_ankle"), motion.times, begin + (FLAT + 0.2) * long) for side in SIDES]
    chosen = (feet == 1)[:, None]
    flat, after = np.where(chosen, ankles[1], ankles[0]), np.where(chosen, later[1], later[0])
    return flat, np.linalg.norm((after - flat)[:, [0, 2]], axis=1)


def _at(rows: F64, times: F64, wanted: F64) -> F64:
    """Return vectors (T, 3) interpolated at `wanted` (T,)."""
    return np.stack([np.interp(wanted, times, column) for column in rows.T], axis=1)
