"""People who are stepped together: their state as rows of the arrays that a `StepBackend` reads in place."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

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
    first `pinned` slots keep the first frames, the others take turns. ages: of the frames that a step lifts again
    (`pose.lifter.sliding`); None where it lifts one frame once.
    """

    empty: Arrays
    pinned: int | None = None
    ages: tuple[int, ...] | None = None

    def lookahead(self, wanted: int) -> int:
        """The look-ahead that serves one of `wanted` frames: the same, or the last age that a frame has gone through
        by then."""
        return wanted if self.ages is None else max(age for age in self.ages if age <= wanted)

    def slots_of(self, frames: NDArray[np.int64]) -> NDArray[np.int64]:
        """(P, N): which slots the refreshed frames of a window go to, where frame number `frames` (P,) is the newest.
        Those of frames before the first are never read."""
        window = next(iter(self.empty.values())).shape[-2]
        slots: NDArray[np.int64] = (frames[:, None] - np.array(self.ages)) % window
        return slots

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

    def __post_init__(self) -> None:
        ages = self.step.memory.ages
        if ages is not None and self.lookahead not in ages:
            raise ValueError(f"lookahead: frames are lifted again {', '.join(map(str, ages))} frames later")


class PeopleState:
    """The state of some people, and the step that takes all of them one frame further."""

    def __init__(self, setting: Setting, people: int) -> None:
        self._setting, ages = setting, setting.step.memory.ages
        # One that lifts frames again says at once what it knows of all of them.
        begins, kept_frames = (-setting.lookahead, setting.lookahead + 1) if ages is None else (0, ages[-1] + 1)
        self.state: Arrays = {
            "frames": np.full(people, begins),
            "recent": np.repeat(nothing_observed(people)[:, None], kept_frames, axis=1),
            "recent_times": np.zeros((people, kept_frames)),
        }
        self.answers: F32 | None = None  # (P, N, 71) of the frames of all ages, after a step
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
        self._write(outputs)
        for name, array in self.state.items():
            if (following := outputs.get(f"next_{name}")) is not None:
                array[:] = following
        joints, root, sigma = outputs["joints"], outputs["root"], outputs["sigma"]
        answers: F32 = np.concatenate([joints.reshape(*root.shape[:-1], 51), root, sigma], axis=-1)
        if (ages := self._setting.step.memory.ages) is None:
            return answers
        self.answers = answers
        return answers[:, ages.index(self._setting.lookahead)]

    def answer_of(self, row: int, lookahead: int) -> F32 | None:
        """See `PersonState.answer_of`."""
        ages = self._setting.step.memory.ages
        if self.answers is None or ages is None or self.state["frames"][row] <= lookahead:
            return None
        answer: F32 = self.answers[row, ages.index(lookahead)]
        return answer

    def _write(self, outputs: Arrays) -> None:
        """Put the new keys and values where they belong."""
        if self._windows is None:
            return
        memory, frames = self._setting.step.memory, np.asarray(self.state["frames"], np.int64)
        if memory.ages is None:
            self._windows[:, self._rows, :, memory.slot(frames)] = outputs["update"]
        else:
            update = outputs["update"].transpose(0, 4, 1, 2, 3, 5)
            self._windows[:, self._rows[:, None], :, :, memory.slots_of(frames)] = update

    def ready(self, row: int) -> bool:
        """Whether the next frame brings an answer."""
        waits = 0 if self._setting.step.memory.ages is None else self._setting.lookahead
        return bool(self.state["frames"][row] >= waits)


@dataclass(slots=True, eq=False)
class PersonState:
    """What a stream remembers of one person: a row of the people they were last stepped with."""

    among: PeopleState
    row: int
    _held: deque[F32 | None] = field(default_factory=deque)

    def hold(self, answer: F32 | None, frames: int) -> F32 | None:
        """The answer that was given so many frames ago, None before; `answer` is kept until then."""
        if not frames:
            return answer
        self._held.append(answer)
        return self._held.popleft() if len(self._held) > frames else None

    @property
    def arrays(self) -> Arrays:
        """The state by name."""
        return {name: array[self.row] for name, array in self.among.state.items()}

    @property
    def ready(self) -> bool:
        """Whether the next frame brings an answer."""
        return self.among.ready(self.row)

    def answer_of(self, lookahead: int) -> F32 | None:
        """What is known now of the frame `lookahead` frames ago, (71,), of a window that slides, for one of its ages;
        None before there is such a frame."""
        return self.among.answer_of(self.row, lookahead)


def gather(setting: Setting, people: Sequence[PersonState]) -> PeopleState:
    """The people as the rows of one batch, in their order; nothing is copied if they were so at the last frame."""
    batch = people[0].among
    if len(batch) == len(people) and all(p.among is batch and p.row == i for i, p in enumerate(people)):
        return batch
    batch = PeopleState(setting, len(people))
    for row, person in enumerate(people):
        batch.take(row, person)
    return batch
