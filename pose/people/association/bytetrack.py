"""ByteTrack: weak boxes continue people whom no strong one does.

Y. Zhang et al., "ByteTrack: multi-object tracking by associating every detection box", ECCV 2022. The filter is on the
box's corners.
"""

import numpy as np

from pose.people.association.assignment import best_pairs
from pose.people.association.kalman import KalmanFilter
from pose.people.association.tracker import SURE_SCORE, Track, Tracker
from pose.types import F32, F64, I64, U8

ENOUGH = 0.1  # similarity


class ByteTrackTrack(Track):
    """The corners, and their velocities."""

    def __init__(self, box: F64, number: int) -> None:
        super().__init__(number)
        self.filter = KalmanFilter(box, np.ones(8), np.full(8, 0.01), np.full(4, 0.1))

    @staticmethod
    def measured(box: F64) -> F64:
        return box

    @property
    def box(self) -> F64:
        return self.filter.state[:4]


class ByteTrack(Tracker[ByteTrackTrack]):
    """Strong boxes first; then weak ones, for who is left."""

    def _start(self, box: F64, number: int) -> ByteTrackTrack:
        return ByteTrackTrack(box, number)

    def _associate(self, boxes: F64, scores: F32, image: U8 | None, ids: I64) -> None:
        left = self.tracks
        for chosen in (scores >= SURE_SCORE, scores < SURE_SCORE):
            rows = np.flatnonzero(chosen)
            pairs = best_pairs(self._compare(left, boxes, rows), at_least=ENOUGH)
            left = self._take(left, boxes, rows, ids, pairs)
