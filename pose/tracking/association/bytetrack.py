"""ByteTrack, which continues tracks with low-score boxes if no high-score box matches.

The measurement of the Kalman filter is the corners of a box. Source: Y. Zhang et al., "ByteTrack: multi-object tracking
by associating every detection box", ECCV 2022.
"""

import numpy as np

from pose.structures.assignment import best_pairs
from pose.structures.types import F32, F64, I64, U8
from pose.tracking.association.box_tracker import MIN_START_SCORE, BoxTrack, FilterTracker, KalmanFilter

MIN_SIMILARITY = 0.1


class ByteTrackTrack(BoxTrack):
    """Track whose filter state consists of the corners of the box (px) and their velocities."""

    def __init__(self, box: F64, track_id: int) -> None:
        super().__init__(track_id)
        self.filter = KalmanFilter(box, np.ones(8), np.full(8, 0.01), np.full(4, 0.1))

    @staticmethod
    def measured(box: F64) -> F64:
        return box

    @property
    def box(self) -> F64:
        return self.filter.state[:4]


class ByteTrack(FilterTracker[ByteTrackTrack]):
    """The ByteTrack tracker. Boxes with a low score are matched only to tracks that no high-score box matches."""

    def _start(self, box: F64, track_id: int) -> ByteTrackTrack:
        return ByteTrackTrack(box, track_id)

    def _associate(self, boxes: F64, scores: F32, image: U8 | None, ids: I64) -> None:
        unmatched = self.tracks
        for chosen in (scores >= MIN_START_SCORE, scores < MIN_START_SCORE):
            rows = np.flatnonzero(chosen)
            pairs = best_pairs(self._compare(unmatched, boxes, rows), min_similarity=MIN_SIMILARITY)
            unmatched = self._observe(unmatched, boxes, rows, ids, pairs)
