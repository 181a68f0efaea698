"""Refined live results: each frame is returned again once the following frames have improved its pose.

With every new frame, a sliding stream (`pose.lifting.sliding`) also lifts some recent frames again. `Refinements`
stores
recent frames, replaces their outputs, and returns each frame when it is final. Recordings and messages use the final
results; a display shows the newest results.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from pose.lifting.pending import PendingFrame, PersonFrame
from pose.lifting.step_batch import StreamState
from pose.structures.stages import LifterStage, Refining
from pose.structures.types import FrameResult, People


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
    """Lifter stage that returns each frame only once, after its refinement.

    Use it for files, where delay does not matter. Follows `pose.structures.stages.LifterStage`.
    """

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
