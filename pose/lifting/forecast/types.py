"""Inputs, outputs and batches of forecasters: the last second of people in 3D, and their motion.

Axes: P person, T past frame, Q query, J joint (17). 3D is metres in the camera frame, times are seconds. All arrays are
NumPy, for any backend.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pose.structures.columns import check_shape
from pose.structures.sequences import Sequence3D
from pose.structures.types import F32, F64, Flags, FrameResult

PAST_SECONDS = 1.0  # input of a forecaster; older frames are ignored
MAX_HORIZON_S = 1.0  # longest horizon in training and evaluation


@dataclass(frozen=True, slots=True)
class Past:
    """The past of P people, newest frame last; ValueError if shapes, times or values are invalid."""

    joints: F32  # (P, T, 17, 3) m, relative to the pelvis
    root: F32  # (P, T, 3) m, position of the pelvis
    sigma: F32  # (P, T, 17) mm from a lifter; 0 for exact poses
    times: F64  # (P, T) s, increasing over the valid frames, at any rate
    # (P, T) bool, False for padding and for frames without the person. Their content is ignored and may be NaN. Each
    # person has at least one valid frame.
    valid: Flags

    def __post_init__(self) -> None:
        p, t = self.valid.shape
        check_shape(self, "joints", (p, t, 17, 3))
        check_shape(self, "root", (p, t, 3))
        check_shape(self, "sigma", (p, t, 17))
        check_shape(self, "times", (p, t))
        if not self.valid.any(axis=1).all():
            raise ValueError("Past.valid: a person has no valid frame")
        for times, valid in zip(self.times, self.valid, strict=True):
            if not np.isfinite(times[valid]).all() or not (np.diff(times[valid]) > 0).all():
                raise ValueError("Past.times: time stamps must increase strictly")
        for name in ("joints", "root", "sigma"):
            if not np.isfinite(getattr(self, name)[self.valid]).all():
                raise ValueError(f"Past.{name}: NaN or infinity in a valid frame")

    def __len__(self) -> int:
        return len(self.valid)

    @classmethod
    def from_sequences(cls, sequences: Sequence[Sequence3D]) -> Self:
        """Return the last second of each sequence, with its own times. Shorter pasts are padded at the start."""
        recent = [np.flatnonzero(sequence.times >= sequence.times[-1] - PAST_SECONDS) for sequence in sequences]
        length = max(map(len, recent), default=1)
        frames = [np.concatenate([np.repeat(rows[:1], length - len(rows)), rows]) for rows in recent]
        pairs = list(zip(sequences, frames, strict=True))
        return cls(
            np.stack([sequence.joints[rows] for sequence, rows in pairs]),
            np.stack([sequence.root[rows] for sequence, rows in pairs]),
            np.stack([sequence.sigma[rows] for sequence, rows in pairs]),
            np.stack([sequence.times[rows] for sequence, rows in pairs]),
            np.arange(length) >= length - np.array([[len(rows)] for rows in recent]),
        )

    def last(self) -> NDArray[np.int64]:
        """Return the index (P,) of the newest valid frame of each person."""
        newest: NDArray[np.int64] = self.valid.shape[1] - 1 - np.argmax(self.valid[:, ::-1], axis=1)
        return newest


@dataclass(frozen=True, slots=True)
class Forecast:
    """Predicted motion of P people at Q times each."""

    joints: F32  # (P, Q, 17, 3) m, relative to the pelvis
    root: F32  # (P, Q, 3) m, position of the pelvis
    # (P, Q, 17) mm, the radius that contains the true joint with a probability of 68 %. For the pelvis, the origin of
    # the joints, it is the sigma of the last frame.
    sigma: F32
    # (P, Q) mm, radius that contains the true displacement of the pelvis since the last frame with a probability of 68
    # %
    root_sigma: F32
    # (P, Q) time from the last frame to the requested time, s; 0 for times that are not after the last frame
    ahead: F64

    def __post_init__(self) -> None:
        p, q = self.ahead.shape
        check_shape(self, "joints", (p, q, 17, 3))
        check_shape(self, "root", (p, q, 3))
        check_shape(self, "sigma", (p, q, 17))
        check_shape(self, "root_sigma", (p, q))

    def __len__(self) -> int:
        return len(self.ahead)


@runtime_checkable
class Forecaster(Protocol):
    """Protocol of objects that predict the motion of people from their last second."""

    name: str

    def predict(self, past: Past, times: F64) -> Forecast:
        """Predict the motion of P people at times (P, Q) s; times before a person's last frame give that frame."""
        ...


