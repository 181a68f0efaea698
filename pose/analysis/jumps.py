"""Vertical jumps: height from flight time and from the pelvis, countermovement, landing."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.body.segments import SIDES, Motion, angle_between
from pose.structures.types import F64

GRAVITY = 9.81  # m/s^2
MIN_FLIGHT_S, MAX_FLIGHT_S = 0.15, 1.0
MIN_CLEARANCE_M = 0.04  # minimum height of both ankles above their standing height
# Standing height of an ankle: this percentile of the frames within these seconds, since errors of the depth change over
# a recording and raise or lower the feet.
STANDING_PERCENT, STANDING_S = 35, 1.0
MAX_STEP_LEGS = 0.4  # maximum distance of the ankles at takeoff and landing along the facing direction; larger in a run
MIN_AGREEMENT = 0.4  # minimum ratio of the two heights of a jump
COUNTERMOVEMENT_S = 1.0
LANDING_S = 0.4


@dataclass(frozen=True, slots=True)
class Jump:
    """One jump."""

    takeoff: float  # time of takeoff, s
    landing: float  # time of landing, s
    flight_height: float  # jump height g t^2 / 8 for the flight time t, m
    pelvis_height: float  # maximum height of the pelvis above its height at takeoff, m
    countermovement: float  # lowering of the pelvis below standing before the jump, m
    landing_flexion: float  # largest value after landing of the knee flexion, averaged over both knees, degrees
    landing_valgus: float  # inward deviation of the knees at the time of largest flexion, mean of both, degrees


def find_jumps(motion: Motion) -> list[Jump]:
    """Find jumps with both feet off the floor, in the order of time."""
    ankles = np.stack([motion.joint(f"{side}_ankle")[:, 1] for side in SIDES], axis=1)
    clear = (ankles - _standing(ankles, motion.rate)).min(axis=1) - MIN_CLEARANCE_M
    jumps = []
    for first, last in _runs(clear > 0):
        if first == 0 or last >= len(clear):
            continue
        takeoff = _crossing(motion.times, clear, first)
        landing = _crossing(motion.times, clear, last)
        jump = _jump(motion, takeoff, landing)
        if jump is not None:
            jumps.append(jump)
    return jumps


def _standing(ankles: F64, rate: float) -> F64:
    """Estimate the standing height (T, 2) m of both ankles near each frame, given their heights (T, 2) m."""
    reach = min(round(STANDING_S * rate), len(ankles) - 1)
    padded = np.pad(ankles, ((reach, reach), (0, 0)), constant_values=np.nan)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * reach + 1, axis=0)
    return np.asarray(np.nanpercentile(windows, STANDING_PERCENT, axis=-1))


def _jump(motion: Motion, takeoff: float, landing: float) -> Jump | None:
    """Return the jump between two times at which the ankles pass `MIN_CLEARANCE_M`; None if it is not a jump."""
    height = motion.joint("pelvis")[:, 1]
    times = motion.times
    inside = (times >= takeoff) & (times <= landing)
    if inside.sum() < 2 or not MIN_FLIGHT_S / 2 <= landing - takeoff <= MAX_FLIGHT_S:
        return None
    # The feet leave the floor before the ankles have risen by MIN_CLEARANCE_M. With half the flight time T/2, the rise
    # above the clearance is g (T/2)^2 / 2 - MIN_CLEARANCE_M, and it takes landing - takeoff.
    clear_time = (landing - takeoff) / 2
    half = np.sqrt(clear_time**2 + 2 * MIN_CLEARANCE_M / GRAVITY)
    middle = (takeoff + landing) / 2
    takeoff, landing = float(middle - half), float(middle + half)
    flight = landing - takeoff
    if (
        not MIN_FLIGHT_S <= flight <= MAX_FLIGHT_S
        or min(_step(motion, takeoff), _step(motion, landing)) > MAX_STEP_LEGS
    ):
        return None
    flight_height = GRAVITY * flight**2 / 8
    peak = float(height[(times >= takeoff) & (times <= landing)].max())
    pelvis_height = peak - float(np.interp(takeoff, times, height))
    if not MIN_AGREEMENT <= pelvis_height / flight_height <= 1 / MIN_AGREEMENT:
        return None
    before = (times >= takeoff - COUNTERMOVEMENT_S) & (times <= takeoff)
    after = (times >= landing) & (times <= landing + LANDING_S)
    if not before.any() or not after.any():
        return None
    standing = float(np.percentile(height[before], 95))
    bent = np.flatnonzero(after)[int(np.argmax(knee_flexions(motion)[after].mean(axis=1)))]
    return Jump(
        takeoff, landing, float(flight_height), pelvis_height, standing - float(height[before].min()),
        float(knee_flexions(motion)[bent].mean()), float(knee_valgus(motion)[bent].mean()),
    )  # fmt: skip


def _step(motion: Motion, time: float) -> float:
    """Return the distance of the ankles along the facing direction, divided by the leg length."""
    apart = ((motion.joint("left_ankle") - motion.joint("right_ankle")) * motion.facing).sum(axis=1)
    return abs(float(np.interp(time, motion.times, apart))) / motion.leg_length


def knee_flexions(motion: Motion) -> F64:
    """Return the flexion of the left and right knee, (T, 2) degrees; 0 is straight."""
    angles = []
    for side in SIDES:
        thigh = motion.joint(f"{side}_knee") - motion.joint(f"{side}_hip")
        shank = motion.joint(f"{side}_ankle") - motion.joint(f"{side}_knee")
        angles.append(angle_between(thigh, shank))
    return np.stack(angles, axis=1)


def knee_valgus(motion: Motion) -> F64:
    """Return the frontal angle of thigh and shank, (T, 2) degrees; positive if the knee deviates inwards."""
    forward = motion.facing
    left = np.stack([forward[:, 2], np.zeros(len(forward)), -forward[:, 0]], axis=1)
    angles = []
    for side, inwards in zip(SIDES, (-1.0, 1.0), strict=True):
        thigh = motion.joint(f"{side}_knee") - motion.joint(f"{side}_hip")
        shank = motion.joint(f"{side}_ankle") - motion.joint(f"{side}_knee")
        lean = [np.degrees(np.arctan2((bone * left).sum(axis=1), -bone[:, 1])) for bone in (thigh, shank)]
        angles.append(inwards * (lean[0] - lean[1]))
    return np.stack(angles, axis=1)


def _runs(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], mask.astype(np.int8), [0]])))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _crossing(times: F64, signal: F64, index: int) -> float:
    """Return the interpolated time between frames index - 1 and index at which a signal is 0."""
    a, b = signal[index - 1], signal[index]
    return float(times[index - 1] + (times[index] - times[index - 1]) * a / (a - b))
