"""Base classes of the box trackers and their tracks, with a Kalman filter.

The unit of time is one frame at the reference rate (30 frames/s). The caller sets the process noise for a step of one
frame, and steps of 0.88 to 1.12 frames use it unchanged. For other steps, the acceleration is random, constant over the
step, and has the variance v of the velocity noise. The process noise then has the variances v step^4 / 4 for a position
and v step^2 for its velocity, and their covariance is v step^3 / 2. Source: Y. Bar-Shalom, X. R. Li and T. Kirubarajan,
"Estimation with applications to tracking and navigation", 2001, section 6.3.2.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np

from pose.networks import crops
from pose.structures.types import F32, F64, I64, U8

MEASURED = 4
MAX_JITTER_FRAMES = 0.12  # tolerance for rounded and jittering time stamps, 4 ms at 30 Hz


class KalmanFilter:
    """The Kalman filter of one track; its state has four measured quantities and the velocities of the first V."""

    def __init__(self, measured: F64, covariance: F64, process: F64, measurement: F64) -> None:
        """Start with a first measurement and zero velocities; the variances are diagonals."""
        self.state = np.zeros(len(covariance))  # (4 + V,) the four measured quantities
        self.state[:MEASURED] = measured
        self.covariance = np.diag(covariance)  # (4 + V, 4 + V) covariance matrix of the state
        self.process = process  # (4 + V,) variances of the process noise of one frame
        self.measurement = measurement  # (4,) variances of the measurement noise; may be set before each update

    def predict(self, step: float) -> None:
        """Predict state and covariance `step` frames ahead; `step` may be fractional."""
        size = len(self.state)
        moving = np.arange(size - MEASURED)
        transition = np.eye(size)
        transition[moving, MEASURED + moving] = step
        self.state = transition @ self.state
        self.covariance = transition @ self.covariance @ transition.T + self._process_noise(step)

    def _process_noise(self, step: float) -> F64:
        noise = np.diag(self.process)
        if abs(step - 1) <= MAX_JITTER_FRAMES:
            return noise
        position = np.arange(len(self.state) - MEASURED)
        velocity = MEASURED + position
        variance = self.process[MEASURED:]
        noise[position, position] = variance * step**4 / 4
        noise[velocity, velocity] = variance * step**2
        noise[position, velocity] = noise[velocity, position] = variance * step**3 / 2
        return noise

    def update(self, measured: F64) -> None:
        """Update the state with a measurement (4,)."""
        # The covariance is updated in Joseph form, which keeps it symmetric and positive definite.
        seen = np.eye(MEASURED, len(self.state))
        noise = np.diag(self.measurement)
        spread = self.covariance @ seen.T
        gain = spread @ np.linalg.inv(seen @ spread + noise)
        self.state = self.state + gain @ (measured - seen @ self.state)
        rest = np.eye(len(self.state)) - gain @ seen
        self.covariance = rest @ self.covariance @ rest.T + gain @ noise @ gain.T


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
