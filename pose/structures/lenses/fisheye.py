"""Fisheye lenses: the model of Kannala and Brandt as in OpenCV's module `fisheye`.

An image point is at the distance t (1 + k1 t^2 + k2 t^4 + k3 t^6 + k4 t^8) from the principal point, in focal lengths,
where t is the angle between its ray and the optical axis. Only rays in front of the camera are modelled. Source:
Kannala and Brandt, A generic camera model and calibration method for conventional, wide-angle, and fish-eye lenses,
IEEE TPAMI 28 (8), 2006.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from pose.structures.lenses.lens import F64, Lens

COEFFICIENTS = 4
_MAX_ANGLE = math.radians(89.0)  # of the ray of an image point
_ITERATIONS = 10
_SMALL = 1e-8  # squared length of a ray on the axis


@dataclass(frozen=True, slots=True)
class FisheyeLens(Lens):
    """Fisheye distortion with the coefficients k1 to k4."""

    name = "fisheye"
    coefficients: tuple[float, ...] = (0.0,) * COEFFICIENTS

    @classmethod
    def of_file(cls, values: tuple[float, ...]) -> Self:
        """Make the lens from k1 to k4; missing ones are 0."""
        if len(values) > COEFFICIENTS and any(values[COEFFICIENTS:]):
            raise ValueError(f"a fisheye lens has {COEFFICIENTS} distortion coefficients, got {len(values)}")
        return cls((*values, 0.0, 0.0, 0.0, 0.0)[:COEFFICIENTS])

    @property
    def in_file(self) -> tuple[float, ...]:
        """k1 to k4."""
        return self.coefficients

    def _distance(self, angle: F64) -> tuple[F64, F64]:
        """Return the distance of an image point from the principal point, and its derivative, by the angle (rad)."""
        square, distance, slope = angle * angle, np.ones_like(angle), np.ones_like(angle)
        power = np.ones_like(angle)
        for order, coefficient in enumerate(self.coefficients, 1):
            power = power * square
            distance, slope = distance + coefficient * power, slope + (2 * order + 1) * coefficient * power
        return angle * distance, slope

    def factor(self, square: F64) -> F64:
        """See `Lens.factor`."""
        length = np.sqrt(np.maximum(square, _SMALL))
        return self._distance(np.arctan(length))[0] / length

    def slope(self, square: F64) -> F64:
        """See `Lens.slope`."""
        square = np.maximum(square, _SMALL)
        length = np.sqrt(square)
        distance, by_angle = self._distance(np.arctan(length))
        return (by_angle / (1 + square) - distance / length) / (2 * square)

    def undistort(self, points: F64) -> F64:
        """Return the rays of image points, by Newton's method for the angle."""
        distance = np.linalg.norm(points, axis=-1, keepdims=True)
        angle = np.minimum(distance, _MAX_ANGLE)
        for _ in range(_ITERATIONS):
            found, slope = self._distance(angle)
            angle = np.clip(angle - (found - distance) / np.where(np.abs(slope) > 1e-3, slope, 1.0), 0.0, _MAX_ANGLE)
        rays: F64 = points * np.tan(angle) / np.maximum(distance, math.sqrt(_SMALL))
        return rays
