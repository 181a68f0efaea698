"""Height of the floor from standing feet."""

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F64
from pose.world.rules import FLOOR

ANKLE_HEIGHT = 0.08  # m above the floor when standing
_MIN_SAMPLES = 5


def own_floor(ankles: NDArray[np.floating], times: F64, seen: NDArray[np.bool_] | None = None) -> float | None:
    """Return the height in m of the floor under one person: a low percentile of slow feet; None if unknown."""
    if len(ankles) < 3:
        return None
    speed = np.linalg.norm(np.gradient(ankles, times, axis=0), axis=-1)
    slow = speed < FLOOR.max_standing_speed_mps
    shown = slow & seen if seen is not None else slow
    heights = ankles[..., 1][shown if shown.sum() >= _MIN_SAMPLES else slow]
    if len(heights) < _MIN_SAMPLES:
        heights = ankles[..., 1].min(axis=1)
    return float(np.percentile(heights, FLOOR.lowest_percentile)) - ANKLE_HEIGHT


def common_floor(floors: list[float], seconds: list[float]) -> float:
    """Return the height of the common floor: the median over people, weighted by duration."""
    order = np.argsort(floors)
    share = np.cumsum(np.array(seconds)[order])
    return float(np.array(floors)[order][np.searchsorted(share, share[-1] / 2)])
