"""Latest tracks of one live camera, on the clock of `time.monotonic`."""

from collections import deque

import numpy as np

from pose.live.result import LiveResult
from pose.multiview.calibrate import MIN_SPEED_MPS
from pose.multiview.stored import MIN_FRAMES, Row, rows_of, track_of
from pose.multiview.types import ViewTrack

MAX_STEP_SECONDS = 0.25  # between frames in which motion is measured
Observation = tuple[float, Row]  # capture time in s, and observation of a person


class Sightings:
    """Observations of people by one camera, for the latest frames. Times are on the clock of `time.monotonic`."""

    def __init__(self, camera: int, seconds: float) -> None:
        """Start without frames, which are kept for `seconds`."""
        self.camera, self.since, self.newest = camera, -np.inf, -np.inf
        self.size: tuple[int, int] | None = None  # (width, height) of the images, px; None before the first frame
        self._seconds = seconds
        self._tracks: dict[int, deque[Observation]] = {}
        self._moves: deque[tuple[float, float]] = deque()  # time of each frame and duration of the motion before it, s
        self._motion_seconds = 0.0  # total duration of motion, s

    @property
    def motion_seconds(self) -> float:
        """Total time in s during which at least one person moved, in the kept frames since the last `restart`."""
        return self._motion_seconds

    @property
    def rate(self) -> float:
        """Frame rate of the kept frames since the last `restart`, frames/s; 0 before the second frame."""
        if len(self._moves) < 2:
            return 0.0
        return (len(self._moves) - 1) / (self._moves[-1][0] - self._moves[0][0])

    @property
    def sees(self) -> bool:
        """Whether the kept frames contain a person."""
        return bool(self._tracks)

    def add(self, live: LiveResult) -> None:
        """Add a result of this camera. A result that is not newer than the last frame refines an earlier frame."""
        at = live.captured
        found = rows_of(live.result, live.skeleton)
        if at <= self.newest:  # refined
            for number, row in found:
                self._replace(number, at, row)
            return
        steps = [self._step(number, at, row) for number, row in found]
        self._moves.append((at, max(steps, default=0.0)))
        self._motion_seconds += self._moves[-1][1]
        while self._moves[0][0] < at - self._seconds:
            self._motion_seconds -= self._moves.popleft()[1]
        self.newest, self.size = at, live.size
        for number, row in found:
            self._tracks.setdefault(number, deque()).append((at, row))
        for number in list(self._tracks):
            rows = self._tracks[number]
            while rows and rows[0][0] < at - self._seconds:
                rows.popleft()
            if not rows:
                del self._tracks[number]

    def restart(self, since: float) -> None:
        """Exclude the frames before `since` (s) from calibrations, and reset `motion_seconds` and `rate`."""
        self.since, self._motion_seconds = since, 0.0
        self._moves.clear()

    def rows(self, since: float) -> dict[int, list[Observation]]:
        """Return copies of the observations since a capture time (s), by track id, in temporal order."""
        # An observation is a tuple of keypoints, scores, joints, root and sigma, as in `ViewTrack` without the axis of
        # time.
        recent = {number: [row for row in rows if row[0] >= since] for number, rows in self._tracks.items()}
        return {number: rows for number, rows in recent.items() if rows}

    def latest(self, number: int, since: float) -> ViewTrack | None:
        """Return the part of a track since a capture time (s); None if it has no such frames."""
        kept: deque[Observation] = deque()
        for one in reversed(self._tracks.get(number, ())):
            if one[0] < since:
                break
            kept.appendleft(one)
        return track_of(self.camera, number, kept) if kept else None

    def _step(self, number: int, at: float, row: Row) -> float:
        """Return the time in s since the last frame of a track if the person moved; otherwise 0."""
        rows = self._tracks.get(number)
        if not rows or not 0 < at - rows[-1][0] <= MAX_STEP_SECONDS:
            return 0.0
        before, elapsed = rows[-1][1], at - rows[-1][0]
        off = (row[2] + row[3]) - (before[2] + before[3])
        return elapsed if float(np.linalg.norm(off, axis=-1).mean()) > MIN_SPEED_MPS * elapsed else 0.0

    def _replace(self, number: int, at: float, row: Row) -> None:
        """Replace the observation of a track by its refinement."""
        rows = self._tracks.get(number, deque())
        for place in range(len(rows) - 1, -1, -1):
            if rows[place][0] <= at:
                if rows[place][0] == at:
                    rows[place] = (at, row)
                return


def tracks_of(camera: int, rows: dict[int, list[Observation]]) -> list[ViewTrack]:
    """Convert the observations of a camera to tracks of at least `MIN_FRAMES` frames."""
    return [track_of(camera, number, seen) for number, seen in rows.items() if len(seen) >= MIN_FRAMES]
