"""Time offsets between cameras from motion, by cross-correlation of joint speeds in the 3D poses of each camera.

Speeds relative to the root do not depend on the camera's position. The significance of a peak follows from Fisher's
transform of the correlation and the length of the overlap at that lag.
"""

from dataclasses import dataclass

import numpy as np

from pose.multiview.sampling import BATCH_TIMES, sample
from pose.multiview.types import LIMB_POINTS, POINTS, ViewTrack
from pose.structures.types import F64, Flags

RATE = 30.0  # samples/s of the speeds
MIN_OVERLAP_S = 0.8  # s, minimum common duration of two tracks
INDEPENDENT_PER_S = 6.0  # independent values per second of twelve joints' speeds
MIN_SIGNIFICANCE_NEAR = 0.5  # minimum significance of a candidate lag near an approximate lag
MIN_SIGNIFICANCE = 1.5  # minimum significance of a candidate lag; the poses select one of them


@dataclass(frozen=True, slots=True)
class Lag:
    """A candidate lag."""

    seconds: float  # time that converts the second camera's clock to the first's when added to it
    significance: float  # significance, in standard deviations from chance


@dataclass(frozen=True, slots=True)
class Speeds:
    """Square roots of a track's joint speeds at `RATE` samples/s, standardised to mean 0 and deviation 1."""

    values: F64  # (K, 12), K samples of twelve joints of arms and legs; 0 where the track is missing
    seen: Flags  # (K,) whether the track has frames near the time of the sample
    first: float  # time of the first value on the camera's clock, s


def speeds_of(track: ViewTrack) -> Speeds:
    """Return the standardised speeds of a track's arm and leg joints, relative to the root."""
    first = float(track.times[0])
    count = max(int((track.times[-1] - first) * RATE) + 1, 2)
    values, seen = np.zeros((count, len(LIMB_POINTS))), np.zeros(count, bool)
    for begin in range(0, count, BATCH_TIMES):  # in batches, to bound the memory
        end = min(begin + BATCH_TIMES, count)
        low, high = max(begin - 1, 0), min(end + 1, count)  # the neighbours, for the derivative
        found = sample(track, first + np.arange(low, high) / RATE, width=0.04)
        joints = found.joints[:, POINTS[LIMB_POINTS]]
        moved = np.linalg.norm(np.gradient(joints, axis=0) * RATE, axis=-1)[begin - low : end - low]
        values[begin:end] = np.sqrt(np.minimum(moved, 8.0))  # square root: a few fast moments do not dominate
        seen[begin:end] = found.present[begin - low : end - low]
    if seen.sum() >= 2:
        values = values - values[seen].mean(axis=0)
        values = values / np.maximum(values[seen].std(axis=0), 0.05)
    return Speeds(values * seen[:, None], seen, first)


def lags(one: Speeds, other: Speeds, max_lags: int = 4, near: tuple[float, float] | None = None) -> list[Lag]:
    """Return candidate lags between two cameras' tracks of one person, by descending significance."""
    # With `near`, only lags in this range are searched, and a lower significance is sufficient.
    correlation, overlap, lag = correlate(one, other)
    enough = overlap >= MIN_OVERLAP_S * RATE
    fisher = np.arctanh(np.clip(correlation, -0.999, 0.999))
    free = np.maximum(overlap / RATE * INDEPENDENT_PER_S - 3, 0.0)
    significance = np.where(enough, fisher * np.sqrt(free), -np.inf)
    least = MIN_SIGNIFICANCE
    if near is not None:
        significance = np.where(
            np.abs(lag / RATE + one.first - other.first - near[0]) <= near[1], significance, -np.inf
        )
        least = MIN_SIGNIFICANCE_NEAR
    candidates: list[Lag] = []
    for index in np.argsort(-significance):
        if len(candidates) == max_lags or significance[index] < least:
            break
        seconds = (lag[index] + _peak(significance, int(index))) / RATE + one.first - other.first
        if all(abs(seconds - candidate.seconds) > 0.2 for candidate in candidates):
            candidates.append(Lag(float(seconds), float(significance[index])))
    return candidates


def correlate(one: Speeds, other: Speeds) -> tuple[F64, F64, F64]:
    """Return correlation, overlap and lag in samples, (L,) each: k of `other` corresponds to k + lag of `one`."""
    n, m = len(one.values), len(other.values)
    size = 1 << (n + m - 1).bit_length()

    def product(a: F64, b: F64) -> F64:
        spectrum = np.zeros(size // 2 + 1, np.complex128)
        for x, y in zip(a.T, b.T, strict=True):  # one after another, so that long tracks need little memory
            spectrum += np.fft.rfft(x, size) * np.conj(np.fft.rfft(y, size))
        summed = np.fft.irfft(spectrum, size)
        return np.concatenate([summed[size - m + 1 :], summed[:n]])  # lags -(m - 1) ... n - 1

    seen_a, seen_b = one.seen[:, None].astype(float), other.seen[:, None].astype(float)
    overlap = product(seen_a, seen_b)
    correlation = product(one.values, other.values)
    energy_a = product((one.values**2).sum(axis=1, keepdims=True), seen_b)
    energy_b = product(seen_a, (other.values**2).sum(axis=1, keepdims=True))
    scale = np.sqrt(np.maximum(energy_a, 1e-9) * np.maximum(energy_b, 1e-9))
    valid = overlap > 0.5
    return np.where(valid, correlation / scale, 0.0), overlap, np.arange(-(m - 1), n, dtype=np.float64)


def _peak(values: F64, index: int) -> float:
    """Return the offset from `index` of the vertex of a parabola through the peak and its neighbours, in samples."""
    if not 0 < index < len(values) - 1:
        return 0.0
    before, top, after = values[index - 1 : index + 2]
    bend = before - 2 * top + after
    if not np.isfinite(bend) or bend >= 0:
        return 0.0
    return float(np.clip(0.5 * (before - after) / bend, -0.5, 0.5))
