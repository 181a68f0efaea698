"""People who are stepped together: their state as rows of the arrays that a `StepBackend` reads in place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.lifter.backends import Arrays, StepBackend
from pose.lifter.format import nothing_observed
from pose.types import F32


@dataclass(frozen=True, slots=True)
class Memory:
    """What a step keeps of a person besides what was observed last.

    empty: by name, of one person of whom nothing was seen yet. pinned: None where a step returns all of it anew.
    Otherwise it is keys and values of windows, (H, S, K) each, and a step returns what one slot of each becomes: the
    first `pinned` slots keep the first frames, the others take turns.
    """

    empty: Arrays
    pinned: int | None = None

    def slot(self, frames: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which slot frame number `frames` (P,) goes to. Before the first answer it does not matter."""
        assert self.pinned is not None
        slots, frames = next(iter(self.empty.values())).shape[1], np.maximum(frames, 0)
        return np.where(frames < self.pinned, frames, self.pinned + (frames - self.pinned) % (slots - self.pinned))


@dataclass(frozen=True, slots=True)
class Step:
    """One frame of a stream: what computes it, and what it keeps."""

    backend: StepBackend
    memory: Memory


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same for all people of a stream. camera: the step's inputs `intrinsics`, `derived` and
    `intrinsics_known`, of one person."""

    step: Step
    lookahead: int
    camera: Arrays


class PeopleState:
    """The state of some people, and the step that takes all of them one frame further."""

    def __init__(self, setting: Setting, people: int) -> None:
        self._setting = setting
        self.state: Arrays = {
            "frames": np.full(people, -setting.lookahead),
            "recent": np.repeat(nothing_observed(people)[:, None], setting.lookahead + 1, axis=1),
            "recent_times": np.zeros((people, setting.lookahead + 1)),
        }
        kept = {name: np.repeat(row[None], people, axis=0) for name, row in setting.step.memory.empty.items()}
        self._windows = None
        if setting.step.memory.pinned is not None:  # in one block of memory, so that one write takes an `update`
            self._windows = np.stack(list(kept.values()))
            kept = dict(zip(kept, self._windows, strict=True))
        self.state |= kept
        self._rows = np.arange(people)
        self._seen: Arrays = {
            "keypoints": np.zeros((people, 17, 2), np.float32),
            "scores": np.zeros((people, 17), np.float32),
            "time": np.zeros(people),
        }
        self._run: Callable[[], Arrays] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, row: int, person: "PersonState") -> None:
        """Copy somebody's state into a row, which is where they are from now on."""
        for name, array in self.state.items():
            array[row] = person.among.state[name][person.row]
        person.among, person.row = self, row

    def advance(self, keypoints: F32, scores: F32, time: float) -> F32:
        """One frame: keypoints (P, 17, 2) px and scores (P, 17) at `time` s. Returns the answers (P, 71), as
        `pose.lifter.predict.split_outputs` takes them; those of people who are not ready yet mean nothing."""
        self._seen["keypoints"][:] = keypoints
        self._seen["scores"][:] = scores
        self._seen["time"][:] = time
        if self._run is None:
            camera = {name: np.repeat(value[None], len(self), axis=0) for name, value in self._setting.camera.items()}
            self._run = self._setting.step.backend.bind(self._seen | camera | self.state)
        outputs = self._run()
        if self._windows is not None:
            slots = self._setting.step.memory.slot(np.asarray(self.state["frames"], np.int64))
            self._windows[:, self._rows, :, slots] = outputs["update"]
        for name, array in self.state.items():
            if (following := outputs.get(f"next_{name}")) is not None:
                array[:] = following
        return np.concatenate([outputs["joints"].reshape(-1, 51), outputs["root"], outputs["sigma"]], axis=1)


@dataclass(slots=True, eq=False)
class PersonState:
    """What a stream remembers of one person: a row of the people they were last stepped with."""

    among: PeopleState
    row: int

    @property
    def arrays(self) -> Arrays:
        """The state by name."""
        return {name: array[self.row] for name, array in self.among.state.items()}

    @property
    def ready(self) -> bool:
        """Whether the next frame brings an answer."""
        return bool(self.among.state["frames"][self.row] >= 0)


def gather(setting: Setting, people: Sequence[PersonState]) -> PeopleState:
    """The people as the rows of one batch, in their order; nothing is copied if they were so at the last frame."""
    batch = people[0].among
    if len(batch) == len(people) and all(p.among is batch and p.row == i for i, p in enumerate(people)):
        return batch
    batch = PeopleState(setting, len(people))
    for row, person in enumerate(people):
        batch.take(row, person)
    return batch
