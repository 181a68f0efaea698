"""Lens models. A model maps the ray of a point to its place in the image, both at z = 1 (x / z, y / z)."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lens(ABC):
    """A lens whose distortion depends only on the angle to the optical axis."""

    name: ClassVar[str]  # name of the model in calibration files
    coefficients: tuple[float, ...]  # coefficients of the model

    @classmethod
    @abstractmethod
    def of_file(cls, values: tuple[float, ...]) -> Self:
        """Make the lens from distortion coefficients in OpenCV's order; ValueError if they do not fit."""

    @property
    @abstractmethod
    def in_file(self) -> tuple[float, ...]:
        """Coefficients for a calibration file, in OpenCV's order."""

    @abstractmethod
    def factor(self, square: F64) -> F64:
        """Return the ratio (...) of the distances of image point and ray from the axis, for squared lengths of rays."""

    @abstractmethod
    def slope(self, square: F64) -> F64:
        """Return the derivative (...) of `factor` with respect to the squared length."""

    def distort(self, rays: F64) -> F64:
        """Return the image points (..., 2) of rays (..., 2), both at z = 1."""
        return rays * self.factor((rays * rays).sum(axis=-1, keepdims=True))

    @abstractmethod
    def undistort(self, points: F64) -> F64:
        """Return the rays (..., 2) of image points (..., 2), both at z = 1."""

    def moved(self, by: float) -> Self:
        """Return the lens with another first coefficient, which calibration estimates."""
        return replace(self, coefficients=(self.coefficients[0] + by, *self.coefficients[1:]))
