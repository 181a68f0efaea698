"""Frames of a person that are not to be trusted as a motion: marked `partial`, and left out of exports by `--trim`.

The rule: a frame is partial if the lower ankle is below the floor, or if it comes before the first or after the last
frame of a visit in which the person is fully visible. Fully visible means that at least `visible_share` of the joints
and one ankle are seen. A visit that shows nobody fully, such as somebody behind a desk, is only judged by the floor.
"""

import numpy as np
from numpy.typing import NDArray

from pose.world.contacts import Mask
from pose.world.gravity import ANKLES
from pose.world.rules import RULES, TrimRules

F64 = NDArray[np.float64]


def fully_visible(scores: F64, rules: TrimRules = RULES.trim) -> Mask:
    """(T,) whether enough joints and an ankle are seen, of scores (T, 17)."""
    seen = scores >= rules.seen_score
    return np.asarray((seen.mean(axis=1) >= rules.visible_share) & seen[:, ANKLES].any(axis=1))


def partial_frames(placed: F64, visible: Mask, visits: list[slice]) -> Mask:
    """(T,) whether frames of joints (T, 17, 3) m in the world are partial.

    visible: (T,), `fully_visible`. visits: the frames between gaps that are too long to fill.
    """
    partial = np.asarray(placed[:, ANKLES, 1].min(axis=1) < 0)
    for part in visits:
        whole = np.flatnonzero(visible[part] & ~partial[part])
        if len(whole):
            visit = partial[part]
            visit[: whole[0]] = True
            visit[whole[-1] + 1 :] = True
    return partial
