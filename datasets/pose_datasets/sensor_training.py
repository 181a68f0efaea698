"""Batches for `pose-train sensor`: motion capture with errors of depth cameras, and recordings of a Kinect."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.body.sensors.kinect import FPS
from pose.lifting.sensor.features import SensorBatch, as_targets, describe, heading
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, Array, Flags
from pose_datasets import bodies
from pose_datasets.bodies import BodyConfig
from pose_datasets.kinect import Pair, load_pairs
from pose_datasets.mocap import TEST_SUBJECTS, VALIDATION_SUBJECTS, load_clips, split
from pose_datasets.sampling import ClipPool, random_times

_FLIP = list(H36M17.flip_order)
_ARMS = [H36M17.index(f"{side}_{name}") for side in ("left", "right") for name in ("shoulder", "elbow", "wrist")]
_LEGS = [H36M17.index(f"{side}_{name}") for side in ("left", "right") for name in ("hip", "knee", "ankle")]
# How much each joint errs relative to the mean joint: ends of limbs more, the trunk less.
_RELATIVE = np.ones(17)
for _name, _value in (("ankle", 1.4), ("wrist", 1.5), ("elbow", 1.2), ("hip", 0.7), ("knee", 1.1), ("shoulder", 0.8)):
    _RELATIVE[[H36M17.index(f"{side}_{_name}") for side in ("left", "right")]] = _value
_RELATIVE[[H36M17.index(_name) for _name in ("pelvis", "spine", "thorax")]] = 0.5


@dataclass(frozen=True, kw_only=True)
class SensorErrorConfig:
    """Sizes of the simulated errors.

    Attributes:
        definition: Standard deviation of a joint's constant offset, m.
        slow: Standard deviation of its slow offset, m, with a correlation time of 1 s.
        jitter: Median standard deviation of the noise of a frame, m; between sequences it varies by a factor of 2.
        outliers: Outliers per joint and second, of 0.1 to 0.5 m for up to 5 frames.
        swaps: Swaps of the sides of arms or legs per second, of up to 0.5 s.
        gaps: Gaps per joint and second, of up to 0.5 s.
        inferred: Fraction of sequences whose scores tell bad joints (0.5) from good ones.
    """

    definition: float = 0.02
    slow: float = 0.015
    jitter: float = 0.005
    outliers: float = 0.05
    swaps: float = 0.05
    gaps: float = 0.03
    inferred: float = 0.5


def spoil(
    rng: np.random.Generator, truth: NDArray[np.floating], times: F64, config: SensorErrorConfig, definition: F64
) -> tuple[F64, F64]:
    """Return joints (B, T, 17, 3) m with errors and offsets `definition` (B, 1, 17, 3) m, and scores (B, T, 17)."""
    batch, frames = times.shape
    step = np.diff(times, axis=1, prepend=times[:, :1] - 1 / 30)
    joints: F64 = truth + definition
    kept = np.exp(-step)
    drift = rng.normal(size=(batch, 17, 3))
    slow = np.empty(joints.shape)
    fresh = rng.normal(size=joints.shape)
    for t in range(frames):
        share = kept[:, t, None, None]
        drift = share * drift + np.sqrt(1 - share**2) * fresh[:, t]
        slow[:, t] = drift
    size = np.exp(rng.normal(0, 0.7, (batch, 1, 1, 1)))
    noise = rng.normal(size=joints.shape)
    if frames > 1:  # noise of neighbouring frames is alike, since the camera's own filter has smoothed it
        noise[:, 1:] += rng.uniform(0, 1, (batch, 1, 1, 1)) * noise[:, :-1]
    noise[..., 2] *= 1.5  # the camera looks along z
    joints = joints + _RELATIVE[:, None] * (config.slow * slow + config.jitter * size * noise)
    scores: F64 = np.ones(joints.shape[:3])
    seconds = float(times[:, -1].mean() - times[:, 0].mean()) + 1e-6
    marked = np.asarray(rng.random(batch) < config.inferred)
    for row, joint, first, last in _spans(rng, batch, config.outliers * seconds * 17, frames, 5):
        joints[row, first:last, joint] += rng.normal(size=3) * rng.uniform(0.06, 0.3)
        if marked[row]:
            scores[row, first:last, joint] = 0.5
    longest = max(2, int(0.5 / np.median(step)))
    for row, joint, first, last in _spans(rng, batch, config.swaps * seconds, frames, longest):
        limbs = _ARMS if joint % 2 else _LEGS
        joints[row, first:last, limbs] = joints[row, first:last, [_FLIP[limb] for limb in limbs]]
    for row, joint, first, last in _spans(rng, batch, config.gaps * seconds * 17, frames, longest):
        if first > 0 or last < frames:
            scores[row, first:last, joint] = 0
    return joints, scores


def _spans(
    rng: np.random.Generator, batch: int, mean: float, frames: int, longest: int
) -> list[tuple[int, int, int, int]]:
    """Draw spans of frames: sequence, joint, first frame and end, `mean` a sequence on average."""
    rows = np.repeat(np.arange(batch), rng.poisson(mean, batch))
    first = rng.integers(0, frames, len(rows))
    last = np.minimum(first + rng.integers(1, longest + 1, len(rows)), frames)
    return list(zip(rows.tolist(), rng.integers(0, 17, len(rows)).tolist(), first.tolist(), last.tolist(), strict=True))


def mirrored(joints: NDArray[np.floating]) -> F64:
    """Mirror joints (..., 17, 3) in x, and swap left and right ones."""
    result: F64 = joints[..., _FLIP, :] * np.array([-1.0, 1, 1])
    return result


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
