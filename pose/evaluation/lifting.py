"""Batched lifting of labelled sequences, with and without flip augmentation, with timing."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from pose.evaluation.scores import SequenceScores, score
from pose.labelled import LabelledSequence
from pose.sequences import Sequence2D, Sequence3D, mirror_answer, mirror_picture
from pose.types import F32

# Frames lifted in one call: enough for full batches, and independent of the size of the data set.
FRAMES_A_CALL = 16_384
PLAIN, FLIPPED, GIVEN = "no flip", "flip", "as given"


class SequenceLifter(Protocol):
    """Interface of an evaluated lifter: `pose.lifter.predict.Lifter` or an object with the same methods."""

    name: str

    def lift_many(self, sequences: list[Sequence2D], lookahead: int = 0, *, mirrored: bool = True) -> list[Sequence3D]:
        """Lift every frame of each sequence to 3D.

        Args:
            sequences: 2D of one person each.
            lookahead: Frames.
            mirrored: Whether the lifter may average with the output for the mirror image.
        """
        ...


@dataclass(slots=True)
class Evaluation:
    """Scores by variant ("no flip", "flip", "as given"), the predictions of the last variant, and times."""

    scores: dict[str, list[SequenceScores]] = field(default_factory=dict)
    predictions: dict[str, F32] = field(default_factory=dict)
    frames_lifted: int = 0
    frames_measured: int = 0
    lifter_seconds: float = 0.0
    metrics_seconds: float = 0.0

    def measure(
        self,
        variant: str,
        sequences: Sequence[LabelledSequence],
        poses: Sequence[F32],
        sigmas: Sequence[F32 | None],
    ) -> None:
        """Add the scores of sequences; the poses of the last measured variant are kept.

        Sequences are measured in threads, since NumPy releases the interpreter lock.
        """
        start = time.perf_counter()
        with ThreadPoolExecutor(min(len(sequences), os.cpu_count() or 1)) as pool:
            self.scores.setdefault(variant, []).extend(pool.map(score, sequences, poses, sigmas))
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
    """Lift and measure all sequences, without flip and, with `flip`, averaged with the mirror image.

    Args:
        sequences: Sequences to lift, with ground truth.
        lifter: The lifter.
        flip: Whether to measure with flip, too.
        lookahead: Frames, for streaming lifters.
        advance: Called with the number of finished frames.
    """
    evaluation = Evaluation()
    for batch in _batches(sequences):
        start = time.perf_counter()
        plain = _lift(batch, lifter, lookahead, mirror=False)
        turned = _lift(batch, lifter, lookahead, mirror=True) if flip else []
        evaluation.lifter_seconds += time.perf_counter() - start
        frames = sum(map(len, batch))
        evaluation.frames_lifted += frames * (1 + flip)
        _measure(evaluation, PLAIN, batch, plain, sigmas=not flip)
        if flip:
            _measure(evaluation, FLIPPED, batch, list(map(_mean, plain, turned)), sigmas=True)
        advance(frames)
    return evaluation


def evaluate_predictions(
    sequences: Sequence[LabelledSequence],
    predictions: dict[str, F32],
    *,
    advance: Callable[[int], object] = lambda frames: None,
) -> Evaluation:
    """Measure existing predictions, stored under the keys of `sequences`."""
    evaluation = Evaluation()
    for batch in _batches(sequences):
        evaluation.measure(GIVEN, batch, [predictions[one.key] for one in batch], [None] * len(batch))
        advance(sum(map(len, batch)))
    return evaluation


def _measure(
    evaluation: Evaluation, variant: str, batch: list[LabelledSequence], answers: list[Sequence3D], *, sigmas: bool
) -> None:
    """Add the outputs of a lifter for a batch, converted to the space of the ground truth.

    Args:
        evaluation: Where to add.
        variant: Variant of the prediction.
        batch: The sequences.
        answers: The outputs.
        sigmas: Whether to include uncertainties.
    """
    poses = [_poses(answer, sequence) for answer, sequence in zip(answers, batch, strict=True)]
    evaluation.measure(variant, batch, poses, [answer.sigma if sigmas else None for answer in answers])


def _mean(a: Sequence3D, b: Sequence3D) -> Sequence3D:
    half = np.float32(0.5)
    return Sequence3D(half * (a.joints + b.joints), half * (a.root + b.root), half * (a.sigma + b.sigma), a.times)


def _poses(answer: Sequence3D, sequence: LabelledSequence) -> F32:
    """The output (T, 17, 3) in the space of the sequence's ground truth."""
    poses = answer.joints + answer.root[:, None]
    return poses if sequence.image_space is None else sequence.image_space.from_camera(poses).astype(np.float32)


def _batches(sequences: Sequence[LabelledSequence]) -> Iterator[list[LabelledSequence]]:
    batch: list[LabelledSequence] = []
    for sequence in sequences:
        batch.append(sequence)
        if sum(map(len, batch)) >= FRAMES_A_CALL:
            yield batch
            batch = []
    if batch:
        yield batch


def _lift(batch: list[LabelledSequence], lifter: SequenceLifter, lookahead: int, mirror: bool) -> list[Sequence3D]:
    """One output per sequence, lifted in the pieces that the protocol allows."""
    pieces = [one.observed[piece] for one in batch for piece in _pieces(one)]
    shown = [mirror_picture(piece) if mirror else piece for piece in pieces]
    answers = iter(lifter.lift_many(shown, lookahead, mirrored=False))
    whole = [_joined([next(answers) for _ in _pieces(one)]) for one in batch]
    return [mirror_answer(answer) for answer in whole] if mirror else whole


def _pieces(sequence: LabelledSequence) -> list[slice]:
    """The clips, and the remaining frames, which do not count but need a prediction."""
    if not sequence.clips:
        return [slice(0, len(sequence))]
    rest = slice(sequence.clips[-1].stop, len(sequence))
    return [*sequence.clips, rest] if rest.start < rest.stop else list(sequence.clips)


def _joined(parts: list[Sequence3D]) -> Sequence3D:
    if len(parts) == 1:
        return parts[0]
    names = ("joints", "root", "sigma", "times")
    return Sequence3D(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
