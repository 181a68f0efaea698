"""Time stamps of a motion, portions of it, and interpolation between time lines."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F64, I64
from pose.utils.filling import GAP_SECONDS

MAX_UNEVEN_FRAMES = 0.1  # maximum deviation of time stamps from a constant rate, in frames; containers round times


@dataclass(frozen=True, slots=True)
class Timeline:
    """The time stamps of an exported motion."""

    times: F64  # (T,) time stamps, s
    rate: float | None  # frame rate in frames/s if it is constant, otherwise None
    resampled: bool  # whether the time stamps differ from the result's own


@dataclass(frozen=True, slots=True)
class TrackSpan:
    """Poses in n frames of a track."""

    start: int  # index of the first of these frames in the track
    times: F64  # (n,) s
    joints: F64  # (n, 17, 3) m, joints in camera axes (x right, y down, z forward), Human3.6M order
    sigma: F64  # (n, 17) mm, radius that contains the joint with probability 0.68; NaN where the person is missing
    score: F64  # (n, 17) scores of the 2D joints
    known: NDArray[np.bool_]  # (n,) mask of the frames with the person


@dataclass(frozen=True, slots=True)
class HandSpan:
    """Hands (left, right) in n frames of a track; points in camera axes (x right, y down, z forward)."""

    points: F64  # (n, 2, 21, 3) m, hand points in camera axes (x right, y down, z forward)
    sigma: F64  # (n, 2, 21) mm, radius that contains the point with probability 0.68; NaN where a hand is not detected
    score: F64  # (n, 2, 21) scores of the 2D points


def fits(times: F64, rate: float) -> bool:
    """Return whether time stamps (T,) s have the constant rate `rate` in frames/s, except for rounding."""
    grid = times[0] + np.arange(len(times)) / rate
    return bool((np.abs(grid - times) * rate < MAX_UNEVEN_FRAMES).all())


def stretches(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first and last index of every run of True in `flags` (T,)."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0))
    return [(int(first), int(end) - 1) for first, end in zip(edges[::2], edges[1::2], strict=True)]


def thinned(values: I64, max_count: int) -> I64:
    """Return at most `max_count` evenly spaced values of an array."""
    return values[:: max(1, math.ceil(len(values) / max_count))]


def between_frames(frames: F64, positions: I64, times: F64) -> tuple[I64, F64, NDArray[np.bool_]]:
    """Find the frames around each time: index (T,) of the earlier (or -1), weight (T,) of the next, presence."""
    # A person is present at the time of a frame, or between two consecutive frames at most `GAP_SECONDS` apart.
    source_times = frames[positions]
    earlier = np.searchsorted(source_times, times + 1e-9, side="right") - 1
    at, later = np.maximum(earlier, 0), np.minimum(earlier + 1, len(source_times) - 1)
    step = np.maximum(source_times[later] - source_times[at], 1e-9)
    fraction = np.clip((times - source_times[at]) / step, 0, 1)
    exact = (earlier >= 0) & (np.abs(times - source_times[at]) < 1e-6)
    joined = (earlier >= 0) & (positions[later] - positions[at] == 1) & (step <= GAP_SECONDS)
    fraction[exact | ~joined] = 0
    return earlier, fraction, exact | joined
