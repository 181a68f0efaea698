"""What the trackers share: people with a filter each, who are predicted, matched with boxes, and forgotten in time."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from pose.networks import crops
from pose.people.association.kalman import KalmanFilter
from pose.types import F32, F64, I64, U8

NOBODY = -1
REFERENCE_RATE = 30.0  # Hz; the filters count in frames of this rate, and get real time stamps
SURE_SCORE = 0.5  # boxes below start nobody

# (expected (N, 4) xyxy px, their ids (N,), found (M, 4), their rows in the frame (M,)) -> (N, M), 1 for the same
Similarity = Callable[[F64, I64, F64, I64], F64]


def box_similarity(expected: F64, ids: I64, found: F64, rows: I64) -> F64:
    """Intersection over union alone."""
    return crops.box_iou(expected, found)


class Track(ABC):
    """One person's box over time. id: 0, 1, 2, ... missed: frames, missed_time: s since the person was seen."""

    filter: KalmanFilter

    def __init__(self, number: int) -> None:
        self.id = number
        self.missed = 0
        self.missed_time = 0.0

    def predict(self, elapsed: float) -> None:
        """Go on by `elapsed` s."""
        self._go_on(elapsed * REFERENCE_RATE)
        self.missed += 1
        self.missed_time += elapsed

    def _go_on(self, step: float) -> None:
        self.filter.predict(step)

    def observe(self, box: F64) -> None:
        """The person was seen in `box` (4,)."""
        self.filter.update(self.measured(box))
        self.missed, self.missed_time = 0, 0.0

    @staticmethod
    @abstractmethod
    def measured(box: F64) -> F64:
        """(4,) what the filter measures of an xyxy box (4,)."""

    @property
    @abstractmethod
    def box(self) -> F64:
        """(4,) xyxy px, where the person is expected."""


T = TypeVar("T", bound=Track)


class BoxTracker(Protocol):
    """What following needs of any tracker."""

    @property
    def remembered(self) -> set[int]:
        """The numbers of the people that it remembers."""
        raise NotImplementedError

    def update(self, boxes: F32, scores: F32, time: float, image: U8 | None) -> I64:
        """Who is in which box, see `Tracker.update`."""
        raise NotImplementedError


class Tracker(ABC, Generic[T]):
    """Names the boxes of one frame after another. tracks: the people it remembers."""

    def __init__(self, memory: float, similarity: Similarity = box_similarity) -> None:
        """memory: s after which a lost person is forgotten."""
        self._memory = memory
        self._similarity = similarity
        self._time: float | None = None
        self._next = 0
        self.tracks: list[T] = []

    @property
    def remembered(self) -> set[int]:
        return {track.id for track in self.tracks}

    def update(self, boxes: F32, scores: F32, time: float, image: U8 | None) -> I64:
        """Who is in which box: (P,) numbers from 0, NOBODY for a box that is too weak to start somebody.

        boxes: (P, 4) xyxy px. scores: (P,). time: s, increasing from call to call.
        image: RGB, for a tracker that looks at it.
        """
        elapsed = 1 / REFERENCE_RATE if self._time is None else time - self._time
        self._time = time
        for track in self.tracks:
            track.predict(elapsed)
        self.tracks = [track for track in self.tracks if track.missed_time <= self._memory]
        ids = np.full(len(boxes), NOBODY, np.int64)
        self._associate(boxes.astype(np.float64), scores, image, ids)
        for row in np.flatnonzero((ids == NOBODY) & (scores >= SURE_SCORE)):
            self.tracks.append(self._start(boxes[row].astype(np.float64), self._next))
            ids[row] = self._next
            self._next += 1
        return ids

    @abstractmethod
    def _start(self, box: F64, number: int) -> T:
        """Somebody new."""

    @abstractmethod
    def _associate(self, boxes: F64, scores: F32, image: U8 | None, ids: I64) -> None:
        """Let people observe the boxes that are theirs, and write who it was into `ids`."""

    def _compare(self, tracks: Sequence[T], boxes: F64, rows: I64) -> F64:
        """(N, M) similarity of people and the boxes of these rows."""
        if not tracks or not len(rows):
            return np.zeros((len(tracks), len(rows)))
        ids = np.array([track.id for track in tracks])
        return self._similarity(self._expected(tracks), ids, boxes[rows], rows)

    def _expected(self, tracks: Sequence[T]) -> F64:
        """(N, 4) xyxy px, where people are in this frame if they move on, those who are lost too."""
        return np.stack([track.box for track in tracks])

    def _take(self, tracks: Sequence[T], boxes: F64, rows: I64, ids: I64, pairs: list[tuple[int, int]]) -> list[T]:
        """Let people observe the boxes that are theirs, and return who has none. pairs: (person, place in rows)."""
        left = dict(enumerate(tracks))
        for which, place in pairs:
            track = left.pop(which)
            track.observe(boxes[rows[place]])
            ids[rows[place]] = track.id
        return list(left.values())
