"""Turning points of a signal, by the size of the swing between them."""

import numpy as np

from pose.structures.types import F64


def turning_points(signal: F64, min_swing: float, min_end_swing: float | None = None) -> list[tuple[int, int]]:
    """Find alternating maxima (sign 1) and minima (-1) that differ by at least `min_swing`, as (index, sign)."""
    points = _complete(signal, min_swing)
    if min_end_swing is None:
        return points
    last = _unfinished(signal, points[-1] if points else None, min_swing, min_end_swing)
    count = len(signal) - 1
    mirrored = (count - points[0][0], points[0][1]) if points else None
    first = _unfinished(signal[::-1], mirrored, min_swing, min_end_swing)
    before = [] if first is None or (not points and last is not None) else [(count - first[0], first[1])]
    return [*before, *points, *([] if last is None else [last])]


def _unfinished(
    signal: F64, after: tuple[int, int] | None, min_swing: float, min_end_swing: float
) -> tuple[int, int] | None:
    """Return a turning point later than `after`, followed by a change of `min_end_swing` before the end; else None."""
    start, sign = (0, 0) if after is None else (after[0], -after[1])
    rest = signal[start:]
    for candidate in (1, -1) if sign == 0 else (sign,):
        index = start + int(np.argmax(candidate * rest))
        swing = candidate * (signal[index] - signal[start])
        if swing >= min_swing and candidate * (signal[index] - signal[-1]) >= min_end_swing:
            return index, candidate
    return None


def _complete(signal: F64, min_swing: float) -> list[tuple[int, int]]:
    points: list[tuple[int, int]] = []
    high = low = 0
    rising: bool | None = None
    for index, value in enumerate(signal.tolist()):
        if value > signal[high]:
            high = index
        if value < signal[low]:
            low = index
        if rising is not False and signal[high] - value >= min_swing:
            points.append((high, 1))
            rising, low = False, index
        elif rising is not True and value - signal[low] >= min_swing:
            points.append((low, -1))
            rising, high = True, index
    return points if not points or points[0][0] > 0 else points[1:]


def refined_time(signal: F64, times: F64, index: int) -> float:
    """Return the time in s of a turning point between frames: the vertex of the parabola through three samples."""
    if not 0 < index < len(signal) - 1:
        return float(times[index])
    before, at, after = signal[index - 1 : index + 2]
    curvature = before - 2 * at + after
    shift = 0.0 if abs(curvature) < 1e-12 else float(np.clip(0.5 * (before - after) / curvature, -0.5, 0.5))
    neighbour = times[index + 1] if shift > 0 else times[index - 1]
    return float(times[index] + abs(shift) * (neighbour - times[index]))
