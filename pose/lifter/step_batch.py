"""People who are stepped together: their state as rows of the arrays that a `StepBackend` reads in place."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from torch import Tensor

from pose.lifter.backends import Arrays, StepBackend
from pose.lifter.step import StreamStep, WindowedCore
from pose.types import F32


@dataclass(frozen=True, slots=True)
class Setting:
    """What is the same for all people of a stream. camera: the step's inputs `intrinsics`, `derived` and
    `intrinsics_known`, of one person."""

    step: StreamStep
    backend: StepBackend
    lookahead: int
    camera: Arrays


class Together:
    """The state of some people, and the step that takes all of them one frame further."""

    def __init__(self, setting: Setting, people: int) -> None:
        self._setting = setting
        core, common = setting.step.core, setting.step.empty_state(people, setting.lookahead)
        self.state: Arrays = {name: part.numpy() for name, part in common.items()}
        memory = core.empty_state(people)
        self.state |= zip(core.state_names, (part.numpy() for part in memory), strict=True)
        self._windows = memory.numpy() if isinstance(memory, Tensor) else None
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
            array[row] = person.together.state[name][person.row]
        person.together, person.row = self, row

    def advance(self, keypoints: F32, scores: F32, time: float) -> F32:
        """One frame: keypoints (P, 17, 2) px and scores (P, 17) at `time` s. Returns the answers (P, 71), as
        `pose.lifter.predict.split_outputs` takes them; those of people who are not ready yet mean nothing."""
        self._seen["keypoints"][:] = keypoints
        self._seen["scores"][:] = scores
        self._seen["time"][:] = time
        if self._run is None:
            camera = {name: np.repeat(value[None], len(self), axis=0) for name, value in self._setting.camera.items()}
            self._run = self._setting.backend.bind(self._seen | camera | self.state)
        outputs = self._run()
        if self._windows is not None:
            slots = cast(WindowedCore, self._setting.step.core).slot(self.state["frames"])
            self._windows[:, self._rows, :, slots] = outputs["update"]
        for name, array in self.state.items():
            if (following := outputs.get(f"next_{name}")) is not None:
                array[:] = following
        return np.concatenate([outputs["joints"].reshape(-1, 51), outputs["root"], outputs["sigma"]], axis=1)


@dataclass(slots=True, eq=False)
class PersonState:
    """What a stream remembers of one person: a row of the people they were last stepped with."""

    together: Together
    row: int

    @property
    def arrays(self) -> Arrays:
        """The state by name."""
        return {name: array[self.row] for name, array in self.together.state.items()}

    @property
    def ready(self) -> bool:
        """Whether the next frame brings an answer."""
        return bool(self.together.state["frames"][self.row] >= 0)


def gather(setting: Setting, people: Sequence[PersonState]) -> Together:
    """The people as the rows of one batch, in their order; nothing is copied if they were so at the last frame."""
    together = people[0].together
    if len(together) == len(people) and all(p.together is together and p.row == i for i, p in enumerate(people)):
        return together
    together = Together(setting, len(people))
    for row, person in enumerate(people):
        together.take(row, person)
    return together
