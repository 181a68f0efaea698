"""Count of people who are detected but not tracked.

People are not tracked if `TrackingConfig.max_people` is reached, or if no pose was found for them.
"""

import numpy as np

from pose.structures.types import F32, Boxes
from pose.tracking.association import MIN_START_SCORE

# Fraction of the smaller of two boxes; more overlap means the same person or an occluded one.
MIN_COVERED_FRACTION = 0.5


def count_untracked(detections: Boxes, tracked: F32) -> int:
    """Return the number of detections with a score of at least 0.5 that overlap no tracked person."""
    boxes = detections.xyxy[detections.scores >= MIN_START_SCORE]
    if not len(boxes):
        return 0
    low = np.maximum(boxes[:, None, :2], tracked[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], tracked[None, :, 2:])
    common = (high - low).clip(min=0).prod(axis=2)
    smaller = np.minimum(_areas(boxes)[:, None], _areas(tracked)[None])
    return int((~(common > MIN_COVERED_FRACTION * smaller).any(axis=1)).sum())


def _areas(boxes: F32) -> F32:
    return np.asarray((boxes[:, 2:] - boxes[:, :2]).prod(axis=1))
