"""Frames that wait for the 3D of their people: what the offline and the streaming stage share."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from pose.camera import Camera
from pose.lifter.predict import split_outputs
from pose.sequences import Sequence2D, Sequence3D
from pose.skeletons import Skeleton
from pose.types import F32, Flags, FrameResult, People, Poses3D


class PendingFrame:
    """A frame whose people do not all have their 3D yet; `missing` says how many."""

    def __init__(self, people: People) -> None:
        self.people, self.missing = people, len(people)
        self._answers = np.zeros((len(people), 17 * 4 + 3), np.float32)
        self._exchanged = np.zeros((len(people), 2), bool)

    def answer(self, row: int, answer: F32, exchanged: Flags) -> None:
        """The 3D of person number `row`, as `join_outputs` puts it, and which limbs (2,) repair exchanged."""
        self._answers[row], self._exchanged[row] = answer, exchanged
        self.missing -= 1

    def result(self) -> FrameResult:
        return FrameResult(self.people, Poses3D(*split_outputs(self._answers), self._exchanged))


@dataclass(slots=True, eq=False)
class PersonFrame:
    """One person in one frame, on the way to the 3D.

    pending, row: whose answer it is. time: s. keypoints (J, 2) px, scores (J,): as seen, then as repaired. exchanged:
    (2,), whether repair exchanged left and right of legs and arms. lifted: (71,), the 3D so far; None before it is
    lifted.
    """

    pending: PendingFrame
    row: int
    time: float
    keypoints: F32
    scores: F32
    exchanged: Flags
    lifted: F32 | None = None

    @classmethod
    def of(cls, pending: PendingFrame, row: int) -> "PersonFrame":
        people = pending.people
        return cls(pending, row, people.time, people.keypoints[row], people.scores[row], np.zeros(2, bool))

    def answer(self) -> None:
        """Give the frame its 3D."""
        assert self.lifted is not None
        self.pending.answer(self.row, self.lifted, self.exchanged)


def seen_sequence(frames: list[PersonFrame], camera: Camera, skeleton: Skeleton) -> Sequence2D:
    """The 2D of one person's frames, as repaired."""
    keypoints, scores = (np.stack([getattr(frame, name) for frame in frames]) for name in ("keypoints", "scores"))
    return Sequence2D(keypoints, scores, np.array([frame.time for frame in frames]), camera, skeleton.name)


def lifted_sequence(frames: list[PersonFrame]) -> Sequence3D:
    """The 3D so far of one person's frames, all of which are lifted."""
    answers = np.stack([frame.lifted for frame in frames if frame.lifted is not None])
    return Sequence3D(*split_outputs(answers), np.array([frame.time for frame in frames]))


def take_finished(pending: deque[PendingFrame]) -> list[FrameResult]:
    """Remove and return the frames at the front that miss nothing."""
    done = []
    while pending and pending[0].missing == 0:
        done.append(pending.popleft().result())
    return done
