"""Smoothing of the directions of heads and feet over time: a window for recordings, a low-pass filter for streams."""

import numpy as np

from pose.structures.types import F64


def smoothed(values: F64, times: F64, sigma_s: float) -> F64:
    """Smooth values (T, ...) at `times` (T,) s with a Gaussian window of standard deviation `sigma_s` in seconds."""
    reach = np.searchsorted(times, [times - 4 * sigma_s, times + 4 * sigma_s])
    result = np.empty_like(values)
    for frame, (first, last) in enumerate(reach.T):
        weights = np.exp(-(((times[first:last] - times[frame]) / sigma_s) ** 2) / 2)
        result[frame] = np.tensordot(weights / weights.sum(), values[first:last], axes=1)
    return result


class StreamingSmoother:
    """A causal first-order low-pass filter for arrays of values over time."""

    def __init__(self, constant_s: float) -> None:
        """Create a filter with a time constant in s."""
        self._constant_s = constant_s
        self._last: tuple[float, F64] | None = None

    def step(self, values: F64, times: F64) -> F64:
        """Return the smoothed values (T, ...) of the next T frames, at `times` (T,) s."""
        result = values.copy()
        for frame, time in enumerate(times.tolist()):
            if self._last is not None:
                kept = float(np.exp(-max(time - self._last[0], 0.0) / self._constant_s))
                result[frame] += kept * (self._last[1] - result[frame])
            self._last = time, result[frame]
        return result


def foot_frames_of(vectors: F64) -> F64:
    """Orthonormalise foot directions (T, foot, (heel to toe, sole normal), 3); zeros stay zero."""
    along = _unit(vectors[:, :, 0])
    above = vectors[:, :, 1]
    return np.stack([along, _unit(above - (above * along).sum(axis=-1, keepdims=True) * along)], axis=2)


def _unit(vectors: F64) -> F64:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9))
