"""Frames that wait for their 3D: what the offline and the streaming stage share."""

from collections import deque

import numpy as np

from pose.lifter.predict import split_outputs
from pose.types import F32, FrameResult, People, Poses3D


class PendingFrame:
    """A frame whose people do not all have their 3D yet; `missing` says how many."""

    def __init__(self, people: People) -> None:
        self.people, self.missing = people, len(people)
        self._answers = np.zeros((len(people), 17 * 4 + 3), np.float32)

    def answer(self, row: int, answer: F32) -> None:
        """The 3D of person number `row`, as `join_outputs` puts it."""
        self._answers[row] = answer
        self.missing -= 1

    def result(self) -> FrameResult:
        return FrameResult(self.people, Poses3D(*split_outputs(self._answers)))


def take_finished(pending: deque[PendingFrame]) -> list[FrameResult]:
    """Remove and return the frames at the front that miss nothing."""
    done = []
    while pending and pending[0].missing == 0:
        done.append(pending.popleft().result())
    return done
