"""One trial: a condition with a seed. What it is given, what it answers, and the processor time that it may spend."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pose.sequences import LiftBatch


class OutOfTime(Exception):  # noqa: N818  a signal, not an error
    """The budget is spent. What a trial has done so far is in its state file, if it keeps one."""


class Clock:
    """Processor seconds of this process and all its threads, so that other work on the machine does not count.

    budget: how many may be spent from now on.
    """

    def __init__(self, budget: float = float("inf"), now: Callable[[], float] = time.process_time) -> None:
        self._now, self._began, self.budget = now, now(), budget

    @property
    def spent(self) -> float:
        """Seconds since the start of the trial."""
        return self._now() - self._began

    def check(self) -> None:
        """Raises OutOfTime once the budget is spent."""
        if self.spent >= self.budget:
            raise OutOfTime


@dataclass(frozen=True, slots=True)
class GroupedBatches:
    """Sequences to measure on. group: what they have in common, such as their subject."""

    group: str
    batches: "Iterator[LiftBatch]"


class Motion(Protocol):
    """Motion capture seen by virtual cameras. The laboratory knows no files; its command brings them."""

    def training(
        self, frames: int, sequences: int, seed: int, share: float = 1.0, without: str = ""
    ) -> "Callable[[int], LiftBatch]":
        """What gives the training batch of a step: so many sequences of so many frames. share: of the training
        subjects, at least one, drawn by the seed; who is in a small share is in every larger one. without: a subject
        who is left out."""
        ...

    def evaluation(self, part: str, condition: str, frames: int) -> "Iterator[LiftBatch]":
        """Fixed sequences of "validation" or "test" subjects; condition: gt or detector."""
        ...

    def of_subject(self, name: str, condition: str, frames: int) -> "Iterator[LiftBatch]":
        """Fixed sequences of one training subject. Raises UsageError where there is none of that name."""
        ...

    def groups(self, by: str, condition: str, frames: int) -> Iterator[GroupedBatches]:
        """Test batches grouped by `by`."""
        ...


@dataclass(frozen=True, slots=True)
class Setup:
    """What a trial is given. motion: raises UsageError where none was named. state: where a trial may keep what it has
    done when its time is up; nothing is there at its first start."""

    seed: int
    clock: Clock
    motion: Callable[[], Motion]
    state: Path

    def stage(self, name: str) -> "Setup":
        """For a part of the trial, which keeps what it has done beside the others."""
        return replace(self, state=self.state.with_stem(f"{self.state.stem}.{name}"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial answers; see `pose.laboratory.log.Record`. cpu_seconds: spent before this call, if resumed."""

    results: Mapping[str, float]
    steps: int = 0
    examples: int = 0
    cpu_seconds: float = 0.0
