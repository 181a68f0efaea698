"""Batched steps: the states of several people as rows of the arrays that a `StepBackend` reads in place."""

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
    """Layout and initial values of the caches that a streaming network keeps for one person.

    Attributes:
        empty: Initial caches by name.
        pinned: Number of slots that keep the first frames, if the caches are windows of keys and values (H, S, K). The
            other slots are a ring buffer, and a step returns only the new content of slots. None if a step returns the
            whole caches.
        ages: Ages, in frames, of the frames that each step lifts (`pose.lifter.sliding`); None if each frame is lifted
            once.
    """

    empty: Arrays
    pinned: int | None = None
    ages: tuple[int, ...] | None = None

    def lookahead(self, wanted: int) -> int:
        """Return the largest supported look-ahead of at most `wanted` frames.

        This is `wanted` itself, or for a sliding window its largest age up to `wanted`.
        """
        return wanted if self.ages is None else max(age for age in self.ages if age <= wanted)

    def slots_of(self, frames: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slots (P, N) of the frames that a step of a sliding window lifts.

        Slots of frames before the first one are arbitrary and never read.

        Args:
            frames: (P,) index of the newest frame.
        """
        window = next(iter(self.empty.values())).shape[-2]
        slots: NDArray[np.int64] = (frames[:, None] - np.array(self.ages)) % window
        return slots

    def slot(self, frames: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slot (P,) of the frame with index `frames` (P,). For a negative index the slot is arbitrary."""
        assert self.pinned is not None
        slots, frames = next(iter(self.empty.values())).shape[1], np.maximum(frames, 0)
        return np.where(frames < self.pinned, frames, self.pinned + (frames - self.pinned) % (slots - self.pinned))


@dataclass(frozen=True, slots=True)
class Step:
    """Streaming step for one frame.

    Attributes:
        backend: Backend that computes the step.
        memory: Caches to keep for each person.
    """

    backend: StepBackend
    memory: Memory


@dataclass(frozen=True, slots=True)
class Setting:
    """Settings that all people of a stream share.

    Attributes:
        step: The step.
        lookahead: Delay of the outputs in frames. A sliding window supports only its `ages`.
        camera: The step's inputs `intrinsics`, `derived` and `intrinsics_known`, for one person.
    """

    step: Step
    lookahead: int
    camera: Arrays

    def __post_init__(self) -> None:
        ages = self.step.memory.ages
        if ages is not None and self.lookahead not in ages:
            known = ", ".join(map(str, ages))
            raise ValueError(f"lookahead: this lifter supports {known} frames, got {self.lookahead}")


class PeopleState:
    """The states of several people, and the step that advances all of them by one frame."""

    def __init__(self, setting: Setting, people: int) -> None:
        self._setting, ages = setting, setting.step.memory.ages
        # A sliding window counts from 0, because it returns outputs for all ages at once.
        begins, kept_frames = (-setting.lookahead, setting.lookahead + 1) if ages is None else (0, ages[-1] + 1)
        self.state: Arrays = {
            "frames": np.full(people, begins),
            "recent": np.repeat(nothing_observed(people)[:, None], kept_frames, axis=1),
            "recent_times": np.zeros((people, kept_frames)),
        }
        self.answers: F32 | None = None  # (P, N, 71) of the frames of all ages, after a step
        kept = {name: np.repeat(row[None], people, axis=0) for name, row in setting.step.memory.empty.items()}
        self._windows = None
        if setting.step.memory.pinned is not None:  # one array, so that `update` is written at once
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

    def take(self, row: int, person: "StreamState") -> None:
        """Copy a person's state to a row, and move the person to this batch."""
        for name, array in self.state.items():
            array[row] = person.among.state[name][person.row]
        person.among, person.row = self, row

    def advance(self, keypoints: F32, scores: F32, time: float) -> F32:
        """Process one frame.

        Args:
            keypoints: (P, 17, 2) px.
            scores: (P, 17).
            time: Time of the frame, s.

        Returns:
            Outputs (P, 71) for `pose.lifter.predict.split_outputs`. The row of a person is valid only if `ready` was
                true for this person before the call.
        """
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
        """Return the output (71,) of row `row`, as `StreamState.answer_of` does."""
        ages = self._setting.step.memory.ages
        if self.answers is None or ages is None or self.state["frames"][row] <= lookahead:
            return None
        answer: F32 = self.answers[row, ages.index(lookahead)]
        return answer

    def _write(self, outputs: Arrays) -> None:
        """Write the new keys and values of windowed attention to their slots."""
        if self._windows is None:
            return
        memory, frames = self._setting.step.memory, np.asarray(self.state["frames"], np.int64)
        if memory.ages is None:
            self._windows[:, self._rows, :, memory.slot(frames)] = outputs["update"]
        else:
            update = outputs["update"].transpose(0, 4, 1, 2, 3, 5)
            self._windows[:, self._rows[:, None], :, :, memory.slots_of(frames)] = update

    def ready(self, row: int) -> bool:
        """Return whether the next frame yields an output."""
        waits = 0 if self._setting.step.memory.ages is None else self._setting.lookahead
        return bool(self.state["frames"][row] >= waits)


@dataclass(slots=True, eq=False)
class StreamState:
    """The state of one person in a stream.

    Attributes:
        among: Batch in which the person was last processed.
        row: Row of the person in this batch.
    """

    among: PeopleState
    row: int
    _held: deque[F32 | None] = field(default_factory=deque)

    def hold(self, answer: F32 | None, frames: int) -> F32 | None:
        """Delay the outputs of a person by a number of frames.

        Args:
            answer: Output of the newest frame, stored for later calls.
            frames: Delay in frames.

        Returns:
            The output stored `frames` frames ago; None before the first output.
        """
        if not frames:
            return answer
        self._held.append(answer)
        return self._held.popleft() if len(self._held) > frames else None

    @property
    def arrays(self) -> Arrays:
        """The state tensors by name."""
        return {name: array[self.row] for name, array in self.among.state.items()}

    @property
    def ready(self) -> bool:
        """Whether the next frame yields an output."""
        return self.among.ready(self.row)

    def answer_of(self, lookahead: int) -> F32 | None:
        """Return the current output (71,) of a sliding window for an earlier frame; None if there is no output yet.

        Args:
            lookahead: Age of the frame, in frames. Must be one of the ages of the step.
        """
        return self.among.answer_of(self.row, lookahead)


def gather(setting: Setting, people: Sequence[StreamState]) -> PeopleState:
    """Collect people as the rows of one batch, in their order. Copies nothing if the batch is unchanged."""
    batch = people[0].among
    if len(batch) == len(people) and all(p.among is batch and p.row == i for i, p in enumerate(people)):
        return batch
    batch = PeopleState(setting, len(people))
    for row, person in enumerate(people):
        batch.take(row, person)
    return batch
