"""Random functions of time, in batches, for the motion of cameras and limbs and for detector errors."""

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F32

_WAVES = 3


def smooth_noise(rng: np.random.Generator, times: NDArray[np.float64], channels: int, hertz: float) -> F32:
    """Draw smooth functions (B, T, C) of mean 0 and variance 1: sums of three sinusoids of up to `hertz`."""
    batch = len(times)
    seconds = (times - times[:, :1]).astype(np.float32)[..., None]
    total = np.zeros((*times.shape, channels), np.float32)
    for _ in range(_WAVES):
        frequency = rng.uniform(0.05 * hertz, hertz, (batch, 1, channels)).astype(np.float32)
        phase = rng.uniform(0, 2 * np.pi, (batch, 1, channels)).astype(np.float32)
        total += np.sin(np.float32(2 * np.pi) * frequency * seconds + phase)
    return total * np.float32(np.sqrt(2 / _WAVES))


def correlated_noise(
    rng: np.random.Generator, times: NDArray[np.float64], shape: tuple[int, ...], seconds: float
) -> F32:
    """Draw noise (B, T, *shape) of mean 0, variance 1 and correlation time `seconds` at any frame rate."""
    # It is a first-order autoregression. Intervals in a sequence are treated as equal.
    batch, frames = times.shape
    white = rng.standard_normal((batch, frames, *shape), dtype=np.float32)
    interval = (times[:, -1] - times[:, 0]) / max(frames - 1, 1)
    keep = np.exp(-interval / seconds).astype(np.float32).reshape(batch, *(1,) * (white.ndim - 1))
    noise = white * np.sqrt(1 - keep**2)
    noise[:, 0] = white[:, 0]  # stationary from the first frame
    step = 1  # summed by doubling: after k steps, every frame contains the last 2^k innovations
    factor = keep
    while step < frames and float(factor.max()) > 1e-2:
        noise[:, step:] += factor * noise[:, :-step].copy()
        factor = factor * factor
        step *= 2
    result: F32 = noise
    return result