@dataclass(frozen=True, slots=True)
class ForecastBatch:
    """Pasts and true futures of B people."""

    past: F32  # (B, K, F) network inputs, F features at K ages (`pose.lifting.forecast.features.describe`)
    ahead: F64  # (B, Q) s, times of `truth` after the last frame of the past
    # (B, Q, 51) m, true displacements of the coordinates since the last frame of the past. The coordinates are those of
    # the 17 joints, in the order of `pose.lifting.forecast.config.COORDINATES`.
    truth: F32
    steps: F32  # (B, S, 51) m, the same displacements at S equal steps of `pose.lifting.forecast.config.STEP` seconds


MAX_FRAMES = 128  # maximum number of frames of a person; above 128 frames/s the past is shorter than a second
_JOINTS, _ROOT = slice(0, 51), slice(51, 54)


@dataclass(slots=True)
class _Track:
    """Stored frames of one person."""

    # `rows` and `times` hold 2 MAX_FRAMES rows. When they are full, the newest MAX_FRAMES are moved to the front, so
    # that they stay contiguous.

    first_time: float  # time of the first frame, s
    rows: F32 = field(default_factory=lambda: np.zeros((2 * MAX_FRAMES, 71), np.float32))  # (2 MAX_FRAMES, 71) joints
    times: F64 = field(default_factory=lambda: np.zeros(2 * MAX_FRAMES))  # (2 MAX_FRAMES,) times of the frames, s
    end: int = 0  # number of rows in use; only the newest MAX_FRAMES of them are read

    def add(self, row: F32, time: float) -> None:
        if self.end == len(self.times):
            self.rows[:MAX_FRAMES], self.times[:MAX_FRAMES] = self.rows[MAX_FRAMES:], self.times[MAX_FRAMES:]
            self.end = MAX_FRAMES
        self.rows[self.end], self.times[self.end] = row, time
        self.end += 1

    def recent(self) -> slice:
        """Return the slice of the frames in the last second before the last detection."""
        first = max(0, self.end - MAX_FRAMES)
        first += int(np.searchsorted(self.times[first : self.end], self.times[self.end - 1] - PAST_SECONDS))
        return slice(first, self.end)


class PastBuffer:
    """The last second of each person in a stream. People not seen for longer than that are removed."""

    def __init__(self) -> None:
        self._tracks: dict[int, _Track] = {}

    def add(self, result: FrameResult) -> None:
        """Add a frame. People without 3D, or with predicted 3D only, count as not seen."""
        people, poses, time = result.people, result.poses, result.time
        if people.cut:
            self._tracks = {}
        n = len(people)
        rows = np.concatenate([poses.joints.reshape(n, 51), poses.root, poses.sigma], axis=1)
        seen = np.isfinite(rows).all(axis=1) & (poses.ahead == 0)
        for row in np.flatnonzero(seen).tolist():
            self._tracks.setdefault(int(people.ids[row]), _Track(time)).add(rows[row], time)
        self._tracks = {
            person: track for person, track in self._tracks.items() if track.times[track.end - 1] >= time - PAST_SECONDS
        }

    def last_seen(self) -> dict[int, tuple[float, float]]:
        """Return the times in s of the first and the last frame of each person, by id."""
        return {person: (track.first_time, float(track.times[track.end - 1])) for person, track in self._tracks.items()}

    def past_of(self, people: Sequence[int]) -> Past:
        """Return the past of the people with the given ids. Shorter pasts are padded at the start."""
        tracks = [self._tracks[person] for person in people]
        spans = [track.recent() for track in tracks]
        longest = max((span.stop - span.start for span in spans), default=1)
        rows = np.zeros((len(tracks), longest, 71), np.float32)
        times, valid = np.zeros(rows.shape[:2]), np.zeros(rows.shape[:2], bool)
        for person, (track, span) in enumerate(zip(tracks, spans, strict=True)):
            frames = slice(longest - (span.stop - span.start), longest)
            rows[person, frames], times[person, frames], valid[person, frames] = (
                track.rows[span],
                track.times[span],
                True,
            )
        joints = rows[..., _JOINTS].reshape(*valid.shape, 17, 3)
        return Past(joints, rows[..., _ROOT], rows[..., _ROOT.stop :], times, valid)
