"""OC-SORT, which gives observations priority over the predictions of the Kalman filter.

It adds three parts to SORT. Re-update: when a track is observed again after a gap, the filter is run over the gap with
interpolated boxes. Momentum: matches that keep the direction of motion are preferred. Recovery: unmatched tracks are
matched by their last observed boxes instead of their predicted ones. The measurement of the filter is centre, area and
aspect ratio, as in SORT (A. Bewley et al., ICIP 2016). Source: J. Cao et al., "Observation-centric SORT: rethinking
SORT for robust multi-object tracking", CVPR 2023.
"""

from collections import deque

import numpy as np

from pose.networks import crops
from pose.structures.assignment import best_pairs
from pose.structures.types import F32, F64, I64, U8
from pose.tracking.association.box_tracker import MIN_START_SCORE, BoxTrack, FilterTracker, KalmanFilter

MIN_SIMILARITY = 0.1
DIRECTION_FRAMES = 3  # frames over which the direction of motion is measured
DIRECTION_WEIGHT = 0.2  # relative to the similarity
EPSILON = 1e-6  # avoids division by 0


class OcSortTrack(BoxTrack):
    """Track with a state of centre (px), area (px^2), width / height, and velocities of centre and area."""

    def __init__(self, box: F64, track_id: int) -> None:
        super().__init__(track_id)
        self.filter = KalmanFilter(
            self.measured(box),
            covariance=np.array([10, 10, 10, 10, 1e4, 1e4, 1e4]),
            process=np.array([1, 1, 1, 1, 1e-2, 1e-2, 1e-4]),
            measurement=np.array([1.0, 1, 10, 10]),
        )
        self.last = box  # (4,) last observed box, xyxy px
        self.direction: F64 | None = None  # (2,) unit vector of the centre's motion; None until two observations exist
        self._frame, self._step = 0, 1.0
        self._observed: deque[tuple[int, F64]] = deque(maxlen=DIRECTION_FRAMES + 1)  # frames and boxes after the first
        self._at_loss: tuple[F64, F64] | None = None  # the filter's state and covariance when the track was lost

    @staticmethod
    def measured(box: F64) -> F64:
        width, height = box[2:] - box[:2]
        return np.array([*(box[:2] + box[2:]) / 2, width * height, width / (height + EPSILON)])

    @property
    def box(self) -> F64:
        x, y, area, aspect = self.filter.state[:4]
        width = np.sqrt(max(area * aspect, 0))
        height = area / width if width > 0 else 0.0
        return np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2])

    @property
    def previous_observation(self) -> F64 | None:
        """Oldest box (4,) xyxy px of the last `DIRECTION_FRAMES` frames but the first, for the direction, or None."""
        recent = [box for frame, box in self._observed if self._frame - DIRECTION_FRAMES <= frame < self._frame]
        return recent[0] if recent else self._observed[-1][1] if self._observed else None

    def predict(self, elapsed: float) -> None:
        if self.missed == 1:
            self._at_loss = self.filter.state.copy(), self.filter.covariance
        super().predict(elapsed)
        self._frame += 1

    def observe(self, box: F64) -> None:
        if self.previous_observation is not None:
            self.direction = directions(self.previous_observation[None], box[None])[0, 0]
        if self._at_loss is not None:
            self._reupdate(box)
        super().observe(box)
        self.last = box
        self._observed.append((self._frame, box))

    def _reupdate(self, box: F64) -> None:
        """Run the filter again from the last observed box to `box`, with boxes that are interpolated linearly."""
        assert self._at_loss is not None
        self.filter.state, self.filter.covariance = self._at_loss
        self._at_loss = None
        for frame in range(1, self.missed + 1):
            self.filter.update(self.measured(self.last + (box - self.last) * frame / self.missed))
            if frame < self.missed:
                self._advance(self._step)

    def _advance(self, step: float) -> None:
        self._step = step
        if self.filter.state[2] + step * self.filter.state[6] <= 0:  # otherwise the area would become negative
            self.filter.state[6] = 0
        self.filter.predict(step)


class OcSort(FilterTracker[OcSortTrack]):
    """The OC-SORT tracker. Boxes with a score below `MIN_START_SCORE` are ignored."""

    def _start(self, box: F64, track_id: int) -> OcSortTrack:
        return OcSortTrack(box, track_id)

    def _associate(self, boxes: F64, scores: F32, image: U8 | None, ids: I64) -> None:
        rows = np.flatnonzero(scores >= MIN_START_SCORE)
        if not self.tracks or not len(rows):
            return
        similar = self._compare(self.tracks, boxes, rows)
        score = similar + DIRECTION_WEIGHT * self._direction_similarity(boxes[rows]) * scores[rows]
        unmatched = self._observe(
            self.tracks, boxes, rows, ids, best_pairs(similar, min_similarity=MIN_SIMILARITY, score=score)
        )
        rows = rows[ids[rows] < 0]
        if unmatched and len(rows):
            similar = crops.box_iou(np.stack([track.last for track in unmatched]), boxes[rows])
            self._observe(unmatched, boxes, rows, ids, best_pairs(similar, min_similarity=MIN_SIMILARITY))

    def _direction_similarity(self, boxes: F64) -> F64:
        """Compare each track's direction with that to each box: (N, M), 0.5 same, -0.5 opposite, 0 unknown."""
        earlier_boxes = [track.previous_observation for track in self.tracks]
        last = [track.last for track in self.tracks]
        origins = np.stack(
            [now if earlier is None else earlier for now, earlier in zip(last, earlier_boxes, strict=True)]
        )
        known = np.array([track.direction is not None for track in self.tracks])
        track_directions = np.stack(
            [np.zeros(2) if track.direction is None else track.direction for track in self.tracks]
        )
        cosine = (track_directions[:, None] * directions(origins, boxes)).sum(axis=-1)
        return np.where(known[:, None], 0.5 - np.arccos(np.clip(cosine, -1, 1)) / np.pi, 0)


def directions(a: F64, b: F64) -> F64:
    """Return unit vectors (N, M, 2) from the centres of boxes `a` (N, 4) to those of `b` (M, 4); 0 if equal."""
    offset = ((b[:, :2] + b[:, 2:])[None] - (a[:, :2] + a[:, 2:])[:, None]) / 2
    result: F64 = offset / (np.linalg.norm(offset, axis=-1, keepdims=True) + EPSILON)
    return result
