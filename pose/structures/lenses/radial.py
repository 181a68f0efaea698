"""Radial distortion of narrow and wide-angle lenses: OpenCV's model with the coefficients k1 and k2."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from pose.structures.lenses.lens import F64, Lens

MAX_TANGENTIAL = 0.01  # maximum tangential distortion coefficient; ignored up to here
_MIN_FACTOR = 0.2  # keeps the inversion finite
_ITERATIONS = 5


@dataclass(frozen=True, slots=True)
class RadialLens(Lens):
    """Radial distortion with the coefficients k1 and k2; 0 for a pinhole camera."""

    name = "radial"
    coefficients: tuple[float, ...] = (0.0, 0.0)

    @classmethod
    def of_file(cls, values: tuple[float, ...]) -> Self:
        """Make the lens from k1, k2, p1, p2 and further coefficients, which are ignored."""
        k1, k2, *tangential = (*values, 0.0, 0.0, 0.0, 0.0)[:4]
        if max(map(abs, tangential)) > MAX_TANGENTIAL:
            raise ValueError("tangential distortion is not supported; undistort the video first")
        return cls((k1, k2))

    @property
    def in_file(self) -> tuple[float, ...]:
        """k1, k2, p1 and p2."""
        return (*self.coefficients, 0.0, 0.0)

    def factor(self, square: F64) -> F64:
        """See `Lens.factor`."""
        k1, k2 = self.coefficients
        return 1 + square * (k1 + square * k2)

    def slope(self, square: F64) -> F64:
        """See `Lens.slope`."""
        k1, k2 = self.coefficients
        return k1 + 2 * k2 * square

    def undistort(self, points: F64) -> F64:
        """Return the rays of image points, by fixed-point iteration."""
        ray = points
        for _ in range(_ITERATIONS):
            square = (ray * ray).sum(axis=-1, keepdims=True)
            ray = points / np.maximum(self.factor(square), _MIN_FACTOR)
        return ray
