"""Batches for `pose-train sensor`: motion capture with the errors of depth cameras, and recordings of a Kinect."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.body.sensors.kinect import FPS
from pose.lifting.sensor.batch import SensorBatch
from pose.lifting.sensor.features import as_targets, describe, heading
from pose.structures.types import F64, Array, Flags
from pose_datasets import bodies
from pose_datasets.bodies import BodyConfig
from pose_datasets.kinect import Pair, load_pairs
from pose_datasets.mocap import TEST_SUBJECTS, VALIDATION_SUBJECTS, load_clips, split
from pose_datasets.sampling import ClipPool, random_times
from pose_datasets.sensor_errors import SensorErrorConfig, mirrored, spoil

Joints = NDArray[np.floating]


@dataclass(frozen=True, kw_only=True)
class SensorDataConfig:
    """Settings of the batches of sensor networks."""

    mocap: str = ""  # path of the file from `pose-prepare`, or several paths separated by commas
    pairs: str = ""  # path of the file from `pose-prepare ui-prmd-kinect`; none: simulated errors only
    # Possible numbers of frames of a sequence; one is drawn per step. Repeat a value to draw it more often.
    frames: tuple[int, ...] = (24, 48, 96)
    batch_frames: int = 768  # number of frames of a batch, summed over its sequences
    recorded: float = 0.4  # fraction of sequences from `pairs`
    kinect: float = 0.5  # fraction of simulated sequences with the joint definitions of the Kinect, measured on `pairs`
    errors: SensorErrorConfig = field(default_factory=SensorErrorConfig)  # simulated errors
    bodies: BodyConfig = field(default_factory=BodyConfig)  # augmentation of bodies

    def __post_init__(self) -> None:
        if not self.frames or min(self.frames) < 8 or max(self.frames) > self.batch_frames:
            raise ValueError(f"data.frames: must be from 8 to batch_frames ({self.batch_frames}), got {self.frames}")
        for name in ("recorded", "kinect"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"data.{name}: must be from 0 to 1, got {getattr(self, name)}")


class SensorSource:
    """Training batches (a `pose.training.batches.BatchSource`), and fixed batches for evaluation."""

    def __init__(self, config: SensorDataConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self._clips = [clip for path in config.mocap.split(",") for clip in load_clips(Path(path))]
        self._pairs = load_pairs(Path(config.pairs)) if config.pairs else []
        self._pool = ClipPool(split(self._clips, "train"))
        self._train = pairs_of_part(self._pairs, "train")
        self._definition = definitions(self._train) if self._train else None

    @property
    def mean_definition(self) -> F64 | None:
        """Mean offset (17, 3) m of the Kinect's joints along people's axes; None without pairs."""
        return self._definition[0] if self._definition is not None else None

    def batch(self, step: int) -> SensorBatch:
        """Return the training batch of a step. Equal steps give equal batches."""
        config, rng = self._config, np.random.default_rng((self._seed, step))
        frames = int(rng.choice(config.frames))
        size = config.batch_frames // frames
        # At least one sequence is simulated, since an empty batch of clips has no shape.
        recorded = min(int(rng.binomial(size, config.recorded)), size - 1) if self._train else 0
        return self._batch(rng, self._pool, frames, (size - recorded, recorded))

    def _batch(self, rng: np.random.Generator, pool: ClipPool, frames: int, sizes: tuple[int, int]) -> SensorBatch:
        """Draw simulated and recorded sequences, as many as `sizes` says."""
        config, (simulated, recorded) = self._config, sizes
        times = random_times(rng, simulated, frames, 0.1, 60.0)
        speed = np.exp(np.clip(rng.normal(0, 0.3, simulated), -0.7, 0.7))
        points, valid = pool.windows(rng, times, speed)
        bones = bodies.to_bones(points)
        bones *= bodies.random_proportions(rng, simulated, config.bodies)[:, None, :, None]
        truth = bodies.assemble(bones)[:, :, :17].astype(np.float64)
        truth = np.where((rng.random(simulated) < 0.5)[:, None, None, None], mirrored(truth), truth)
        kinect = rng.random(simulated) < (config.kinect if self._definition is not None else 0)
        sensor, scores = spoil(rng, truth, times, config.errors, self._offsets(rng, truth, kinect))
        parts: list[tuple[Array, ...]] = [(sensor, truth, scores, times, valid, kinect)]
        if recorded:
            parts.append(self._recorded(rng, recorded, frames))
        joined = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
        return batch_of(*joined)

    def _offsets(self, rng: np.random.Generator, truth: F64, kinect: Flags) -> F64:
        """Return the constant offsets (B, 1, 17, 3) m of the joints along the axes of the input."""
        offsets = self._config.errors.definition * rng.normal(size=(len(truth), 17, 3))
        if self._definition is not None:
            mean, spread = self._definition
            own = mean + spread * rng.normal(size=(len(truth), 17, 3))
            offsets = np.where(kinect[:, None, None], own, offsets)
        return (offsets @ heading(truth))[:, None]

    def _recorded(self, rng: np.random.Generator, count: int, frames: int) -> tuple[Array, ...]:
        """Draw windows of pairs, some with more errors; short ones repeat their last frame, which is not valid."""
        pairs = self._train
        sensor, truth = np.empty((count, frames, 17, 3)), np.empty((count, frames, 17, 3))
        valid = np.zeros((count, frames), np.bool_)
        for row, chosen in enumerate(rng.integers(0, len(pairs), count)):
            pair = pairs[chosen]
            start = int(rng.integers(0, max(1, len(pair.sensor) - frames + 1)))
            at = np.minimum(start + np.arange(frames), len(pair.sensor) - 1)
            sensor[row], truth[row] = pair.sensor[at], pair.truth[at]
            valid[row] = start + np.arange(frames) < len(pair.sensor)
        times = np.tile(np.arange(frames) / FPS, (count, 1)) * np.exp(rng.uniform(-0.2, 0.2, (count, 1)))
        flipped = (rng.random(count) < 0.5)[:, None, None, None]
        sensor, truth = np.where(flipped, mirrored(sensor), sensor), np.where(flipped, mirrored(truth), truth)
        spoiled, scores = spoil(rng, sensor, times, self._config.errors, np.zeros((count, 1, 17, 3)))
        more = rng.random(count) < 0.3
        sensor = np.where(more[:, None, None, None], spoiled, sensor)
        scores = np.where(more[:, None, None], scores, 1.0)
        return sensor, truth, scores, times, valid, np.ones(count, np.bool_)

    def evaluation(self, part: str) -> dict[str, Iterator[SensorBatch]]:
        """Return fixed batches of a part of the people: "recorded" pairs, and "simulated" errors."""
        found: dict[str, Iterator[SensorBatch]] = {}
        if pairs := pairs_of_part(self._pairs, part):
            found["recorded"] = pair_batches(pairs)
        if clips := split(self._clips, part):
            pool = ClipPool(clips)
            rngs = [np.random.default_rng((7, number)) for number in range(4)]
            found["simulated"] = (self._batch(rng, pool, 96, (16, 0)) for rng in rngs)
        return found


def batch_of(sensor: Joints, truth: Joints, scores: F64, times: F64, valid: Flags, kinect: Flags) -> SensorBatch:
    """Return the batch of noisy and true joints (B, T, 17, 3) m."""
    features, view = describe(sensor, scores, times, kinect)
    return SensorBatch(
        features, times, as_targets(view, truth), valid, view, sensor.astype(np.float32), truth.astype(np.float32)
    )


def pairs_of_part(pairs: list[Pair], part: str) -> list[Pair]:
    """Return the pairs of the people of one part of the data: "train", "validation" or "test"."""
    chosen = {"test": TEST_SUBJECTS, "validation": VALIDATION_SUBJECTS}
    if part in chosen:
        return [pair for pair in pairs if pair.subject in chosen[part]]
    return [pair for pair in pairs if pair.subject not in (*TEST_SUBJECTS, *VALIDATION_SUBJECTS)]


def pair_batches(pairs: list[Pair]) -> Iterator[SensorBatch]:
    """Yield each pair whole, as a batch of one sequence."""
    for pair in pairs:
        frames = len(pair.sensor)
        times, scores = np.arange(frames)[None] / FPS, np.ones((1, frames, 17))
        yield batch_of(pair.sensor[None], pair.truth[None], scores, times, scores[..., 0] > 0, np.ones(1, np.bool_))


def definitions(pairs: list[Pair]) -> tuple[F64, F64]:
    """Return mean and standard deviation (17, 3) m over people of the joints' constant offsets along people's axes."""
    people: dict[str, list[F64]] = {}
    for pair in pairs:
        off = (pair.sensor - pair.sensor[:, :1] - pair.truth + pair.truth[:, :1]).mean(axis=0).astype(np.float64)
        people.setdefault(pair.subject, []).append(off @ heading(pair.truth[None])[0].T)
    means = np.stack([np.mean(own, axis=0) for own in people.values()])
    return means.mean(axis=0), np.sqrt(means.var(axis=0) + np.mean([np.var(own, axis=0) for own in people.values()], 0))
