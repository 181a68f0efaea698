"""The offline lifter as a pipeline stage: frames are returned once no later frame can change them.

The frames of each person pass through four steps: repair of the 2D, lifting in windows, constant bone lengths, and a
fit to the 2D. Each step passes a frame on once later frames can no longer change it. Memory holds a few seconds of
frames, whatever the length of the video. The results equal those of the four steps on whole tracks.
"""

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pose.errors import UsageError
from pose.lifting.fit.directions import BoneDirections
from pose.lifting.fit.log import FitLog
from pose.lifting.one_body import PersonBody
from pose.lifting.pending import PendingFrame, PersonFrame, take_finished
from pose.lifting.person_fit import PersonFit
from pose.lifting.predict import Lifter
from pose.lifting.repair.person import FULL_LOOKAHEAD_S, PersonRepair
from pose.lifting.repair.sides import mirrored_orders
from pose.lifting.sides import GivenSides, SideChanges
from pose.lifting.windows import PersonWindows
from pose.structures.camera import Camera
from pose.structures.gaps import MAX_TRACK_GAP_S
from pose.structures.skeletons import Skeleton
from pose.structures.types import FrameResult, People


class OfflineLifter:
    """Lifter stage for an offline `Lifter`. Follows `pose.structures.stages.LifterStage`.

    Results contain the original keypoints, and flags that state whether repair swapped left and right limbs.
    """

    def __init__(
        self,
        lifter: Lifter,
        skeleton: Skeleton,
        camera: Camera,
        *,
        repair: bool = False,
        constant_bones: bool = False,
        fit: bool = False,
        log: FitLog | None = None,
    ) -> None:
        """Start without tracks."""
        self._lifter, self._skeleton, self._camera = lifter, skeleton, camera
        self._repair, self._constant_bones, self._fit = repair, constant_bones, fit and constant_bones
        # s without detection that end a track
        self._max_gap_s = MAX_TRACK_GAP_S + (FULL_LOOKAHEAD_S if repair else 0)
        self._log = log
        self._sides: Sequence[GivenSides] = ()
        self._directions: Mapping[int, BoneDirections] = {}
        self._tracks: dict[int, _Track] = {}
        self._pending: deque[PendingFrame] = deque()

    def take_sides(self, sides: Sequence[GivenSides]) -> None:
        """Set the sides that a user gives, before the first frame."""
        self._sides = sides

    def take_directions(self, directions: Mapping[int, BoneDirections]) -> None:
        """Set the directions that sensors measure, by track id, before the first frame.

        Raises:
            UsageError: If the fit to the 2D is off.
        """
        if not self._fit:
            raise UsageError("imu: needs the fit to the 2D; leave out --no-fit and --no-constant-bones")
        self._directions = directions

    def push(self, people: People) -> list[FrameResult]:
        """Take the next frame; return the frames that are final now, oldest first."""
        pending = PendingFrame(people)
        self._pending.append(pending)
        for row, person in enumerate(people.ids.tolist()):
            if person not in self._tracks:
                self._tracks[person] = self._new_track(person)
            self._tracks[person].push(PersonFrame.of(pending, row))
        for person, track in list(self._tracks.items()):
            track.advance(people.time)
            if track.last_seen < people.time - self._max_gap_s:
                track.end()
                del self._tracks[person]
        return take_finished(self._pending)

    def flush(self) -> list[FrameResult]:
        """Return all remaining frames after the end of the source."""
        for track in self._tracks.values():
            track.end()
        self._tracks = {}
        return take_finished(self._pending)

    def _new_track(self, person: int) -> "_Track":
        return _Track(
            SideChanges(self._sides, person),
            mirrored_orders(self._skeleton),
            PersonRepair(self._skeleton, FULL_LOOKAHEAD_S) if self._repair else None,
            PersonWindows(self._lifter, self._skeleton, self._camera),
            PersonBody(self._skeleton, self._camera) if self._constant_bones else None,
            PersonFit(self._skeleton, self._camera, self._log, self._directions.get(person)) if self._fit else None,
        )


class _Track:
    """One person: the processing steps (None if disabled), and the frames that wait for the first step."""

    def __init__(
        self,
        sides: SideChanges,
        mirrors: NDArray[np.int64],
        repair: PersonRepair | None,
        windows: PersonWindows,
        body: PersonBody | None,
        fit: PersonFit | None,
    ) -> None:
        self._sides, self._mirrors = sides, mirrors  # (2, J) orders of the joints with legs and with arms swapped
        self._repair, self._windows, self._body, self._fit = repair, windows, body, fit
        self._seen: deque[PersonFrame] = deque()
        self.last_seen = -np.inf  # time of the last detection, s

    def push(self, frame: PersonFrame) -> None:
        """Add a frame in which the person is detected."""
        self.last_seen = frame.time
        self._seen.append(frame)
        if self._repair is not None:
            self._repair.push(frame.keypoints, frame.scores, frame.time)

    def advance(self, now: float) -> None:
        """Lift the frames whose 2D repair is final, and pass them on; `now` (s) is inf at the end of the track."""
        lifted: list[PersonFrame] = []
        for frame in self._repaired(now):
            limbs = self._sides.limbs(frame.time, frame.swapped)
            for order in self._mirrors[limbs]:
                frame.keypoints, frame.scores = frame.keypoints[order], frame.scores[order]
            frame.swapped = frame.swapped ^ limbs
            lifted += self._windows.push(frame)
        self._store(lifted)

    def end(self) -> None:
        """Process all remaining frames."""
        self.advance(np.inf)
        self._store(self._windows.end())
        if self._body is not None:
            self._fit_and_store(self._body.end())
        if self._fit is not None:
            for frame in self._fit.end():
                frame.store_output()

    def _repaired(self, now: float) -> list[PersonFrame]:
        if self._repair is None:
            frames = list(self._seen)
            self._seen.clear()
            return frames
        frames = []
        for repaired in self._repair.take(now):
            frame = self._seen.popleft()
            frame.keypoints, frame.scores, frame.swapped = repaired
            frames.append(frame)
        return frames

    def _store(self, lifted: list[PersonFrame]) -> None:
        self._fit_and_store(lifted if self._body is None else self._body.push(lifted))

    def _fit_and_store(self, frames: list[PersonFrame]) -> None:
        for frame in frames if self._fit is None else self._fit.push(frames):
            frame.store_output()
