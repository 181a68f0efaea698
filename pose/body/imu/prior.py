"""Directions of bones without a sensor from those with one: a linear Gaussian model of bones over 2 s.

The model is that of `pose_datasets.motion_prior`: the directions of all 16 bones at eleven times, in axes of the
pelvis' heading at the middle one (x to the left, y up, z forward), are the mean, 128 factors and independent noise.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from pose.structures.rotations import cross, dot, unit
from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.utils.archives import open_arrays

LAGS_S = np.arange(-5, 6) * 0.2  # s
HEADING_LEFT = H36M17.index("left_hip"), H36M17.index("right_hip")  # the axis from the second to the first
_FILE = Path(__file__).parents[2] / "models" / "motion.npz"


def heading_axes(left: F64, up: F64) -> F64:
    """Return matrices (..., 3, 3) whose rows are the axes left, up and forward of a pelvis with the axis `left`."""
    left = unit(left - dot(left, up)[..., None] * up)
    up = np.broadcast_to(up, left.shape)
    return np.stack([left, up, cross(left, up)], axis=-2)


@dataclass(frozen=True, slots=True)
class MotionPrior:
    """Mean and factors of directions at L = 11 lags of B = 16 bones."""

    mean: F64  # (L, B, 3)
    factors: F64  # (L, B, 3, R)
    rest: float  # standard deviation of what the factors leave

    @classmethod
    @cache
    def shipped(cls) -> Self:
        """Return the shipped model."""
        with open_arrays(_FILE) as arrays:
            mean, factors, rest = (arrays[name].astype(np.float64) for name in ("mean", "factors", "rest"))
        shape = len(LAGS_S), len(H36M17.edges), 3
        return cls(mean.reshape(shape), factors.reshape(*shape, -1), float(rest))

    def expected(self, directions: F64, precision: F64) -> tuple[F64, F64]:
        """Return the expected directions (K, B, 3) of all bones at lag 0, and their standard deviations (K, B) rad.

        Args:
            directions: (K, L, B, 3) at the lags, in axes of the heading at lag 0.
            precision: (K, L, B) inverse variances of these, 1/rad^2; 0 where unknown.
        """
        weight = (1 / (1 / np.maximum(precision, 1e-9) + self.rest**2)) * (precision > 0)
        flat = self.factors.reshape(-1, self.factors.shape[-1])
        now, eye, middle = self.factors[len(LAGS_S) // 2], np.eye(flat.shape[1]), self.mean[len(LAGS_S) // 2]
        means, spreads = np.empty((len(directions), *middle.shape)), np.empty((len(directions), len(middle)))
        for row, (seen, own) in enumerate(zip(directions, weight, strict=True)):
            weighed = np.repeat(own.ravel(), 3)[:, None] * flat
            covariance = np.linalg.inv(eye + flat.T @ weighed)
            means[row] = middle + now @ (covariance @ (weighed.T @ (seen - self.mean).ravel()))
            spreads[row] = np.einsum("bcr,rs,bcs->b", now, covariance, now) + 3 * self.rest**2
        return unit(means), np.sqrt(spreads / 2)
