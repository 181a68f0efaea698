"""Detection of `partial` frames of a person, which `--trim` omits from exports because their motion is unreliable.

A frame is partial if the lower ankle is below the floor. It is also partial if it is before the first or after the last
fully visible frame of a visit. Fully visible means that at least `min_visible_share` of the joints and one ankle are
detected. A visit without fully visible frames, such as of a person behind a desk, is judged by the floor only.
"""

import numpy as np

from pose.structures.types import F64, Flags
from pose.world.gravity import ANKLES
from pose.world.rules import TRIM


def fully_visible(scores: F64) -> Flags:
    """Return (T,) whether frames show a person fully: enough of the joints and an ankle have scores (T, 17)."""
    seen = scores >= TRIM.min_score
    return np.asarray((seen.mean(axis=1) >= TRIM.min_visible_share) & seen[:, ANKLES].any(axis=1))


def partial_frames(placed: F64, visible: Flags, visits: list[slice]) -> Flags:
    """Return (T,) frames before the first and after the last fully visible one of a visit, or with an ankle too low."""
    # Motion is unreliable there, because a part of the person is not visible. Too low is below the floor.
    partial = np.asarray(placed[:, ANKLES, 1].min(axis=1) < 0)
    for span in visits:
        full_frames = np.flatnonzero(visible[span] & ~partial[span])
        if len(full_frames):
            visit = partial[span]
            visit[: full_frames[0]] = True
            visit[full_frames[-1] + 1 :] = True
    return partial
