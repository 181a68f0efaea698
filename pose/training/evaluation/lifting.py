"""Batched lifting and scoring of labelled sequences, with and without flip augmentation."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np

from pose.structures.labelled import LabelledSequence
from pose.structures.sequences import Sequence2D, Sequence3D, mirror_lifted, mirror_observations
from pose.structures.types import F32
from pose.training.evaluation.scores import SequenceScores, score

# Frames lifted in one call: enough for full batches, and independent of the size of the data set.
FRAMES_PER_CALL = 16_384
PLAIN, FLIPPED, GIVEN = "no flip", "flip", "as given"


class SequenceLifter(Protocol):
    """Interface of a lifter that can be evaluated, such as `pose.lifting.predict.Lifter`."""

    name: str  # name in reports
    averages_mirrored: bool  # whether every output is already the mean of the input and its mirror image

    def lift_many(self, sequences: list[Sequence2D], lookahead: int = 0, *, mirrored: bool = True) -> list[Sequence3D]:
        """Lift every frame of each sequence to 3D."""
        ...


@dataclass(slots=True)
class Evaluation:
    """Scores, predictions and processing times of a method."""

    # Scores of each sequence by variant: "no flip", "flip", or "as given" for existing predictions.
    scores: dict[str, list[SequenceScores]] = field(default_factory=dict)
    # Predicted poses (T, 17, 3) in m of the last variant, by sequence key.
    predictions: dict[str, F32] = field(default_factory=dict)
    frames_lifted: int = 0  # number of lifted frames, summed over the variants
    frames_measured: int = 0  # number of scored frames, summed over the variants
    lifter_seconds: float = 0.0  # time spent in the lifter, s
    metrics_seconds: float = 0.0  # time spent in the metrics, s

    def measure(
        self,
        variant: str,
        sequences: Sequence[LabelledSequence],
        poses: Sequence[F32],
        sigmas: Sequence[F32 | None],
        *,
        centred: bool = True,
    ) -> None:
        """Score predicted poses against the ground truth, and keep them as the predictions of the last variant."""
        start = time.perf_counter()
        with ThreadPoolExecutor(min(len(sequences), os.cpu_count() or 1)) as pool:
            self.scores.setdefault(variant, []).extend(
                pool.map(partial(score, centred=centred), sequences, poses, sigmas)
            )
        self.metrics_seconds += time.perf_counter() - start
        self.frames_measured += sum(map(len, sequences))
        self.predictions.update((sequence.key, pose) for sequence, pose in zip(sequences, poses, strict=True))


def evaluate_lifter(
    sequences: Sequence[LabelledSequence],
    lifter: SequenceLifter,
    *,
    flip: bool = True,
    lookahead: int = 0,
    advance: Callable[[int], object] = lambda frames: None,
) -> Evaluation:
    """Lift and score all sequences, without and, with `flip`, also with averaging over mirrored inputs."""
    evaluation = Evaluation()
    flip &= not lifter.averages_mirrored
    for batch in _batches(sequences):
        start = time.perf_counter()
        plain = _lift(batch, lifter, lookahead, mirror=False)
        flipped = _lift(batch, lifter, lookahead, mirror=True) if flip else []
        evaluation.lifter_seconds += time.perf_counter() - start
        frames = sum(map(len, batch))
        evaluation.frames_lifted += frames * (1 + flip)
        _measure(evaluation, FLIPPED if lifter.averages_mirrored else PLAIN, batch, plain, sigmas=not flip)
        if flip:
            _measure(evaluation, FLIPPED, batch, list(map(_mean, plain, flipped)), sigmas=True)
        advance(frames)
    return evaluation


def evaluate_predictions(
    sequences: Sequence[LabelledSequence],
    predictions: dict[str, F32],
    *,
    centred: bool = True,
    advance: Callable[[int], object] = lambda frames: None,
) -> Evaluation:
    """Score existing predictions; those that are not `centred` keep the offset of their pelvis as an error."""
    evaluation = Evaluation()
    for batch in _batches(sequences):
        poses = [predictions[one.key] for one in batch]
        evaluation.measure(GIVEN, batch, poses, [None] * len(batch), centred=centred)
        advance(sum(map(len, batch)))
    return evaluation


def _measure(
    evaluation: Evaluation, variant: str, batch: list[LabelledSequence], outputs: list[Sequence3D], *, sigmas: bool
) -> None:
    """Score the outputs of a lifter for a batch, converted to the coordinate space of the ground truth."""
    poses = [_poses(output, sequence) for output, sequence in zip(outputs, batch, strict=True)]
    evaluation.measure(variant, batch, poses, [output.sigma if sigmas else None for output in outputs])


def _mean(a: Sequence3D, b: Sequence3D) -> Sequence3D:
    half = np.float32(0.5)
    return Sequence3D(half * (a.joints + b.joints), half * (a.root + b.root), half * (a.sigma + b.sigma), a.times)


def _poses(output: Sequence3D, sequence: LabelledSequence) -> F32:
    """Return the lifter's output (T, 17, 3) in the coordinate space of the ground truth."""
    poses = output.joints + output.root[:, None]
    return poses if sequence.image_space is None else sequence.image_space.from_camera(poses).astype(np.float32)


def _batches(sequences: Sequence[LabelledSequence]) -> Iterator[list[LabelledSequence]]:
    batch: list[LabelledSequence] = []
    for sequence in sequences:
        batch.append(sequence)
        if sum(map(len, batch)) >= FRAMES_PER_CALL:
            yield batch
            batch = []
    if batch:
        yield batch


def _lift(batch: list[LabelledSequence], lifter: SequenceLifter, lookahead: int, mirror: bool) -> list[Sequence3D]:
    """Lift each sequence of a batch, split into the clips of its protocol, and return one output per sequence."""
    clips = [one.observed[clip] for one in batch for clip in _clips(one)]
    inputs = [mirror_observations(clip) if mirror else clip for clip in clips]
    remaining_outputs = iter(lifter.lift_many(inputs, lookahead, mirrored=False))
    joined = [_joined([next(remaining_outputs) for _ in _clips(one)]) for one in batch]
    return [mirror_lifted(output) for output in joined] if mirror else joined


def _clips(sequence: LabelledSequence) -> list[slice]:
    """Return the clips of the protocol and the frames after them. The latter are not scored but need a prediction."""
    if not sequence.clips:
        return [slice(0, len(sequence))]
    rest = slice(sequence.clips[-1].stop, len(sequence))
    return [*sequence.clips, rest] if rest.start < rest.stop else list(sequence.clips)


def _joined(parts: list[Sequence3D]) -> Sequence3D:
    if len(parts) == 1:
        return parts[0]
    names = ("joints", "root", "sigma", "times")
    return Sequence3D(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
