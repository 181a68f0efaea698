"""Batches for `pose-train forecaster` from prepared motions: samples with their past and future."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pose.forecast.batch import ForecastBatch
from pose.forecast.features import describe, ways
from pose.forecast.format import FUTURE_STEPS, HORIZONS, STEP
from pose.forecast.types import LONGEST_SECONDS, PAST_SECONDS, Past
from pose.types import F32, F64, I64, Flags
from pose_datasets.forecasting import Motions, load_motions
from pose_datasets.sampling import interpolate

SOURCES = ("truth", "pipeline")  # kinds of past: the recorded motion, or the lifted one
_LEAST_PAST = 0.25  # s of a sequence before a training sample
_MEASURED_EVERY = 0.25  # s


@dataclass(frozen=True, kw_only=True)
class MotionConfig:
    """Settings of the batches.

    Attributes:
        motions: The file from `pose-prepare forecast`.
        batch: Samples of a step.
        lifted: Fraction with a lifted past, with a detector's errors; the others have the true past.
        asked: Number of future times per sample; unused by autoregressive networks.
        gaps: Fraction of pasts with a gap of up to half a second.
        short: Fraction of pasts with only the last frames.
    """

    motions: str = ""
    batch: int = 128
    lifted: float = 0.6
    asked: int = 8
    gaps: float = 0.15
    short: float = 0.1

    def __post_init__(self) -> None:
        for name in ("batch", "asked"):
            if getattr(self, name) < 1:
                raise ValueError(f"data.{name}: must be at least 1, got {getattr(self, name)}")
        for name in ("lifted", "gaps", "short"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"data.{name}: must be from 0 to 1, got {getattr(self, name)}")


class MotionSource:
    """Training batches (a `pose.training.batches.BatchSource`), and fixed sets for evaluation and calibration."""

    def __init__(self, config: MotionConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self._train = Moments(load_motions(Path(config.motions), "train"), _LEAST_PAST)

    def batch(self, step: int) -> ForecastBatch:
        """The training batch of a step; equal steps give equal batches."""
        config, rng = self._config, np.random.default_rng((self._seed, step))
        rows = self._train.draw(rng, config.batch)
        lifted = rng.random(config.batch) < config.lifted
        past, true = self._train.past(rows, lifted)
        _make_holes(rng, past, config)
        strata = (np.arange(config.asked) + rng.random((config.batch, config.asked))) / config.asked
        return self._train.batch(rows, past, true, np.maximum(LONGEST_SECONDS * strata**1.5, 1e-3))

    def evaluation(self, part: str) -> dict[str, Iterator[ForecastBatch]]:
        """Fixed sets by name of `SOURCES`, at `HORIZONS`."""
        moments = Moments(load_motions(Path(self._config.motions), part), PAST_SECONDS)
        return {source: moments.all(source == "pipeline") for source in SOURCES}

    def calibration(self) -> list[Iterator[ForecastBatch]]:
        """Sets for the calibration of sigma: validation subjects as recorded (little motion), and augmented, from
        both sources.
        """
        path = Path(self._config.motions)
        recorded = Moments(load_motions(path, "validation"), PAST_SECONDS)
        varied = Moments(load_motions(path, "calibration"), PAST_SECONDS)
        return [moments.all(lifted) for moments in (recorded, varied) for lifted in (False, True)]


class Moments:
    """Samples: points in time with a past and a whole second of future.

    A sample is the row of a sequence and the index of its frame.

    Args:
        before: Minimum time from the start of the sequence, s.
    """

    def __init__(self, motions: Motions, before: float) -> None:
        self.motions = motions
        step = motions.times[:, 1] - motions.times[:, 0]
        self._step = step
        length = motions.valid.sum(axis=1)
        self._first = np.ceil(before / step - 1e-6).astype(np.int64)
        self._last = length - 1 - np.ceil(LONGEST_SECONDS / step - 1e-6).astype(np.int64)
        self._usable = np.flatnonzero(self._last >= self._first)
        self._joints, self._root = motions.joints.reshape(-1, 51), motions.root.reshape(-1, 3)
        self._reach = int(np.ceil(PAST_SECONDS / step.min() - 1e-6))

    def draw(self, rng: np.random.Generator, count: int) -> tuple[I64, I64]:
        """Random samples: sequences and frames, (B,) each."""
        row = rng.choice(self._usable, count)
        return row, rng.integers(self._first[row], self._last[row] + 1)

    def every(self, seconds: float) -> tuple[I64, I64]:
        """Samples of all sequences at this interval."""
        found = [
            (row, frame)
            for row in self._usable.tolist()
            for frame in range(self._first[row], self._last[row] + 1, max(1, round(seconds / self._step[row])))
        ]
        rows, frames = np.array(found, np.int64).reshape(-1, 2).T
        return rows, frames

    def past(self, moments: tuple[I64, I64], lifted: Flags) -> tuple[Past, Past]:
        """The last second before samples, whose last image is the newest up to the sample.

        Samples without any detection get the true past.

        Args:
            moments: The samples.
            lifted: (B,) whether to use the lifted past; otherwise the true one.

        Returns:
            The past as a forecaster gets it, and the true past.
        """
        m, (row, frame) = self.motions, moments
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
        """Ground truth at `times` (B, Q) s of sequences `row`: joints (B, Q, 17, 3) and root (B, Q, 3) m."""
        length = np.full(len(row), self.motions.times.shape[1])
        position = (times - self.motions.times[row, :1]) / self._step[row, None]
        start = row * length
        joints = interpolate(self._joints, start, length, position)
        return joints.reshape(*times.shape, 17, 3), interpolate(self._root, start, length, position)

    def batch(self, moments: tuple[I64, I64], past: Past, true: Past, ahead: F64) -> ForecastBatch:
        """The batch of samples at `ahead` (B, Q) s after the last frame of `past`.

        A constant error of the lifted pelvis cannot be predicted; the target path therefore starts from the lifted
        position, with its mean error.
        """
        tokens, view = describe(past)
        steps = np.tile(STEP * np.arange(1, FUTURE_STEPS + 1), (len(ahead), 1))
        joints, root = self.future(moments[0], view.time[:, None] + np.concatenate([ahead, steps], axis=1))
        way = ways(view, joints, root + self.offset(past, true)[:, None])
        asked = ahead.shape[1]
        return ForecastBatch(tokens, ahead, way[:, :asked], way[:, asked:])

    def offset(self, past: Past, true: Past) -> F32:
        """Mean error (B, 3) m of the pelvis in the past."""
        weight = past.valid[..., None] / past.valid.sum(axis=1)[:, None, None]
        off = np.where(past.valid[..., None], past.root - true.root, 0) * weight
        result: F32 = off.sum(axis=1).astype(np.float32)
        return result

    def every_measured(self) -> tuple[I64, I64]:
        """The samples for evaluation, four per second."""
        return self.every(_MEASURED_EVERY)

    def all(self, lifted: bool, count: int = 256) -> Iterator[ForecastBatch]:
        """Batches of samples at four per second, at `HORIZONS`."""
        rows, frames = self.every_measured()
        for first in range(0, len(rows), count):
            some = rows[first : first + count], frames[first : first + count]
            past, true = self.past(some, np.full(len(some[0]), lifted))
            yield self.batch(some, past, true, np.tile(HORIZONS, (len(some[0]), 1)))


def _make_holes(rng: np.random.Generator, past: Past, config: MotionConfig) -> None:
    """Mark frames of pasts as missing, in place; the last frame is kept."""
    people = len(past)
    newest = past.times[np.arange(people), past.last()][:, None]
    age = newest - past.times
    length = rng.uniform(0.05, 0.5, (people, 1))
    end = rng.uniform(0, PAST_SECONDS - length)
    hole = (age > end) & (age < end + length) & (rng.random((people, 1)) < config.gaps)
    cut = (age > rng.uniform(0, 0.6, (people, 1))) & (rng.random((people, 1)) < config.short)
    past.valid[:] &= ~((hole | cut) & (age > 1e-9))
