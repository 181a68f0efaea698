"""Training data and batches of forecasters: motion with ground truth at a high rate, and lifted motion.

Lifting costs more than training, so it is done once: `prepare_motions` writes a file, and `load_motions` reads its
parts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError
from pose.lifting.forecast.config import FUTURE_STEPS, HORIZONS, STEP
from pose.lifting.forecast.features import describe, displacements
from pose.lifting.forecast.types import MAX_HORIZON_S, PAST_SECONDS, ForecastBatch, Past
from pose.structures.sequences import LiftBatch
from pose.structures.types import F32, F64, I64, Flags
from pose.utils.archives import open_arrays, write_arrays
from pose.utils.written_files import writing
from pose_datasets.filming import FilmConfig, film
from pose_datasets.mocap import Clip, split
from pose_datasets.sampling import interpolate
from pose_datasets.synthesis import Synthesis, SynthesisConfig, evaluation_batches

PARTS = ("train", "validation", "test", "calibration")
CALIBRATION_SEQUENCES = 256  # of the validation subjects with the augmentation of training: other speeds and bodies
FRAMES = 192  # frames of a training sequence: 3.2 s at 60 frames/s
EVALUATION_FPS = 60.0
EVALUATION_FRAMES = 600
_BASE_RATES = (60.0, 60.0, 50.0, 48.0)  # rates of the ground truth, one per batch
_STRIDES = {60.0: (1, 2, 2, 2, 3, 4), 50.0: (1, 2, 2), 48.0: (2, 2, 3)}  # every n-th frame is an image of the camera
_BATCH = 32

Lifted3D = tuple[F32, F32, F32]  # joints (B, T, 17, 3) m, root (B, T, 3) m, sigma (B, T, 17) mm
Lift = Callable[[LiftBatch], Lifted3D]


@dataclass(frozen=True, slots=True)
class Motions:
    """Ground truth and lifter outputs of N sequences with T frames."""

    times: F64  # (N, T) s
    valid: Flags  # (N, T) mask, False after the end of a sequence
    joints: F32  # (N, T, 17, 3) m, ground truth in the axes of the camera, relative to the root (the pelvis)
    root: F32  # (N, T, 3) m, ground truth of the pelvis in the camera frame
    seen: Flags  # (N, T) mask of the frames with an image and a detection
    lifted_joints: F32  # (N, T, 17, 3) m, output of the lifter in the axes of the camera, relative to the pelvis
    lifted_root: F32  # (N, T, 3) m, output of the lifter for the pelvis, in the camera frame
    lifted_sigma: F32  # (N, T, 17) mm, uncertainty predicted by the lifter
    stride: NDArray[np.int64]  # (N,) number of frames per image

    def __len__(self) -> int:
        return len(self.times)


def training_motions(clips: list[Clip], count: int, lift: Lift, seed: int) -> Iterator[Motions]:
    """Yield at least `count` augmented random sequences in batches, with images at 15 to 60 frames/s."""
    film_config = FilmConfig(derived=0.7, exact=0.1, intrinsics_known=0.65)
    synthesis = Synthesis(clips, config=SynthesisConfig(natural=0.6, film=film_config), seed=seed)
    for number in range(-(-count // _BATCH)):
        rng = np.random.default_rng((seed, number))
        rate = _BASE_RATES[rng.integers(len(_BASE_RATES))]
        times = np.tile(np.arange(FRAMES) / rate, (_BATCH, 1))
        world, valid = synthesis.people(rng, times)
        stride = int(rng.choice(_STRIDES[rate]))
        yield _lifted(film(rng, world, times, valid, film_config), stride, lift)


def evaluation_motions(clips: list[Clip], lift: Lift, stride: int = 2) -> Iterator[Motions]:
    """Yield the clips as recorded, each frame once, at 60 frames/s, with a simulated detector every `stride` frames."""
    for batch in evaluation_batches(clips, condition="detector", fps=EVALUATION_FPS, frames=EVALUATION_FRAMES):
        short = EVALUATION_FRAMES - batch.times.shape[1]
        yield _lifted(_padded(batch, short) if short else batch, stride, lift)


def _padded(batch: LiftBatch, count: int) -> LiftBatch:
    """Return the batch with `count` invalid frames appended."""
    grown = {name: np.pad(getattr(batch, name), [(0, 0), (0, count)] + [(0, 0)] * extra, mode="edge")
             for name, extra in (("keypoints", 2), ("scores", 1), ("joints", 2), ("root", 1))}  # fmt: skip
    after = batch.times[:, -1:] + np.arange(1, count + 1) / EVALUATION_FPS
    times = np.concatenate([batch.times, after], axis=1)
    return replace(batch, **grown, times=times, valid=np.pad(batch.valid, ((0, 0), (0, count))))


def _lifted(batch: LiftBatch, stride: int, lift: Lift) -> Motions:
    images = slice(None, None, stride)
    per_frame = ("keypoints", "scores", "times", "valid", "joints", "root")
    taken = replace(batch, **{name: getattr(batch, name)[:, images] for name in per_frame})
    joints, root, sigma = (np.zeros_like(array) for array in (batch.joints, batch.root, batch.scores))
    joints[:, images], root[:, images], sigma[:, images] = lift(taken)
    seen = np.zeros_like(batch.valid)
    seen[:, images] = taken.valid & (taken.scores > 0).any(axis=-1)
    return Motions(
        batch.times, batch.valid, batch.joints, batch.root, seen, joints, root, sigma, np.full(len(seen), stride)
    )


def prepare_motions(clips: list[Clip], out: Path, lift: Lift, count: int, seed: int = 0) -> str:
    """Write all parts for forecasters to one file, and return a summary; PoseError if one has no clips."""
    arrays: dict[str, NDArray[np.generic]] = {}
    for part in PARTS:
        people = split(clips, "validation" if part == "calibration" else part)
        if not people:
            raise PoseError(f"no clip of a {part} subject; give every file that `pose-prepare mocap` wrote")
        count_of_part = {"train": count, "calibration": min(count, CALIBRATION_SEQUENCES)}.get(part)
        batches = list(
            training_motions(people, count_of_part, lift, seed) if count_of_part else evaluation_motions(people, lift)
        )
        for name in Motions.__slots__:
            arrays[f"{part}_{name}"] = np.concatenate([getattr(batch, name) for batch in batches])
    with writing([out]):
        write_arrays(out, arrays)
    counts = ", ".join(f"{len(arrays[f'{part}_times'])} {part}" for part in PARTS)
    return f"{out}: {counts} sequences"


def load_motions(path: Path, part: str) -> Motions:
    """Open one part of a file of `prepare_motions`, memory-mapped; PoseError if it is none."""
    try:
        with open_arrays(path) as arrays:
            return Motions(*(arrays.mapped(f"{part}_{name}") for name in Motions.__slots__))  # type: ignore[arg-type]
    except (KeyError, ValueError, TypeError) as error:
        raise PoseError(f"{path}: not a file of motions to forecast; make one with `pose-prepare forecast`") from error


SOURCES = ("truth", "pipeline")  # kinds of past: the recorded motion, or the lifted one
_MIN_PAST_S = 0.25  # before a training sample
_EVALUATION_INTERVAL_S = 0.25


@dataclass(frozen=True, kw_only=True)
class MotionConfig:
    """Settings of the batches of forecasters."""

    motions: str = ""  # path of the file from `pose-prepare forecast`
    batch: int = 128  # number of samples of a batch
    # Fraction of samples whose past poses are those of the lifter, with errors. The others have the true past poses.
    lifted: float = 0.6
    # Number of random times per sample, up to 1 s ahead, at which the network is trained to predict the pose; not used
    # by autoregressive networks.
    asked: int = 8
    gaps: float = 0.15  # fraction of samples whose past has a gap of up to 0.5 s without poses
    short: float = 0.1  # fraction of samples whose past has poses in its last 0.6 s or less only

    def __post_init__(self) -> None:
        for name in ("batch", "asked"):
            if getattr(self, name) < 1:
                raise ValueError(f"data.{name}: must be at least 1, got {getattr(self, name)}")
        for name in ("lifted", "gaps", "short"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"data.{name}: must be from 0 to 1, got {getattr(self, name)}")


class MotionSource:
    """Training batches of forecasters (a `pose.training.batches.BatchSource`), and fixed sets for evaluation."""

    def __init__(self, config: MotionConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self._train = MotionSamples(load_motions(Path(config.motions), "train"), _MIN_PAST_S)

    def batch(self, step: int) -> ForecastBatch:
        """Return the training batch of a step. Equal steps give equal batches."""
        config, rng = self._config, np.random.default_rng((self._seed, step))
        rows = self._train.draw(rng, config.batch)
        lifted = rng.random(config.batch) < config.lifted
        past, true = self._train.past(rows, lifted)
        _make_gaps(rng, past, config)
        strata = (np.arange(config.asked) + rng.random((config.batch, config.asked))) / config.asked
        return self._train.batch(rows, past, true, np.maximum(MAX_HORIZON_S * strata**1.5, 1e-3))

    def evaluation(self, part: str) -> dict[str, Iterator[ForecastBatch]]:
        """Return fixed batches of a part with targets at `HORIZONS`, by source of the past: "truth", "pipeline"."""
        samples = MotionSamples(load_motions(Path(self._config.motions), part), PAST_SECONDS)
        return {source: samples.evaluation_batches(source == "pipeline") for source in SOURCES}

    def calibration(self) -> list[Iterator[ForecastBatch]]:
        """Return four sets of batches for the calibration: true and lifted past, as recorded and augmented."""
        path = Path(self._config.motions)
        recorded = MotionSamples(load_motions(path, "validation"), PAST_SECONDS)
        varied = MotionSamples(load_motions(path, "calibration"), PAST_SECONDS)
        return [samples.evaluation_batches(lifted) for samples in (recorded, varied) for lifted in (False, True)]


class MotionSamples:
    """Points in time of motion sequences at which forecasts start. Each is followed by a whole second of motion.

    A sample is the index of a sequence and the index of a frame in this sequence.

    Args:
        min_past_s: Minimum time between the start of the sequence and a sample, s.
    """

    def __init__(self, motions: Motions, min_past_s: float) -> None:
        self.motions = motions
        step = motions.times[:, 1] - motions.times[:, 0]
        self._step = step
        length = motions.valid.sum(axis=1)
        self._first = np.ceil(min_past_s / step - 1e-6).astype(np.int64)
        self._last = length - 1 - np.ceil(MAX_HORIZON_S / step - 1e-6).astype(np.int64)
        self._usable = np.flatnonzero(self._last >= self._first)
        self._joints, self._root = motions.joints.reshape(-1, 51), motions.root.reshape(-1, 3)
        self._reach = int(np.ceil(PAST_SECONDS / step.min() - 1e-6))

    def draw(self, rng: np.random.Generator, count: int) -> tuple[I64, I64]:
        """Draw `count` = B random samples, and return the indices (B,) of their sequences and of their frames (B,)."""
        row = rng.choice(self._usable, count)
        return row, rng.integers(self._first[row], self._last[row] + 1)

    def at_interval(self, seconds: float) -> tuple[I64, I64]:
        """Return samples of all sequences, `seconds` apart: the indices (B,) of their sequences and of frames (B,)."""
        found = [
            (row, frame)
            for row in self._usable.tolist()
            for frame in range(self._first[row], self._last[row] + 1, max(1, round(seconds / self._step[row])))
        ]
        rows, frames = np.array(found, np.int64).reshape(-1, 2).T
        return rows, frames

    def past(self, samples: tuple[I64, I64], lifted: Flags) -> tuple[Past, Past]:
        """Return the poses given (lifted or true) and true of the last second before B samples, in equal frames."""
        m, (row, frame) = self.motions, samples
        index = frame[:, None] + np.arange(-self._reach, 1)
        inside, index, row = index >= 0, np.maximum(index, 0), row[:, None]
        times = m.times[row, index]
        picture = inside & (index % m.stride[row] == 0) & (times >= times[:, -1:] - PAST_SECONDS - 1e-6)
        seen = picture & m.seen[row, index]
        from_lifter = (lifted & seen.any(axis=1))[:, None]
        valid = np.where(from_lifter, seen, picture)
        joints, root = m.joints[row, index], m.root[row, index]
        true = Past(joints, root, np.zeros(joints.shape[:3], np.float32), times, valid)
        mixed = Past(
            np.where(from_lifter[..., None, None], m.lifted_joints[row, index], joints),
            np.where(from_lifter[..., None], m.lifted_root[row, index], root),
            np.where(from_lifter[..., None], m.lifted_sigma[row, index], 0),
            times,
            valid.copy(),
        )
        return mixed, true

    def future(self, row: I64, times: F64) -> tuple[F32, F32]:
        """Return true joints (B, Q, 17, 3) m about the pelvis, and this (B, Q, 3) m, of sequences at times (B, Q) s."""
        length = np.full(len(row), self.motions.times.shape[1])
        position = (times - self.motions.times[row, :1]) / self._step[row, None]
        start = row * length
        joints = interpolate(self._joints, start, length, position)
        return joints.reshape(*times.shape, 17, 3), interpolate(self._root, start, length, position)

    def batch(self, samples: tuple[I64, I64], past: Past, true: Past, ahead: F64) -> ForecastBatch:
        """Make a batch of network inputs and true future poses from B samples.

        A forecaster cannot predict a constant error of the lifted pelvis. The target path is therefore shifted by the
        mean error of the pelvis in the past.

        Args:
            samples: Indices (B,) of sequences, and indices (B,) of frames in them.
            past: Past poses given to the forecaster, from `past`.
            ahead: (B, Q) s, times of the Q targets of each sample after the last frame of `past`.
        """
        tokens, view = describe(past)
        steps = np.tile(STEP * np.arange(1, FUTURE_STEPS + 1), (len(ahead), 1))
        joints, root = self.future(samples[0], view.time[:, None] + np.concatenate([ahead, steps], axis=1))
        displacement = displacements(view, joints, root + self.offset(past, true)[:, None])
        asked = ahead.shape[1]
        return ForecastBatch(tokens, ahead, displacement[:, :asked], displacement[:, asked:])

    def offset(self, past: Past, true: Past) -> F32:
        """Return the mean position error (B, 3) m of the pelvis over the valid past frames: given minus true."""
        weight = past.valid[..., None] / past.valid.sum(axis=1)[:, None, None]
        off = np.where(past.valid[..., None], past.root - true.root, 0) * weight
        result: F32 = off.sum(axis=1).astype(np.float32)
        return result

    def evaluation_samples(self) -> tuple[I64, I64]:
        """Return sequence and frame indices (B,) of samples for evaluation, four per second of motion."""
        return self.at_interval(_EVALUATION_INTERVAL_S)

    def evaluation_batches(self, lifted: bool, count: int = 256) -> Iterator[ForecastBatch]:
        """Yield batches of samples, four per second, with true or lifted past and targets at `HORIZONS`."""
        rows, frames = self.evaluation_samples()
        for first in range(0, len(rows), count):
            some = rows[first : first + count], frames[first : first + count]
            past, true = self.past(some, np.full(len(some[0]), lifted))
            yield self.batch(some, past, true, np.tile(HORIZONS, (len(some[0]), 1)))


def _make_gaps(rng: np.random.Generator, past: Past, config: MotionConfig) -> None:
    """Mark some frames of the past as missing, in place. The last frame is kept."""
    people = len(past)
    newest = past.times[np.arange(people), past.last()][:, None]
    age = newest - past.times
    length = rng.uniform(0.05, 0.5, (people, 1))
    end = rng.uniform(0, PAST_SECONDS - length)
    hole = (age > end) & (age < end + length) & (rng.random((people, 1)) < config.gaps)
    cut = (age > rng.uniform(0, 0.6, (people, 1))) & (rng.random((people, 1)) < config.short)
    past.valid[:] &= ~((hole | cut) & (age > 1e-9))
