"""OC-SORT: observations, where there are any, count for more than what the filter made of them.

J. Cao et al., "Observation-centric SORT: rethinking SORT for robust multi-object tracking", CVPR 2023. Its three parts:
whoever comes back has the filter run again along a straight line over the gap (re-update); who keeps the direction is
preferred (momentum); who matches nothing is looked for where they were seen last (recovery). The filter is on centre,
area and aspect ratio, as in SORT (A. Bewley et al., ICIP 2016).
"""

from collections import deque

import numpy as np

from pose.networks import crops
from pose.people.association.assignment import best_pairs
from pose.people.association.kalman import KalmanFilter
from pose.people.association.tracker import SURE_SCORE, Track, Tracker
from pose.types import F32, F64, I64, U8

ENOUGH = 0.1  # similarity
LOOK_BACK = 3  # frames over which a direction is taken
MOMENTUM = 0.2  # weight of the direction beside the similarity
TINY = 1e-6


class OcSortTrack(Track):
    """Centre (px), area (px^2) and width / height, and the velocities of the first three."""

    def __init__(self, box: F64, number: int) -> None:
        super().__init__(number)
        self.filter = KalmanFilter(
            self.measured(box),
            covariance=np.array([10, 10, 10, 10, 1e4, 1e4, 1e4]),
            process=np.array([1, 1, 1, 1, 1e-2, 1e-2, 1e-4]),
            measurement=np.array([1.0, 1, 10, 10]),
        )
        self.last = box  # where the person was seen last
        self.direction: F64 | None = None  # (2,) of the centre, length 1, once there is one
        self._frame, self._step = 0, 1.0
        self._seen: deque[tuple[int, F64]] = deque(maxlen=LOOK_BACK + 1)  # frames and boxes after the first
        self._at_loss: tuple[F64, F64] | None = None  # the filter's state and covariance when the person was lost

    @staticmethod
    def measured(box: F64) -> F64:
        width, height = box[2:] - box[:2]
        return np.array([*(box[:2] + box[2:]) / 2, width * height, width / (height + TINY)])

    @property
    def box(self) -> F64:
        x, y, area, aspect = self.filter.state[:4]
        width = np.sqrt(max(area * aspect, 0))
        height = area / width if width > 0 else 0.0
        return np.array([x - width / 2, y - height / 2, x + width / 2, y + height / 2])

    @property
    def previous_observation(self) -> F64 | None:
        """(4,) where the person was seen LOOK_BACK frames ago, or soon after; None: never but in the first frame."""
        recent = [box for frame, box in self._seen if self._frame - LOOK_BACK <= frame < self._frame]
        return recent[0] if recent else self._seen[-1][1] if self._seen else None

    def predict(self, elapsed: float) -> None:
        if self.missed == 1:
            self._at_loss = self.filter.state.copy(), self.filter.covariance
        super().predict(elapsed)
        self._frame += 1

    def observe(self, box: F64) -> None:
        if self.previous_observation is not None:
            self.direction = directions(self.previous_observation[None], box[None])[0, 0]
        if self._at_loss is not None:
            self._walk_there(box)
        super().observe(box)
        self.last = box
        self._seen.append((self._frame, box))

    def _walk_there(self, box: F64) -> None:
        """Run the filter again from the loss, as if the person had been seen on a straight line to `box`."""
        assert self._at_loss is not None
        self.filter.state, self.filter.covariance = self._at_loss
        self._at_loss = None
        for frame in range(1, self.missed + 1):
            self.filter.update(self.measured(self.last + (box - self.last) * frame / self.missed))
            if frame < self.missed:
                self._go_on(self._step)

    def _go_on(self, step: float) -> None:
        self._step = step
        if self.filter.state[2] + step * self.filter.state[6] <= 0:  # the area stays positive
            self.filter.state[6] = 0
        self.filter.predict(step)


class OcSort(Tracker[OcSortTrack]):
    """Weak boxes are nobody's."""

    def _start(self, box: F64, number: int) -> OcSortTrack:
        return OcSortTrack(box, number)

    def _associate(self, boxes: F64, scores: F32, image: U8 | None, ids: I64) -> None:
        rows = np.flatnonzero(scores >= SURE_SCORE)
        if not self.tracks or not len(rows):
            return
        similar = self._compare(self.tracks, boxes, rows)
        worth = similar + MOMENTUM * self._momentum(boxes[rows]) * scores[rows]
        left = self._take(self.tracks, boxes, rows, ids, best_pairs(similar, at_least=ENOUGH, worth=worth))
        rows = rows[ids[rows] < 0]
        if left and len(rows):
            similar = crops.box_iou(np.stack([track.last for track in left]), boxes[rows])
            self._take(left, boxes, rows, ids, best_pairs(similar, at_least=ENOUGH))

    def _momentum(self, boxes: F64) -> F64:
        """(N, M) from 0.5, straight on, to -0.5, straight back; 0 for who has no direction yet."""
        pasts = [track.previous_observation for track in self.tracks]
        last = [track.last for track in self.tracks]
        origins = np.stack([now if past is None else past for now, past in zip(last, pasts, strict=True)])
        known = np.array([track.direction is not None for track in self.tracks])
        ways = np.stack([np.zeros(2) if track.direction is None else track.direction for track in self.tracks])
        cosine = (ways[:, None] * directions(origins, boxes)).sum(axis=-1)
        return np.where(known[:, None], 0.5 - np.arccos(np.clip(cosine, -1, 1)) / np.pi, 0)


def directions(a: F64, b: F64) -> F64:
    """(N, M, 2) of length 1 (0 for none), from the centres of boxes a (N, 4) to those of b (M, 4)."""
    way = ((b[:, :2] + b[:, 2:])[None] - (a[:, :2] + a[:, 2:])[:, None]) / 2
    return way / (np.linalg.norm(way, axis=-1, keepdims=True) + TINY)
