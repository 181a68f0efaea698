"""Training batches: how they are built in worker processes, converted to tensors, mirrored and copied to the device."""

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from pose.lifting.features import LifterInput, observe
from pose.structures.sequences import LiftBatch
from pose.structures.skeletons import H36M17

SourceBatch = TypeVar("SourceBatch")
SourceBatch_co = TypeVar("SourceBatch_co", covariant=True)


class BatchSource(Protocol[SourceBatch_co]):
    """Protocol of objects that build training batches."""

    def batch(self, step: int) -> SourceBatch_co:
        """Return a batch, equal for equal `step`: with several processes it is step * processes + rank."""
        ...


class Tensors(Protocol):
    """Protocol of batches that consist of tensors."""

    def to(self, device: torch.device) -> Self:
        """Return a copy of the batch on a device."""
        ...


class TensorBatch(NamedTuple):
    """The parts of a `pose.structures.sequences.LiftBatch` that training needs, as tensors with the same shapes and
    units."""

    keypoints: Tensor
    scores: Tensor
    times: Tensor
    intrinsics: Tensor
    derived: Tensor
    intrinsics_known: Tensor
    valid: Tensor
    joints: Tensor
    root: Tensor

    @classmethod
    def of(cls, batch: LiftBatch) -> Self:
        """Convert the arrays of a batch to tensors, which share their memory."""
        return cls(*(torch.from_numpy(getattr(batch, name)) for name in cls._fields))

    def to(self, device: torch.device) -> Self:
        """Return a copy of the batch on a device."""
        return type(self)(*(tensor.to(device, non_blocking=True) for tensor in self))

    def observe(self) -> LifterInput:
        """Compute the network inputs of the B sequences of T frames."""
        return observe(self.keypoints, self.scores, self.times, self.intrinsics, self.derived, self.intrinsics_known)

    def frames(self, index: slice) -> "TensorBatch":
        """Return the batch with only the frames selected by `index`."""
        along_time = ("keypoints", "scores", "times", "valid", "joints", "root")
        return self._replace(**{name: getattr(self, name)[:, index] for name in along_time})

    def mirrored(self) -> "TensorBatch":
        """Return the batch with left and right joints swapped and the image mirrored about its principal point."""
        keypoints = self.keypoints[:, :, _FLIP_ORDER].clone()
        keypoints[..., 0] = 2 * self.intrinsics[:, 0, 2].float()[:, None, None] - keypoints[..., 0]
        return self._replace(
            keypoints=keypoints,
            scores=self.scores[:, :, _FLIP_ORDER],
            joints=mirrored_joints(self.joints),
            root=self.root * self.root.new_tensor([-1, 1, 1]),
        )


_FLIP_ORDER = list(H36M17.flip_order)


def mirrored_joints(joints: Tensor) -> Tensor:
    """Mirror joints (..., 17, 3) in x, and swap left and right joints."""
    return joints[..., _FLIP_ORDER, :] * joints.new_tensor([-1, 1, 1])


Batch = TypeVar("Batch", bound=Tensors)


class _Steps(Dataset[Batch], Generic[Batch, SourceBatch]):
    """The batches of a source by step number, for the workers of a `DataLoader`."""

    def __init__(self, source: BatchSource[SourceBatch], to_tensors: Callable[[SourceBatch], Batch]) -> None:
        self._source, self._to_tensors = source, to_tensors

    def __getitem__(self, number: int) -> Batch:
        torch.set_num_threads(1)
        return self._to_tensors(self._source.batch(number))


def load(
    source: BatchSource[SourceBatch],
    to_tensors: Callable[[SourceBatch], Batch],
    numbers: Sequence[int],
    workers: int,
    device: torch.device,
) -> Iterator[Batch]:
    """Yield the batches of a source with the given step numbers on `device`, and build the next in the background.

    `to_tensors` converts a batch. `workers` processes are limited to the number of cores; 0 is a thread of this
    process.
    """
    if workers == 0:
        yield from (to_tensors(batch).to(device) for batch in _build_in_thread(source, numbers))
        return
    loader = DataLoader(
        _Steps(source, to_tensors),
        batch_size=None,
        sampler=numbers,
        num_workers=min(workers, os.cpu_count() or 1),
        pin_memory=device.type == "cuda",
        prefetch_factor=4,
        multiprocessing_context="forkserver",  # forking a process with threads may deadlock
    )
    for batch in loader:
        yield batch.to(device)


def _build_in_thread(source: BatchSource[SourceBatch], numbers: Sequence[int]) -> Iterator[SourceBatch]:
    with ThreadPoolExecutor(1) as thread:
        waiting = [thread.submit(source.batch, number) for number in numbers[:2]]
        for position in range(len(numbers)):
            batch = waiting.pop(0).result()
            if position + 2 < len(numbers):
                waiting.append(thread.submit(source.batch, numbers[position + 2]))
            yield batch


def timed(batches: Iterator[Batch]) -> Iterator[tuple[Batch, float]]:
    """Yield each batch with the time in seconds spent waiting for it."""
    while True:
        began = time.perf_counter()
        batch = next(batches, None)
        if batch is None:
            return
        yield batch, time.perf_counter() - began


def generator(device: torch.device, *parts: object) -> torch.Generator:
    """Return a random generator on `device`, seeded only by `parts`, for example a seed, a step and a purpose."""
    seed = random.Random("/".join(map(str, parts))).getrandbits(63)
    return torch.Generator(device).manual_seed(seed)
