"""What `pose-train forecaster` feeds a forecaster with: moments of prepared motions, their past and their future."""

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

SOURCES = ("truth", "pipeline")  # what a past is: the recorded motion, or what the lifter said of it
_LEAST_PAST = 0.25  # s of a sequence before the moment of a training batch
_MEASURED_EVERY = 0.25  # s


@dataclass(frozen=True, kw_only=True)
class MotionConfig:
    """motions: the file that `pose-prepare forecast` wrote. batch: moments of a step. lifted: share of them whose past
    is what the lifter said, with a detector's errors; that of the others is the truth. asked: moments ahead that are
    learnt of each, which networks that roll out do not need. gaps: share of pasts with a hole of up to half a second.
    short: share of which only the last moments are known.
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
    """Training batches (a `pose.training.batches.BatchSource`), and fixed sets to measure and calibrate on."""

    def __init__(self, config: MotionConfig, seed: int) -> None:
        self._config, self._seed = config, seed
        self._train = Moments(load_motions(Path(config.motions), "train"), _LEAST_PAST)

    def batch(self, step: int) -> ForecastBatch:
        """The training batch of one step; the same number gives the same batch."""
        config, rng = self._config, np.random.default_rng((self._seed, step))
        rows = self._train.draw(rng, config.batch)
        lifted = rng.random(config.batch) < config.lifted
        past, true = self._train.past(rows, lifted)
        _make_holes(rng, past, config)
        strata = (np.arange(config.asked) + rng.random((config.batch, config.asked))) / config.asked
        return self._train.batch(rows, past, true, np.maximum(LONGEST_SECONDS * strata**1.5, 1e-3))

    def evaluation(self, part: str) -> dict[str, Iterator[ForecastBatch]]:
        """Fixed sets by name of `SOURCES`, asked at `HORIZONS`."""
        moments = Moments(load_motions(Path(self._config.motions), part), PAST_SECONDS)
        return {source: moments.all(source == "pipeline") for source in SOURCES}

    def calibration(self) -> list[Iterator[ForecastBatch]]:
        """What sigma is calibrated on: validation subjects as they were recorded, who move little, and as training
        would have them, each from both sources."""
        path = Path(self._config.motions)
        recorded = Moments(load_motions(path, "validation"), PAST_SECONDS)
        varied = Moments(load_motions(path, "calibration"), PAST_SECONDS)
        return [moments.all(lifted) for moments in (recorded, varied) for lifted in (False, True)]


class Moments:
    """The moments of motions at which there is a past and a whole second of future.

    before: s of a sequence that a moment needs before it. A moment is a sequence's row and the number of its picture.
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
        """Random moments: sequences and frames, each (B,)."""
        row = rng.choice(self._usable, count)
        return row, rng.integers(self._first[row], self._last[row] + 1)

    def every(self, seconds: float) -> tuple[I64, I64]:
        """Moments at this pace, of all sequences."""
        found = [
            (row, frame)
            for row in self._usable.tolist()
            for frame in range(self._first[row], self._last[row] + 1, max(1, round(seconds / self._step[row])))
        ]
        rows, frames = np.array(found, np.int64).reshape(-1, 2).T
        return rows, frames

    def past(self, moments: tuple[I64, I64], lifted: Flags) -> tuple[Past, Past]:
        """The second before moments whose last picture is the newest up to each: as a forecaster gets it, which is what
        the lifter said where `lifted` (B,) and the truth elsewhere; and the truth. Moments before which nobody was seen
        get the truth."""
        m, (row, frame) = self.motions, moments
        index = frame[:, None] + np.arange(-self._reach, 1)
        inside, index, row = index >= 0, np.maximum(index, 0), row[:, None]
        times = m.times[row, index]
        picture = inside & (index % m.stride[row] == 0) & (times >= times[:, -1:] - PAST_SECONDS - 1e-6)
        seen = picture & m.seen[row, index]
        said = (lifted & seen.any(axis=1))[:, None]
        valid = np.where(said, seen, picture)
        joints, root = m.joints[row, index], m.root[row, index]
        true = Past(joints, root, np.zeros(joints.shape[:3], np.float32), times, valid)
        mixed = Past(
            np.where(said[..., None, None], m.lifted_joints[row, index], joints),
            np.where(said[..., None], m.lifted_root[row, index], root),
            np.where(said[..., None], m.lifted_sigma[row, index], 0),
            times,
            valid.copy(),
        )
        return mixed, true

    def future(self, row: I64, times: F64) -> tuple[F32, F32]:
        """The truth at `times` (B, Q) s of sequences `row`: joints (B, Q, 17, 3) and root (B, Q, 3) m."""
        length = np.full(len(row), self.motions.times.shape[1])
        position = (times - self.motions.times[row, :1]) / self._step[row, None]
        start = row * length
        joints = interpolate(self._joints, start, length, position)
        return joints.reshape(*times.shape, 17, 3), interpolate(self._root, start, length, position)

    def batch(self, moments: tuple[I64, I64], past: Past, true: Past, ahead: F64) -> ForecastBatch:
        """What is learnt of moments `ahead` (B, Q) s after the last frame of `past`.

        Where the lifter puts the pelvis too near or too far all the time, nobody could know: the way of the pelvis is
        that from where it was put, as far off as it was in the mean.
        """
        tokens, view = describe(past)
        steps = np.tile(STEP * np.arange(1, FUTURE_STEPS + 1), (len(ahead), 1))
        joints, root = self.future(moments[0], view.time[:, None] + np.concatenate([ahead, steps], axis=1))
        way = ways(view, joints, root + self.offset(past, true)[:, None])
        asked = ahead.shape[1]
        return ForecastBatch(tokens, ahead, way[:, :asked], way[:, asked:])

    def offset(self, past: Past, true: Past) -> F32:
        """(B, 3) m by which the pelvis was put off in the mean of the past."""
        weight = past.valid[..., None] / past.valid.sum(axis=1)[:, None, None]
        off = np.where(past.valid[..., None], past.root - true.root, 0) * weight
        result: F32 = off.sum(axis=1).astype(np.float32)
        return result

    def every_measured(self) -> tuple[I64, I64]:
        """The moments that are measured: four a second."""
        return self.every(_MEASURED_EVERY)

    def all(self, lifted: bool, count: int = 256) -> Iterator[ForecastBatch]:
        """Batches of moments four times a second, asked at `HORIZONS`."""
        rows, frames = self.every_measured()
        for first in range(0, len(rows), count):
            some = rows[first : first + count], frames[first : first + count]
            past, true = self.past(some, np.full(len(some[0]), lifted))
            yield self.batch(some, past, true, np.tile(HORIZONS, (len(some[0]), 1)))


def _make_holes(rng: np.random.Generator, past: Past, config: MotionConfig) -> None:
    """Let frames of pasts be missing, in place; the last one stays."""
    people = len(past)
    newest = past.times[np.arange(people), past.last()][:, None]
    age = newest - past.times
    length = rng.uniform(0.05, 0.5, (people, 1))
    end = rng.uniform(0, PAST_SECONDS - length)
    hole = (age > end) & (age < end + length) & (rng.random((people, 1)) < config.gaps)
    cut = (age > rng.uniform(0, 0.6, (people, 1))) & (rng.random((people, 1)) < config.short)
    past.valid[:] &= ~((hole | cut) & (age > 1e-9))
