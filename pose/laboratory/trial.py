"""A trial, which is a condition with a seed: inputs, results, and the budget of processor time."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pose.sequences import LiftBatch


class OutOfTime(Exception):  # noqa: N818  a signal, not an error
    """The budget is spent. A trial that saves a state can be resumed."""


class Clock:
    """Processor time of this process with all its threads, independent of other processes.

    Args:
        budget: Seconds that may be spent from now on.
    """

    def __init__(self, budget: float = float("inf"), now: Callable[[], float] = time.process_time) -> None:
        self._now, self._began, self.budget = now, now(), budget

    @property
    def spent(self) -> float:
        """Seconds since the start of the trial."""
        return self._now() - self._began

    def check(self) -> None:
        """Check the budget.

        Raises:
            OutOfTime: If it is spent.
        """
        if self.spent >= self.budget:
            raise OutOfTime


@dataclass(frozen=True, slots=True)
class GroupedBatches:
    """Sequences of one group.

    Attributes:
        group: Common property, such as the subject.
        batches: The sequences.
    """

    group: str
    batches: "Iterator[LiftBatch]"


class Motion(Protocol):
    """Motion capture seen by virtual cameras. The command provides it, so that the laboratory does not read files."""

    def training(
        self, frames: int, sequences: int, seed: int, share: float = 1.0, without: str = ""
    ) -> "Callable[[int], LiftBatch]":
        """A function that returns the training batch of a step.

        Args:
            frames: Frames of a sequence.
            sequences: Sequences of a batch.
            seed: Random seed.
            share: Fraction of the training subjects, at least one, sampled with the seed; larger fractions contain
                smaller ones.
            without: A subject to leave out.
        """
        ...

    def evaluation(self, part: str, condition: str, frames: int) -> "Iterator[LiftBatch]":
        """Fixed sequences of "validation" or "test" subjects.

        Args:
            part: "validation" or "test".
            condition: "gt" or "detector".
            frames: Frames of a sequence.
        """
        ...

    def of_subject(self, name: str, condition: str, frames: int) -> "Iterator[LiftBatch]":
        """Fixed sequences of one training subject.

        Raises:
            UsageError: If there is no such subject.
        """
        ...

    def groups(self, by: str, condition: str, frames: int) -> Iterator[GroupedBatches]:
        """Test batches of each group of sequences.

        Args:
            by: Property that the sequences of a group have in common, such as the subject.
            condition: Condition of the 2D input.
            frames: Length of the sequences.
        """
        ...


@dataclass(frozen=True, slots=True)
class Setup:
    """Inputs of a trial.

    Attributes:
        seed: Random seed.
        clock: The budget.
        motion: Returns the motion data; raises UsageError if none was given.
        state: File for the state of an interrupted trial; does not exist at the first start.
    """

    seed: int
    clock: Clock
    motion: Callable[[], Motion]
    state: Path

    def stage(self, name: str) -> "Setup":
        """Inputs for a part of the trial, with its own state file."""
        return replace(self, state=self.state.with_stem(f"{self.state.stem}.{name}"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a trial; see `pose.laboratory.log.Record`.

    Attributes:
        results: Results by name.
        steps: Optimiser steps.
        examples: Sequences trained on.
        cpu_seconds: Processor time of earlier calls, if resumed.
    """

    results: Mapping[str, float]
    steps: int = 0
    examples: int = 0
    cpu_seconds: float = 0.0
