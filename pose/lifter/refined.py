"""Live results a second time: each frame as it is known once some frames have followed.

A stream that slides (`pose.lifter.sliding`) lifts the last frames again with every new one. `Refinements` keeps the
frames of the last moments, takes what is said of them, and hands out each when it is final: what recordings and
messages want, while the newest answer is what a screen shows.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from pose.lifter.pending import PendingFrame, PersonFrame
from pose.lifter.step_batch import PersonState
from pose.stages import LifterStage, Refining
from pose.types import FrameResult, People


@dataclass(slots=True, eq=False)
class RecentFrames:
    """One person's frames of the last moments, newest first; None where they were not seen."""

    frames: deque[PersonFrame | None] = field(default_factory=deque)

    def add(self, frame: PersonFrame | None, state: PersonState, ages: Sequence[int]) -> None:
        """The next frame, after the step that saw it: answers of all `ages`, in increasing order, are taken over."""
        self.frames.appendleft(frame)
        while len(self.frames) > ages[-1] + 1:
            self.frames.pop()
        for age in ages:
            known = self.frames[age] if age < len(self.frames) else None
            if known is not None and (answer := state.answer_of(age)) is not None:
                known.lifted = answer
                known.answer()


class Refinements:
    """The frames of a stream on the way to their final answers. delay: how many frames later a frame is final."""

    def __init__(self, delay: int) -> None:
        self.delay = delay
        self._waiting: deque[PendingFrame] = deque()
        self._final: list[FrameResult] = []

    def push(self, people: People) -> PendingFrame:
        """The next frame, whose answers may be given again and again while it waits."""
        while len(self._waiting) > self.delay:  # it was at the last age at the frame before
            self._settle()
        self._waiting.append(PendingFrame(people))
        return self._waiting[-1]

    def end(self) -> None:
        """Nothing follows: what is known of the waiting frames is final."""
        while self._waiting:
            self._settle()

    def take(self) -> list[FrameResult]:
        """The frames that became final since they were last taken, oldest first."""
        final, self._final = self._final, []
        return final

    def _settle(self) -> None:
        self._final.append(self._waiting.popleft().result())


class FinalAnswers:
    """`pose.stages.LifterStage` that gives each frame once, refined: for files, where nobody waits for the newest."""

    def __init__(self, stage: LifterStage) -> None:
        """stage: that refines."""
        assert isinstance(stage, Refining), "the stage refines"
        self._stage, self._refining = stage, stage

    def push(self, people: People) -> list[FrameResult]:
        """Take the next frame; return the frames that are final now, oldest first."""
        self._stage.push(people)
        return self._refining.take_refined()

    def flush(self) -> list[FrameResult]:
        """The source has ended: return all frames not yet returned."""
        self._stage.flush()
        return self._refining.take_refined()
