"""How high the floor is: where feet stand most."""

import numpy as np
from numpy.typing import NDArray

from pose.world.rules import RULES, FloorRules

F64 = NDArray[np.float64]

ANKLE_HEIGHT = 0.08  # m above the floor, standing
_FEW = 5


def own_floor(
    ankles: NDArray[np.floating], times: F64, rules: FloorRules = RULES.floor, seen: NDArray[np.bool_] | None = None
) -> float | None:
    """Height in m of the floor under one person whose ankles are at (T, 2, 3) m, y up; None where it is not known.

    seen: (T, 2), which of them the picture shows; the others count where hardly any are seen.

    A low percentile of the heights of slow feet: one frame that is wrong moves nothing, and a stool or a step that
    somebody stands on for a while is not taken for the floor.
    """
    if len(ankles) < 3:
        return None
    speed = np.linalg.norm(np.gradient(ankles, times, axis=0), axis=-1)
    slow = speed < rules.standing_speed_mps
    shown = slow & seen if seen is not None else slow
    heights = ankles[..., 1][shown if shown.sum() >= _FEW else slow]
    if len(heights) < _FEW:
        heights = ankles[..., 1].min(axis=1)
    return float(np.percentile(heights, rules.lowest_percentile)) - ANKLE_HEIGHT


def common_floor(floors: list[float], seconds: list[float]) -> float:
    """The floor of everybody: the median of the people's own, each counting for as long as it was seen."""
    order = np.argsort(floors)
    share = np.cumsum(np.array(seconds)[order])
    return float(np.array(floors)[order][np.searchsorted(share, share[-1] / 2)])
