"""BoT-SORT: like ByteTrack, with the camera's motion taken out, noise that grows with the box, and scores that count.

N. Aharon, R. Orfaig and B.-Z. Bobrovsky, "BoT-SORT: robust associations multi-pedestrian tracking", 2022
(arXiv:2206.14651), without its appearance features. The filter is on centre, width and height.
"""

import numpy as np

from pose.people.association.assignment import best_pairs
from pose.people.association.camera_motion import CameraMotion
from pose.people.association.kalman import KalmanFilter
from pose.people.association.tracker import SURE_SCORE, Similarity, Track, Tracker, box_similarity
from pose.types import F32, F64, I64, U8

ENOUGH, ENOUGH_OF_WEAK = 0.2, 0.5  # similarity
WEAKEST = 0.1  # score
POSITION_NOISE, VELOCITY_NOISE = 1 / 20, 1 / 160  # deviations, in sizes of the box
SMALLEST = 1e-3  # px


class BotSortTrack(Track):
    """Centre and size (px), and their velocities."""

    def __init__(self, box: F64, number: int) -> None:
        super().__init__(number)
        measured = self.measured(box)
        size = np.tile(measured[2:], 4)
        covariance = (size * np.repeat([2 * POSITION_NOISE, 10 * VELOCITY_NOISE], 4)) ** 2
        self.filter = KalmanFilter(measured, covariance, np.zeros(8), np.zeros(4))

    @staticmethod
    def measured(box: F64) -> F64:
        return np.concatenate([(box[:2] + box[2:]) / 2, box[2:] - box[:2]])

    @property
    def box(self) -> F64:
        centre, half = self.filter.state[:2], self.filter.state[2:4] / 2
        return np.concatenate([centre - half, centre + half])

    def predict(self, elapsed: float) -> None:
        size = np.tile(self.filter.state[2:4], 4)
        self.filter.process = (size * np.repeat([POSITION_NOISE, VELOCITY_NOISE], 4)) ** 2
        super().predict(elapsed)
        self._keep_size_positive()

    def observe(self, box: F64) -> None:
        self.filter.measurement = (np.tile(self.filter.state[2:4], 2) * POSITION_NOISE) ** 2
        super().observe(box)
        self._keep_size_positive()

    def move(self, motion: F64) -> None:
        """The camera's motion (2, 3) moves the centre and turns its velocity."""
        turn = np.eye(8)
        turn[:2, :2] = turn[4:6, 4:6] = motion[:, :2]
        self.filter.state = turn @ self.filter.state
        self.filter.state[:2] += motion[:, 2]
        self.filter.covariance = turn @ self.filter.covariance @ turn.T

    def _keep_size_positive(self) -> None:
        self.filter.state[2:4] = self.filter.state[2:4].clip(SMALLEST)


class BotSort(Tracker[BotSortTrack]):
    """Strong boxes first; then weak ones, for whom was seen in the picture before."""

    def __init__(self, memory: float, similarity: Similarity = box_similarity) -> None:
        super().__init__(memory, similarity)
        self._camera = CameraMotion()

    def _start(self, box: F64, number: int) -> BotSortTrack:
        return BotSortTrack(box, number)

    def _associate(self, boxes: F64, scores: F32, image: U8 | None, ids: I64) -> None:
        assert image is not None  # the only tracker that needs it
        motion = self._camera.step(image)
        for track in self.tracks:
            track.move(motion)
        rows = np.flatnonzero(scores >= SURE_SCORE)
        similar = self._compare(self.tracks, boxes, rows) * scores[rows]
        left = self._take(self.tracks, boxes, rows, ids, best_pairs(similar, at_least=ENOUGH))
        left = [track for track in left if track.missed == 1]
        rows = np.flatnonzero((scores > WEAKEST) & (scores < SURE_SCORE))
        pairs = best_pairs(self._compare(left, boxes, rows), at_least=ENOUGH_OF_WEAK)
        self._take(left, boxes, rows, ids, pairs)
