"""The offline lifter as a pipeline stage: frames are returned once no later frame can change them.

The frames of each person pass through four steps: repair of the 2D, lifting in windows, constant bone lengths, and a
fit to the 2D. Each step passes a frame on once later frames can no longer change it. Memory holds a few seconds of
frames, whatever the length of the video. The results equal those of the four steps on whole tracks.

The frames of the first seconds are held back until the bone lengths are estimated from them. No other frames are
stored.

Memory is bounded, whatever the length of the video. The results equal those of `pose.lifting.predict.Lifter.lift`.
"""

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pose.errors import UsageError
from pose.lifting.blending import Blend
from pose.lifting.fit.directions import BoneDirections
from pose.lifting.fit.windows import FitLog, MotionFit, first_window
from pose.lifting.pending import PendingFrame, PersonFrame, keypoint_sequence, lifted_sequence, take_finished
from pose.lifting.predict import Lifter
from pose.lifting.repair.person import FULL_LOOKAHEAD_S, PersonRepair, mirrored_orders
from pose.lifting.sides import GivenSides, SideChanges
from pose.structures.camera import Camera
from pose.structures.defaults import MAX_TRACK_GAP_S
from pose.structures.refine import BodyDimensions, estimate_body, with_body_lengths
from pose.structures.skeletons import Skeleton
from pose.structures.types import FrameResult, People


class PersonWindows:
    """Buffer that lifts one person's frames in overlapping, blended windows, again after gaps over MAX_TRACK_GAP_S."""

    def __init__(self, lifter: Lifter, skeleton: Skeleton, camera: Camera) -> None:
        self._lifter, self._skeleton, self._camera = lifter, skeleton, camera
        self._begin()

    def _begin(self) -> None:
        self._waiting: list[PersonFrame] = []  # frames from the first that is not final
        self._windows = self._lifter.windows
        self._blend: Blend | None = None  # until the frame rate is known
        self._start = 0  # index in the track of the first waiting frame
        self._fresh = 0  # number of frames that no window has contained yet

    def push(self, frame: PersonFrame) -> list[PersonFrame]:
        """Add a frame; returns those that are lifted now, oldest first."""
        away = bool(self._waiting) and frame.time - self._waiting[-1].time > MAX_TRACK_GAP_S
        lifted = self.end() if away else []
        self._waiting.append(frame)
        self._fresh += 1
        if self._blend is None and len(self._waiting) == self._windows.size:
            self._blend = self._start_blend()
        if len(self._waiting) == self._windows.size and self._fresh >= self._windows.hop:
            lifted += self._lift(self._windows.hop)
        return lifted

    def _start_blend(self) -> Blend:
        self._windows = self._windows.at_rate_of(np.array([frame.time for frame in self._waiting]))
        return Blend(self._windows, self._windows.size + self._windows.hop)

    def end(self) -> list[PersonFrame]:
        """Lift and return the remaining frames."""
        lifted = self._lift(len(self._waiting))
        self._begin()
        return lifted

    def _lift(self, count: int) -> list[PersonFrame]:
        """Lift the waiting frames as one window and take the first `count`, which no later window contains."""
        self._blend = self._blend or self._start_blend()
        if self._fresh:
            sequence = keypoint_sequence(self._waiting, self._camera, self._skeleton)
            self._blend.add(self._start, self._lifter.forward_mirrored([sequence])[0])
            self._fresh = 0
        lifted, self._waiting = self._waiting[:count], self._waiting[count:]
        for frame, output in zip(lifted, self._blend.take(count), strict=True):
            frame.lifted = output
        self._start += count
        return lifted


class PersonFit:
    """Step that fits the 3D motion of one person to the 2D, window by window. Bone lengths must be constant already."""

    def __init__(
        self,
        skeleton: Skeleton,
        camera: Camera,
        log: FitLog | None = None,
        directions: BoneDirections | None = None,
    ) -> None:
        self._skeleton, self._camera = skeleton, camera
        self._fit = MotionFit(log, directions)
        self._waiting: list[PersonFrame] = []  # frames from the start of the window

    def push(self, frames: list[PersonFrame]) -> list[PersonFrame]:
        """Add frames; returns those that are final now, oldest first."""
        self._waiting += frames
        return self._fitted(ended=False)

    def end(self) -> list[PersonFrame]:
        """Fit the remaining frames at the end of the track."""
        return self._fitted(ended=True)

    def _fitted(self, ended: bool) -> list[PersonFrame]:
        """Fit the windows that are complete; return their final frames."""
        taken: list[PersonFrame] = []
        while self._waiting:
            window = first_window(np.array([frame.time for frame in self._waiting]), ended)
            if window is None:
                break
            end, final = window
            frames = self._waiting[:end]
            seen = keypoint_sequence(frames, self._camera, self._skeleton)
            fitted = self._fit.window(lifted_sequence(frames), seen, final)
            for frame, *parts in zip(frames[:final], fitted.joints, fitted.root, fitted.sigma, strict=False):
                frame.lifted = np.concatenate([part.ravel() for part in parts])
            taken += frames[:final]
            del self._waiting[:final]
        return taken


FIT_SECONDS = 10.0  # duration at the start of a track from which bone lengths are estimated


class PersonBody:
    """Step that makes the bone lengths of one person's lifted frames constant, as `pose.structures.refine.refine`
    does."""

    def __init__(self, skeleton: Skeleton, camera: Camera) -> None:
        self._skeleton, self._camera = skeleton, camera
        self._body: BodyDimensions | None = None
        self._first: list[PersonFrame] = []  # frames from which bone lengths will be estimated

    def push(self, frames: list[PersonFrame]) -> list[PersonFrame]:
        """Add lifted frames; returns those that are final now, oldest first."""
        if self._body is not None:
            return self._refined(frames, self._body)
        self._first += frames
        complete = bool(self._first) and self._first[-1].time >= self._first[0].time + FIT_SECONDS
        return self.end() if complete else []

    def end(self) -> list[PersonFrame]:
        """Return the remaining frames. If bone lengths are not known yet, they are estimated from these frames."""
        frames, self._first = self._first, []
        if not frames:
            return []
        self._body = self._fitted([frame for frame in frames if frame.time <= frames[0].time + FIT_SECONDS])
        return self._refined(frames, self._body)

    def _fitted(self, frames: list[PersonFrame]) -> BodyDimensions:
        return estimate_body(lifted_sequence(frames), keypoint_sequence(frames, self._camera, self._skeleton))

    def _refined(self, frames: list[PersonFrame], body: BodyDimensions) -> list[PersonFrame]:
        if not frames:
            return []
        for frame, joints in zip(frames, with_body_lengths(lifted_sequence(frames), body).joints, strict=True):
            assert frame.lifted is not None
            frame.lifted[: joints.size] = joints.ravel()
        return frames


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
        """Set sensors' directions by track id, before the first frame; UsageError without the fit."""
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
