"""Batched steps: the states of several people as rows of the arrays that a `StepBackend` reads in place."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pose.lifting.backends import Arrays, StepBackend
from pose.lifting.format import nothing_observed
from pose.structures.types import F32


@dataclass(frozen=True, slots=True)
class CacheLayout:
    """Layout and initial values of the caches that a streaming network keeps for one person."""

    # `pinned` slots keep the first frames, if the caches are windows of keys and values (heads, slots, features); the
    # others are a ring buffer, and a step returns only the new content of slots. None if a step returns the whole
    # caches. `ages` are those of the frames that each step lifts; None if each is lifted once.

    empty: Arrays  # initial caches by name
    pinned: int | None = None  # number of slots that keep the first frames
    ages: tuple[int, ...] | None = None  # ages, in frames, of the frames that each step lifts (`pose.lifting.sliding`)

    def supported_lookahead(self, requested: int) -> int:
        """Return the largest supported look-ahead up to `requested` frames: itself, or one of `ages`."""
        return requested if self.ages is None else max(age for age in self.ages if age <= requested)

    def slots_of(self, newest: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slots (P, N) of the frames with the N `ages`; arbitrary and unread before the first frame."""
        window = next(iter(self.empty.values())).shape[-2]
        slots: NDArray[np.int64] = (newest[:, None] - np.array(self.ages)) % window
        return slots

    def slot(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the slot (P,) of the frame with index `index` (P,). For a negative index the slot is arbitrary."""
        assert self.pinned is not None
        slots, index = next(iter(self.empty.values())).shape[1], np.maximum(index, 0)
        return np.where(index < self.pinned, index, self.pinned + (index - self.pinned) % (slots - self.pinned))


@dataclass(frozen=True, slots=True)
class Step:
    """Streaming step for one frame."""

    backend: StepBackend  # backend that computes the step
    cache_layout: CacheLayout  # caches to keep for each person


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """Settings that all people of a stream share."""

    step: Step  # step that processes one frame
    lookahead: int  # delay of the outputs in frames; for a sliding window one of `CacheLayout.ages`
    camera: Arrays  # the step's inputs `intrinsics`, `derived` and `intrinsics_known`, for one person

    def __post_init__(self) -> None:
        ages = self.step.cache_layout.ages
        if ages is not None and self.lookahead not in ages:
            known = ", ".join(map(str, ages))
            raise ValueError(f"lookahead: this lifter supports {known} frames, got {self.lookahead}")


class PeopleState:
    """The states of several people, and the step that advances all of them by one frame."""

    def __init__(self, settings: StreamSettings, people: int) -> None:
        self._settings, ages = settings, settings.step.cache_layout.ages
        # A sliding window counts from 0, because it returns outputs for all ages at once.
        first_index, kept_frames = (-settings.lookahead, settings.lookahead + 1) if ages is None else (0, ages[-1] + 1)
        self.state: Arrays = {
            "frames": np.full(people, first_index),
            "recent": np.repeat(nothing_observed(people)[:, None], kept_frames, axis=1),
            "recent_times": np.zeros((people, kept_frames)),
        }
        self.outputs_by_age: F32 | None = None  # (P, N, 71) of the frames of all ages, after a step
        caches = {name: np.repeat(row[None], people, axis=0) for name, row in settings.step.cache_layout.empty.items()}
        self._windows = None
        if settings.step.cache_layout.pinned is not None:  # one array, so that `update` is written at once
            self._windows = np.stack(list(caches.values()))
            caches = dict(zip(caches, self._windows, strict=True))
        self.state |= caches
        self._rows = np.arange(people)
        self._observed: Arrays = {
            "keypoints": np.zeros((people, 17, 2), np.float32),
            "scores": np.zeros((people, 17), np.float32),
            "time": np.zeros(people),
        }
        self._run: Callable[[], Arrays] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, row: int, person: "StreamState") -> None:
        """Copy the state of a person to index `row` of this batch, and move the person to this batch."""
        for name, array in self.state.items():
            array[row] = person.batch.state[name][person.row]
        person.batch, person.row = self, row

    def advance(self, keypoints: F32, scores: F32, time: float) -> F32:
        """Process one frame; return outputs (P, 71), each valid only if `ready` was true before the call."""
        self._observed["keypoints"][:] = keypoints
        self._observed["scores"][:] = scores
        self._observed["time"][:] = time
        if self._run is None:
            camera = {name: np.repeat(value[None], len(self), axis=0) for name, value in self._settings.camera.items()}
            self._run = self._settings.step.backend.bind(self._observed | camera | self.state)
        outputs = self._run()
        self._write(outputs)
        for name, array in self.state.items():
            if (following := outputs.get(f"next_{name}")) is not None:
                array[:] = following
        joints, root, sigma = outputs["joints"], outputs["root"], outputs["sigma"]
        joined: F32 = np.concatenate([joints.reshape(*root.shape[:-1], 51), root, sigma], axis=-1)
        if (ages := self._settings.step.cache_layout.ages) is None:
            return joined
        self.outputs_by_age = joined
        return joined[:, ages.index(self._settings.lookahead)]

    def output_of(self, row: int, age: int) -> F32 | None:
        """Return the current output (71,) of a sliding window for a frame of one of `ages`; None before the first."""
        ages = self._settings.step.cache_layout.ages
        if self.outputs_by_age is None or ages is None or self.state["frames"][row] <= age:
            return None
        output: F32 = self.outputs_by_age[row, ages.index(age)]
        return output

    def _write(self, outputs: Arrays) -> None:
        """Write the new keys and values of windowed attention to their slots."""
        if self._windows is None:
            return
        cache_layout, frames = self._settings.step.cache_layout, np.asarray(self.state["frames"], np.int64)
        if cache_layout.ages is None:
            self._windows[:, self._rows, :, cache_layout.slot(frames)] = outputs["update"]
        else:
            update = outputs["update"].transpose(0, 4, 1, 2, 3, 5)
            self._windows[:, self._rows[:, None], :, :, cache_layout.slots_of(frames)] = update

    def ready(self, row: int) -> bool:
        """Return whether the next frame yields an output for the person in row `row`."""
        min_index = 0 if self._settings.step.cache_layout.ages is None else self._settings.lookahead
        return bool(self.state["frames"][row] >= min_index)


@dataclass(slots=True, eq=False)
class StreamState:
    """The state of one person in a stream: row of the batch in which the person was last processed."""

    batch: PeopleState  # batch in which the person was last processed
    row: int  # index of the person in this batch
    _delayed: deque[F32 | None] = field(default_factory=deque)

    def delay_output(self, output: F32 | None, delay: int) -> F32 | None:
        """Store the output (71,) of the newest frame; return that of `delay` frames ago, None before the first."""
        if not delay:
            return output
        self._delayed.append(output)
        return self._delayed.popleft() if len(self._delayed) > delay else None

    @property
    def arrays(self) -> Arrays:
        """The state tensors by name."""
        return {name: array[self.row] for name, array in self.batch.state.items()}

    @property
    def ready(self) -> bool:
        """Whether the next frame yields an output for this person."""
        return self.batch.ready(self.row)

    def output_of(self, age: int) -> F32 | None:
        """Return the current output (71,) of a sliding window for a frame of one of `ages`; None before the first."""
        return self.batch.output_of(self.row, age)


def gather(settings: StreamSettings, people: Sequence[StreamState]) -> PeopleState:
    """Collect the states of people as the rows of one batch, in order; without a copy if they are that already."""
    batch = people[0].batch
    if len(batch) == len(people) and all(p.batch is batch and p.row == i for i, p in enumerate(people)):
        return batch
    batch = PeopleState(settings, len(people))
    for row, person in enumerate(people):
        batch.take(row, person)
    return batch
