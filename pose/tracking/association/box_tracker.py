"""Base classes of the box trackers and their tracks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from pose.networks import crops
from pose.structures.types import F32, F64, I64, U8
from pose.tracking.association.kalman import KalmanFilter

UNMATCHED = -1
REFERENCE_RATE_HZ = 30.0  # one frame at this rate is the unit of time of the filters
MIN_START_SCORE = 0.5  # boxes with a lower score start no track

# Function that returns similarities (N, M) in [0, 1]. Arguments: predicted boxes (N, 4) xyxy px, their track ids (N,),
# detected boxes (M, 4) xyxy px, and their rows in the frame (M,).
Similarity = Callable[[F64, I64, F64, I64], F64]


def box_similarity(predicted: F64, track_ids: I64, detected: F64, rows: I64) -> F64:
    """Return the intersection over union (N, M) of xyxy boxes. This function is a `Similarity`."""
    return crops.box_iou(predicted, detected)


class BoxTrack(ABC):
    """Base class of tracks, which follow the box of one person with a Kalman filter."""

    filter: KalmanFilter  # kalman filter of the box

    def __init__(self, track_id: int) -> None:
        self.id = track_id  # track id, counted from 0
        self.missed = 0  # number of frames since the last observed box
        self.missed_time = 0.0  # time since the last observed box, s

    def predict(self, elapsed: float) -> None:
        """Predict the state for the next frame, `elapsed` seconds later."""
        self._advance(elapsed * REFERENCE_RATE_HZ)
        self.missed += 1
        self.missed_time += elapsed

    def _advance(self, step: float) -> None:
        """Predict the state of the filter `step` frames ahead, at the reference rate of 30 frames/s."""
        self.filter.predict(step)

    def observe(self, box: F64) -> None:
        """Update the track with an observed box (4,), xyxy px."""
        self.filter.update(self.measured(box))
        self.missed, self.missed_time = 0, 0.0

    @staticmethod
    @abstractmethod
    def measured(box: F64) -> F64:
        """Convert a box (4,), xyxy px, to the measurement (4,) of the filter."""

    @property
    @abstractmethod
    def box(self) -> F64:
        """Predicted box (4,), xyxy px."""


T = TypeVar("T", bound=BoxTrack)


class BoxTracker(Protocol):
    """Protocol of trackers that associate boxes from frame to frame."""

    @property
    def track_ids(self) -> set[int]:
        """Ids of the tracks that are not deleted yet."""
        raise NotImplementedError

    def update(self, boxes: F32, scores: F32, time: float, image: U8 | None) -> I64:
        """Return the track ids (P,) of the boxes of the next frame; `FilterTracker.update` describes the arguments."""
        raise NotImplementedError


class FilterTracker(ABC, Generic[T]):
    """Base class of box trackers with one Kalman filter per track, kept while it is recently observed."""

    def __init__(self, memory: float, similarity: Similarity = box_similarity) -> None:
        """Start without tracks, which are deleted after `memory` s without observation."""
        self._memory = memory
        self._similarity = similarity
        self._time: float | None = None
        self._next = 0
        self.tracks: list[T] = []  # tracks that are not deleted yet, including those that were not observed recently

    @property
    def track_ids(self) -> set[int]:
        """Ids of the tracks that are not deleted yet, including those that were not observed recently."""
        return {track.id for track in self.tracks}

    def update(self, boxes: F32, scores: F32, time: float, image: U8 | None) -> I64:
        """Associate the next frame's boxes (P, 4) xyxy px; return track ids (P,), `UNMATCHED` without a track."""
        elapsed = 1 / REFERENCE_RATE_HZ if self._time is None else time - self._time
        self._time = time
        for track in self.tracks:
            track.predict(elapsed)
        self.tracks = [track for track in self.tracks if track.missed_time <= self._memory]
        ids = np.full(len(boxes), UNMATCHED, np.int64)
        self._associate(boxes.astype(np.float64), scores, image, ids)
        for row in np.flatnonzero((ids == UNMATCHED) & (scores >= MIN_START_SCORE)):
            self.tracks.append(self._start(boxes[row].astype(np.float64), self._next))
            ids[row] = self._next
            self._next += 1
        return ids

    @abstractmethod
    def _start(self, box: F64, track_id: int) -> T:
        """Return a new track that starts with a box (4,), xyxy px, and has the id `track_id`."""

    @abstractmethod
    def _associate(self, boxes: F64, scores: F32, image: U8 | None, ids: I64) -> None:
        """Match boxes and tracks, update the matched tracks, and write their ids into `ids` (P,)."""

    def _compare(self, tracks: Sequence[T], boxes: F64, rows: I64) -> F64:
        """Return the similarities (N, M) of N tracks and the M boxes with the indices `rows`."""
        if not tracks or not len(rows):
            return np.zeros((len(tracks), len(rows)))
        ids = np.array([track.id for track in tracks])
        return self._similarity(self._predicted_boxes(tracks), ids, boxes[rows], rows)

    def _predicted_boxes(self, tracks: Sequence[T]) -> F64:
        """Return the predicted boxes (N, 4) of tracks, xyxy px."""
        return np.stack([track.box for track in tracks])

    def _observe(self, tracks: Sequence[T], boxes: F64, rows: I64, ids: I64, pairs: list[tuple[int, int]]) -> list[T]:
        """Update matched tracks with boxes and `ids` in place; return the unmatched tracks."""
        unmatched = dict(enumerate(tracks))
        for track_index, box_index in pairs:
            track = unmatched.pop(track_index)
            track.observe(boxes[rows[box_index]])
            ids[rows[box_index]] = track.id
        return list(unmatched.values())
