"""Vectorised One-Euro filter on time stamps."""

import math
from typing import TypeVar

import numpy as np

from pose.structures.types import F32

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
