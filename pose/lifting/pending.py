"""Frames that wait for the 3D of their people, and frames of live results that are returned again, refined.

With every new frame, a sliding stream (`pose.lifting.sliding`) also lifts some recent frames again. `Refinements`
stores recent frames, replaces their outputs, and returns each frame when it is final. Recordings and messages use the
final results; a display shows the newest results.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pose.lifting.predict import split_outputs
from pose.lifting.step_batch import StreamState
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D, Sequence3D
from pose.structures.skeletons import Skeleton
from pose.structures.stages import LifterStage, Refining
from pose.structures.types import F32, Flags, FrameResult, People, Poses3D


class PendingFrame:
    """A frame that waits for the 3D of its people."""

    def __init__(self, people: People) -> None:
        self.people, self.missing = people, len(people)
        self._outputs = np.zeros((len(people), 17 * 4 + 3), np.float32)
        self._swapped = np.zeros((len(people), 2), bool)

    def set_output(self, row: int, output: F32, swapped: Flags) -> None:
        """Set the 3D (71,) of the person in a row, and whether repair swapped the legs and the arms (2,)."""
        self._outputs[row], self._swapped[row] = output, swapped
        self.missing -= 1

    def result(self) -> FrameResult:
        """Return the people and their 3D. The 3D of missing people is zero."""
        return FrameResult(self.people, Poses3D(*split_outputs(self._outputs), self._swapped))


@dataclass(slots=True, eq=False)
class PersonFrame:
    """Person in one frame, with the current 2D (repaired where repair changed it) and 3D."""

    pending: PendingFrame  # the frame that contains the person
    row: int  # index of the person in the frame
    time: float  # time of the frame, s
    keypoints: F32  # (J, 2) px; repaired keypoints replace the original ones
    scores: F32  # (J,) confidences; repaired ones replace the original ones
    swapped: Flags  # (2,) bool, whether repair swapped left and right of the legs, and of the arms
    lifted: F32 | None = None  # (71,) current 3D in the order of `pose.lifting.predict.join_outputs`

    @classmethod
    def of(cls, pending: PendingFrame, row: int) -> "PersonFrame":
        """Return the person with index `row` in a frame, before lifting."""
        people = pending.people
        return cls(pending, row, people.time, people.keypoints[row], people.scores[row], np.zeros(2, bool))

    def store_output(self) -> None:
        """Store this person's 3D in the frame."""
        assert self.lifted is not None
        self.pending.set_output(self.row, self.lifted, self.swapped)


def keypoint_sequence(frames: list[PersonFrame], camera: Camera, skeleton: Skeleton) -> Sequence2D:
    """Return the current 2D of one person's frames as a sequence of keypoints of `skeleton`, seen by `camera`."""
    keypoints, scores = (np.stack([getattr(frame, name) for frame in frames]) for name in ("keypoints", "scores"))
    return Sequence2D(keypoints, scores, np.array([frame.time for frame in frames]), camera, skeleton.name)


def lifted_sequence(frames: list[PersonFrame]) -> Sequence3D:
    """Return the current 3D of one person's frames, all of which must be lifted."""
    outputs = np.stack([frame.lifted for frame in frames if frame.lifted is not None])
    return Sequence3D(*split_outputs(outputs), np.array([frame.time for frame in frames]))


def take_finished(pending: deque[PendingFrame]) -> list[FrameResult]:
    """Remove and return the complete frames at the front of the queue."""
    done = []
    while pending and pending[0].missing == 0:
        done.append(pending.popleft().result())
    return done


@dataclass(slots=True, eq=False)
class RecentFrames:
    """Recent frames of one person, whose poses may still improve."""

    frames: deque[PersonFrame | None] = field(default_factory=deque)  # frames, newest first

    def add(self, frame: PersonFrame | None, state: StreamState, ages: Sequence[int]) -> None:
        """Add a frame (None if not detected), and replace stored outputs at increasing `ages` by those of its step."""
        self.frames.appendleft(frame)
        while len(self.frames) > ages[-1] + 1:
            self.frames.pop()
        for age in ages:
            known = self.frames[age] if age < len(self.frames) else None
            if known is not None and (output := state.output_of(age)) is not None:
                known.lifted = output
                known.store_output()


class Refinements:
    """Queue of a stream's frames until their outputs are final, after `delay` frames."""

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self._waiting: deque[PendingFrame] = deque()
        self._final: list[FrameResult] = []

    def push(self, people: People) -> PendingFrame:
        """Add a frame; its outputs may be replaced until it is final."""
        while len(self._waiting) > self.delay:  # such a frame reached the last age with the previous frame
            self._finalize_oldest()
        self._waiting.append(PendingFrame(people))
        return self._waiting[-1]

    def end(self) -> None:
        """Mark all waiting frames as final."""
        while self._waiting:
            self._finalize_oldest()

    def take(self) -> list[FrameResult]:
        """Return the frames that became final since the last call, oldest first."""
        final, self._final = self._final, []
        return final

    def _finalize_oldest(self) -> None:
        self._final.append(self._waiting.popleft().result())


class FinalResults:
    """Lifter stage that returns each frame only once, after its refinement; for files, where delay does not matter."""

    def __init__(self, stage: LifterStage) -> None:
        """Wrap a stage that refines its results."""
        assert isinstance(stage, Refining), "the stage refines"
        self._stage, self._refining = stage, stage

    def push(self, people: People) -> list[FrameResult]:
        """Take the next frame; return the frames that are final now, oldest first."""
        self._stage.push(people)
        return self._refining.take_refined()

    def flush(self) -> list[FrameResult]:
        """Return all remaining frames after the end of the source."""
        self._stage.flush()
        return self._refining.take_refined()
