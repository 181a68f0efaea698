"""BoT-SORT without appearance features, with a similarity transform as the camera motion.

It extends ByteTrack in three ways: camera motion is compensated, the noise of the filter is proportional to the size of
the box, and the similarity of a box is multiplied by its score. The measurement of the Kalman filter is centre, width
and height of a box. Source: N. Aharon, R. Orfaig and B.-Z. Bobrovsky, "BoT-SORT: robust associations multi-pedestrian
tracking", 2022 (arXiv:2206.14651).

The methods are those of OpenCV: corners of J. Shi and C. Tomasi (CVPR 1994), pyramidal Lucas-Kanade flow, and a RANSAC
fit of rotation, scale and translation.
"""

import cv2
import numpy as np

from pose.structures.assignment import best_pairs
from pose.structures.types import F32, F64, I64, U8
from pose.tracking.association.box_tracker import (
    MIN_START_SCORE,
    BoxTrack,
    FilterTracker,
    KalmanFilter,
    Similarity,
    box_similarity,
)

MIN_SIMILARITY, MIN_LOW_SCORE_SIMILARITY = 0.2, 0.5
MIN_SCORE = 0.1  # boxes with lower scores are ignored
POSITION_NOISE, VELOCITY_NOISE = 1 / 20, 1 / 160  # standard deviations, in box sizes
MIN_SIZE_PX = 1e-3


class BotSortTrack(BoxTrack):
    """Track whose filter state consists of centre and size of the box (px) and their velocities."""

    def __init__(self, box: F64, track_id: int) -> None:
        super().__init__(track_id)
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
        """Move the filter's state by a camera motion (2, 3) from px of the previous to px of the current frame."""
        turn = np.eye(8)
        turn[:2, :2] = turn[4:6, 4:6] = motion[:, :2]
        self.filter.state = turn @ self.filter.state
        self.filter.state[:2] += motion[:, 2]
        self.filter.covariance = turn @ self.filter.covariance @ turn.T

    def _keep_size_positive(self) -> None:
        self.filter.state[2:4] = self.filter.state[2:4].clip(MIN_SIZE_PX)


class BotSort(FilterTracker[BotSortTrack]):
    """The BoT-SORT tracker."""

    # Boxes with a high score are matched first. Boxes with a low score are then matched to the unmatched tracks that
    # were observed in the previous frame.

    def __init__(self, memory: float, similarity: Similarity = box_similarity) -> None:
        super().__init__(memory, similarity)
        self._camera = ImageMotion()

    def _start(self, box: F64, track_id: int) -> BotSortTrack:
        return BotSortTrack(box, track_id)

    def _associate(self, boxes: F64, scores: F32, image: U8 | None, ids: I64) -> None:
        assert image is not None  # because of `BoxTrackerChoice.needs_image`
        motion = self._camera.step(image)
        for track in self.tracks:
            track.move(motion)
        rows = np.flatnonzero(scores >= MIN_START_SCORE)
        similar = self._compare(self.tracks, boxes, rows) * scores[rows]
        unmatched = self._observe(self.tracks, boxes, rows, ids, best_pairs(similar, min_similarity=MIN_SIMILARITY))
        unmatched = [track for track in unmatched if track.missed == 1]
        rows = np.flatnonzero((scores > MIN_SCORE) & (scores < MIN_START_SCORE))
        pairs = best_pairs(self._compare(unmatched, boxes, rows), min_similarity=MIN_LOW_SCORE_SIMILARITY)
        self._observe(unmatched, boxes, rows, ids, pairs)


MAX_CORNERS = 1000
MIN_CORNER_QUALITY = 0.01  # relative to the quality of the best corner
MIN_CORNER_DISTANCE_PX = 1.0
MIN_CORNERS = 5  # with fewer tracked corners no motion is estimated


class ImageMotion:
    """Estimator of the camera motion from one image to the next, as an affine map."""

    # Corners are tracked in images of half the resolution; the result is in pixels of the full images.

    def __init__(self) -> None:
        self._previous: U8 | None = None
        self._corners: np.ndarray | None = None

    def step(self, image: U8) -> F64:
        """Return the affine matrix (2, 3) from px of the previous to px of this image; identity if unknown."""
        half = max(1, image.shape[1] // 2), max(1, image.shape[0] // 2)
        grey = np.asarray(cv2.resize(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), half), np.uint8)
        previous, corners = self._previous, self._corners
        self._previous = grey
        self._corners = cv2.goodFeaturesToTrack(grey, MAX_CORNERS, MIN_CORNER_QUALITY, MIN_CORNER_DISTANCE_PX)
        if previous is None or corners is None or self._corners is None or previous.shape != grey.shape:
            return np.eye(2, 3)
        followed, status, _ = cv2.calcOpticalFlowPyrLK(previous, grey, corners, np.empty_like(corners))
        found = np.asarray(status).reshape(-1) > 0
        if found.sum() < MIN_CORNERS:
            return np.eye(2, 3)
        motion, _ = cv2.estimateAffinePartial2D(corners[found], followed[found], method=cv2.RANSAC)
        return np.eye(2, 3) if motion is None else motion * [1, 1, 2]
