"""Smoothing over time: a zero-phase Butterworth filter offline, and One-Euro filters on time stamps.

Both work on time stamps in seconds, so that a cut-off frequency means the same at every frame rate.
"""

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F32, F64

_COLUMNS_PER_TRANSFORM = 8  # columns per transform, to bound the memory
_PAD_S = 1.0  # s of point reflection at both ends, which keeps position and velocity there


def zero_phase(values: NDArray[np.floating], times: F64, cutoff_hz: float, order: int = 2) -> F64:
    """Low-pass filter values (T, ...) at times (T,) s with zero phase. Fewer than 4 values are returned unchanged.

    The gain is 1 / (1 + (f / cutoff_hz)^(2 order)), the squared gain of a Butterworth filter. A forward and a backward
    pass of a filter of this order have the same gain. Uneven time stamps are resampled. Only the removed part is
    interpolated back, so a constant velocity is unchanged.
    """
    count = len(times)
    smooth = np.array(values, np.float64, order="C")  # so that `flat` is a view
    if count < 4:
        return smooth
    flat = smooth.reshape(count, -1)
    for first in range(0, flat.shape[1], _COLUMNS_PER_TRANSFORM):
        columns = flat[:, first : first + _COLUMNS_PER_TRANSFORM]
        columns[...] = _low_passed(columns, times, cutoff_hz, order)
    return smooth


def _low_passed(flat: F64, times: F64, cutoff_hz: float, order: int) -> F64:
    """Apply `zero_phase` to values (T, D)."""
    count = len(times)
    step = float((times[-1] - times[0]) / (count - 1))
    even = times[0] + step * np.arange(count)
    uneven = bool((np.abs(even - times) > 0.01 * step).any())
    rows = _interpolated(even, times, flat) if uneven else flat
    pad = min(count - 1, max(3, round(_PAD_S / step)))
    first, last = rows[:1], rows[-1:]
    padded = np.concatenate([2 * first - rows[pad:0:-1], rows, 2 * last - rows[-2 : -pad - 2 : -1]])
    # Subtract the line between the ends, because the transform assumes periodic signals.
    line = padded[:1] + np.linspace(0, 1, len(padded))[:, None] * (padded[-1:] - padded[:1])
    spectrum = np.fft.rfft(padded - line, axis=0)
    frequency = np.fft.rfftfreq(len(padded), step)
    gain = 1 / (1 + (frequency / cutoff_hz) ** (2 * order))
    smooth = np.fft.irfft(spectrum * gain[:, None], len(padded), axis=0) + line
    smooth = smooth[pad : pad + count]
    if uneven:
        smooth = flat + _interpolated(times, even, smooth - rows)
    return np.asarray(smooth)


def _interpolated(at: F64, times: F64, rows: F64) -> F64:
    """Interpolate rows (T, D) at `times` linearly to other times (N,)."""
    after = np.clip(np.searchsorted(times, at), 1, len(times) - 1)
    share = ((at - times[after - 1]) / (times[after] - times[after - 1]))[:, None]
    mixed: F64 = rows[after - 1] * (1 - share) + rows[after] * share
    return mixed


class OneEuro:
    """A causal low-pass filter whose cut-off increases with speed: little jitter at rest, little delay in motion.

    Each value of an array has its own speed. Source: G. Casiez et al., "1 Euro filter: a simple speed-based low-pass
    filter for noisy input in interactive systems", CHI 2012.
    """

    def __init__(
        self,
        min_cutoff_hz: NDArray[np.floating] | float,
        slope: NDArray[np.floating] | float,
        speed_cutoff_hz: float = 1.0,
    ) -> None:
        """Set the cut-off frequencies, Hz; arrays have one entry for each value."""
        self._least, self._slope, self._speed_hertz = min_cutoff_hz, slope, speed_cutoff_hz
        self._time: float | None = None
        self._value, self._speed = np.zeros(0), np.zeros(0)

    def __call__(self, value: NDArray[np.floating], time: float) -> F64:
        """Filter the next `value` at `time` s; times must increase."""
        if self._time is None:
            self._value, self._speed = np.asarray(value, np.float64), np.zeros(value.shape)
        else:
            step = time - self._time
            keep = _share(self._speed_hertz, step)
            self._speed = self._speed + keep * ((value - self._value) / step - self._speed)
            share = _share(self._least + self._slope * np.abs(self._speed), step)
            self._value = self._value + share * (value - self._value)
        self._time = time
        return self._value.copy()


def _share(cutoff_hz: NDArray[np.floating] | float, step: float) -> NDArray[np.floating] | float:
    """Return the weight of a new value in a first-order low-pass after `step` s."""
    turned = 2 * np.pi * cutoff_hz * step
    return turned / (1 + turned)


Cutoff = TypeVar("Cutoff", float, F32)

MIN_CUTOFF = 1.0  # Hz, for a hand at rest
BETA = 15.0  # additional Hz per hand length/s
DERIVATIVE_CUTOFF = 2.0  # Hz
MAX_STEP_SIZES = 0.6  # mean movement between frames, in hand lengths, above which the filter restarts


class HandFilter:
    """One-Euro filter of the points of one hand or face, which smooths strongly at rest and weakly in motion.

    Source: Casiez et al., 1 Euro Filter, CHI 2012, doi:10.1145/2207676.2208639. The cutoff frequency increases with the
    speed of each point in sizes of the hand per second, so it does not depend on resolution and distance.
    """

    def __init__(self) -> None:
        self._time = -math.inf
        self._raw = self._smooth = self._speed = np.zeros(0, np.float32)

    def __call__(self, values: F32, size: float, time: float) -> F32:
        """Return the next smoothed values (K, D); `size` of the hand is in their unit, `time` (s) must increase."""
        step = max(time - self._time, 1e-3)
        jumped = self._smooth.shape != values.shape or _mean_displacement(values - self._raw) > MAX_STEP_SIZES * size
        if math.isinf(self._time) or jumped:
            self._smooth, self._speed = values, np.zeros_like(values)
        else:
            self._speed = self._speed + _weight(DERIVATIVE_CUTOFF, step) * (
                (values - self._raw) / (size * step) - self._speed
            )
            speed = np.linalg.norm(self._speed, axis=-1, keepdims=True)
            self._smooth = self._smooth + _weight(MIN_CUTOFF + BETA * speed, step) * (values - self._smooth)
        self._raw, self._time = values, time
        return self._smooth.astype(np.float32)


def _mean_displacement(displacements: F32) -> float:
    return float(np.linalg.norm(displacements, axis=-1).mean())


def _weight(cutoff: Cutoff, step: float) -> Cutoff:
    """Return the weight of a new sample after `step` seconds in a first-order low-pass filter with `cutoff` Hz."""
    return cutoff / (cutoff + 1 / (2 * math.pi * step))
