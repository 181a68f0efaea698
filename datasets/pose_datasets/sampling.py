"""Random windows of clips at any frame rate and speed, in batches."""

import numpy as np

from pose.structures.types import F32, F64, I64, Flags
from pose_datasets.mocap import Clip, laboratory

_FRAME_RATES = np.array([30, 25, 24, 50, 60, 15, 120], np.float64)
_RATE_PROBABILITIES = np.array([0.38, 0.12, 0.08, 0.12, 0.1, 0.05, 0.03])  # others: log-uniform from 10 to 120
_CANDIDATES = 6  # clips drawn per window; the first that is long enough is used


class ClipPool:
    """Sampler of random windows of motion capture clips, in one array, so that a batch is one indexing operation."""

    def __init__(self, clips: list[Clip], equal_laboratories: bool = False) -> None:
        if not clips:
            raise ValueError("clips: must not be empty")
        self._points = np.concatenate([clip.points for clip in clips]).reshape(-1, 57)
        self._length = np.array([len(clip.times) for clip in clips])
        self._start = np.cumsum(self._length) - self._length
        self._rate = np.array([(len(clip.times) - 1) / (clip.times[-1] - clip.times[0]) for clip in clips])
        self._weight = clip_weights(clips, equal_laboratories)

    def windows(self, rng: np.random.Generator, times: F64, speed: F64) -> tuple[F32, Flags]:
        """Draw B random windows, resampled to T frames: points (B, T, 19, 3) m, and valid frames (B, T)."""
        # A clip that is too short repeats its last pose in invalid frames.
        batch = len(times)
        needed = times[:, -1] * speed
        candidates = rng.choice(len(self._weight), (batch, _CANDIDATES), p=self._weight)
        seconds = (self._length[candidates] - 1) / self._rate[candidates]
        enough = seconds >= needed[:, None]
        best = np.where(enough.any(axis=1), enough.argmax(axis=1), seconds.argmax(axis=1))
        clip = candidates[np.arange(batch), best]
        slack = np.maximum(seconds[np.arange(batch), best] - needed, 0)
        position = (rng.random(batch) * slack)[:, None] + times * speed[:, None]
        position *= self._rate[clip][:, None]
        valid = position <= self._length[clip][:, None] - 1 + 1e-6
        points = interpolate(self._points, self._start[clip], self._length[clip], position)
        return points.reshape(batch, -1, 19, 3), valid


def clip_weights(clips: list[Clip], equal_laboratories: bool = False) -> F64:
    """Compute sampling probabilities (N,) of N clips, with a sum of 1.

    The weight of a clip is the square root of its duration times the mean standard deviation of its joints, so that
    long walks do not dominate. The total weight of each subject is then replaced by its square root, and that of each
    laboratory by 1 if `equal_laboratories`.
    """
    weight = np.array([_variety(clip) * np.sqrt(clip.times[-1] - clip.times[0]) for clip in clips])
    subjects = np.array([clip.subject for clip in clips])
    for subject in set(subjects):
        rows = subjects == subject
        weight[rows] /= np.sqrt(weight[rows].sum())
    if equal_laboratories:
        laboratories = np.array([laboratory(clip.subject) for clip in clips])
        for name in set(laboratories):
            weight[laboratories == name] /= weight[laboratories == name].sum()
    result: F64 = weight / weight.sum()
    return result


def _variety(clip: Clip) -> float:
    """Return the mean standard deviation of root-relative joints over time, m, plus a constant for standing people."""
    joints = clip.points[::6, :17] - clip.points[::6, :1]
    return float(joints.std(axis=0).mean()) + 0.03


def random_times(rng: np.random.Generator, size: int, frames: int, variable: float, fastest: float = 120.0) -> F64:
    """Draw frame times (B, T) s that start at 0: mostly at common frame rates, sometimes at any from 10 frames/s.

    `variable` is the fraction of sequences with uneven times, `fastest` the highest rate in frames/s.
    """
    shares = np.append(_RATE_PROBABILITIES, 1 - _RATE_PROBABILITIES.sum())
    rate = np.append(_FRAME_RATES, 0)[rng.choice(len(shares), size, p=shares)]
    other_rates = np.exp(rng.uniform(np.log(10), np.log(fastest), size))
    rate = np.where((rate > 0) & (rate <= fastest), rate, other_rates)
    steps = np.ones((size, frames))
    uneven = rng.random(size) < variable
    steps[uneven] = rng.uniform(0.5, 1.5, (int(uneven.sum()), frames))
    steps[:, 0] = 0
    result: F64 = np.cumsum(steps, axis=1) / rate[:, None]
    return result


def interpolate(flat: F32, start: I64, length: I64, position: F64) -> F32:
    """Interpolate values (N, D) of clips at frame indices (B, T) by Catmull-Rom splines, clamped to each clip."""
    last = (length - 1)[:, None]
    position = np.clip(position, 0, last)
    index = np.minimum(position.astype(np.int64), np.maximum(last - 1, 0))
    u = (position - index).astype(np.float32)[..., None]
    before, a, b, after = (flat[start[:, None] + np.clip(index + k, 0, last)] for k in (-1, 0, 1, 2))
    slope_a, slope_b = (b - before) / 2, (after - a) / 2
    rise = b - a
    result: F32 = a + u * (slope_a + u * (3 * rise - 2 * slope_a - slope_b + u * (slope_a + slope_b - 2 * rise)))
    return result


def resample(clip: Clip, fps: float) -> tuple[F32, F64]:
    """Resample a clip at `fps` frames/s."""
    seconds = clip.times[-1] - clip.times[0]
    times = np.arange(int(seconds * fps + 1e-6) + 1) / fps
    flat = clip.points.reshape(len(clip.points), -1)
    position = times * (len(flat) - 1) / seconds
    points = interpolate(flat, np.zeros(1, np.int64), np.array([len(flat)]), position[None])[0]
    return points.reshape(-1, *clip.points.shape[1:]), times
