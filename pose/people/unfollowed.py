"""People whom a detector sees and nobody follows: no place was free, or their joints could not be found."""

import numpy as np

from pose.people.identities import SURE_SCORE
from pose.types import F32, Boxes

COVERED = 0.5  # of the smaller of two boxes: what is seen twice, or behind somebody, is not counted


def count_unfollowed(found: Boxes, followed: F32) -> int:
    """How many sure detections are nobody of those who are followed: (P, 4) xyxy px around their joints."""
    boxes = found.xyxy[found.scores >= SURE_SCORE]
    if not len(boxes):
        return 0
    low = np.maximum(boxes[:, None, :2], followed[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], followed[None, :, 2:])
    common = (high - low).clip(min=0).prod(axis=2)
    smaller = np.minimum(_areas(boxes)[:, None], _areas(followed)[None])
    return int((~(common > COVERED * smaller).any(axis=1)).sum())


def _areas(boxes: F32) -> F32:
    return np.asarray((boxes[:, 2:] - boxes[:, :2]).prod(axis=1))
