"""Frames that wait for the 3D of their people; shared by the offline and the streaming stage."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from pose.lifting.predict import split_outputs
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D, Sequence3D
from pose.structures.skeletons import Skeleton
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
