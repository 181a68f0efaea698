"""The last second of all people in a stream, with constant cost and memory."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pose.lifting.forecast.types import PAST_SECONDS, Past
from pose.structures.types import F32, F64, FrameResult

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
