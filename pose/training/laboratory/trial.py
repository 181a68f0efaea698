"""Trials: the combination of a condition and a seed, with its inputs, results and budget of processor time."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pose.structures.sequences import LiftBatch


class OutOfTime(Exception):  # noqa: N818  a signal, not an error
    """Exception raised when the budget of processor time is spent. A trial that saves a state can be resumed."""


class Clock:
    """Clock for the processor time of this process with all its threads; `budget` seconds may be spent from now on."""

    def __init__(self, budget: float = float("inf"), now: Callable[[], float] = time.process_time) -> None:
        self._now, self._began, self.budget = now, now(), budget

    @property
    def spent(self) -> float:
        """Processor seconds since the clock was created."""
        return self._now() - self._began

    def check(self) -> None:
        """Check the budget; OutOfTime if the budget is spent."""
        if self.spent >= self.budget:
            raise OutOfTime


@dataclass(frozen=True, slots=True)
class GroupedBatches:
    """Sequences that have one property in common."""

    group: str  # value of the common property, such as the name of the subject
    batches: "Iterator[LiftBatch]"  # batches of these sequences


class MotionData(Protocol):
    """Protocol of motion capture in virtual cameras, which the command implements; this package reads no files."""

    def training(
        self, frames: int, sequences: int, seed: int, subject_fraction: float = 1.0, without: str = "",
        laboratories: tuple[str, ...] = (),
    ) -> "Callable[[int], LiftBatch]":  # fmt: skip
        """Return a function from step to training batch; larger fractions of subjects contain smaller ones.

        `laboratories` selects subjects, with as many sequences of each laboratory; empty: all, weighted by subject.
        """
        ...

    def evaluation(self, part: str, condition: str, frames: int) -> "Iterator[LiftBatch]":
        """Return sequences of "train" or "validation" up to `frames` long, with 2D "gt" or "detector"."""
        ...

    def of_subject(self, name: str, condition: str, frames: int) -> "Iterator[LiftBatch]":
        """Return fixed sequences of one training subject; UsageError if there is no such subject."""
        ...

    def groups(self, by: str, condition: str, frames: int) -> Iterator[GroupedBatches]:
        """Yield batches of each group of sequences with a common property, with 2D as for `evaluation`.

        It is "subject", "body" (laboratory and subject), "exercise", "size" or "speed".
        """
        ...


@dataclass(frozen=True, slots=True)
class Setup:
    """Inputs of a trial: one condition of an experiment with one seed."""

    seed: int  # random seed
    clock: Clock  # clock with the budget of processor time
    motion: Callable[[], MotionData]  # function that returns the motion data; raises UsageError if none was given
    state: Path  # file for the state of an interrupted trial; missing if there is no state

    def stage(self, name: str) -> "Setup":
        """Return the inputs for a part of the trial, with a state file whose name contains `name`."""
        return replace(self, state=self.state.with_stem(f"{self.state.stem}.{name}"))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Results of a trial (one condition with one seed), from which a `Record` is made."""

    results: Mapping[str, float]  # results by name
    steps: int = 0  # number of optimiser steps
    examples: int = 0  # number of training sequences, repetitions included
    cpu_seconds: float = 0.0  # processor time of earlier calls in s, if the trial was resumed
    # Half of the 95 % intervals of the results over sequences, by name, for kinds without seeds.
    half_widths: Mapping[str, float] = field(default_factory=dict)
