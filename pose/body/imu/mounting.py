"""How inertial sensors are mounted on bones, and the rotation from their earth frame to the camera, from the video.

The model is that of `pose_datasets.motion_prior`: the directions of all 16 bones at eleven times, in axes of the
pelvis' heading at the middle one (x to the left, y up, z forward), are the mean, 128 factors and independent noise.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

import numpy as np

from pose.structures.rotations import about, cross, dot, from_matrix, inverse, multiply, rotate, to_matrix, unit
from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.utils.archives import open_arrays

EARTH_UP = np.array([0.0, 0.0, 1.0])
# Standard deviations of a lifted direction across the plane through camera and bone, which the 2D measures, and in it.
PLANE_SIGMA, DEPTH_SIGMA = np.radians(6.0), np.radians(20.0)
OUTLIER = 3.0  # Cauchy scale in standard deviations
CORRELATED_S = 1.0  # for which errors of lifted directions last
_CAMERA_UP = np.array([0.0, -1.0, 0.0])
_UP_FRAMES = 20.0  # frames whose directions weigh as much as the camera's upright position
_TURNS, _ROUNDS, _STEPS = 8, 6, 6
_STANDING_SIGMA, _UP_SIGMA, _LEVEL_SIGMA = np.radians(4.0), np.radians(3.0), np.radians(20.0)
_MAX_FRAMES = 600  # in the calibration
_MIN_BEND = np.radians(12.0)  # RMS of the bend of a hinge
_MIN_RATIO = 6.0  # of variances in and across the plane of a hinge


@dataclass(frozen=True, slots=True)
class ObservedBones:
    """S bones in N frames that show the person who wears the sensors."""

    times: F64  # (N,) s
    turned: F64  # (N, S, 4) orientations of the bones' sensors
    directions: F64  # (N, S, 3) directions of the bones in the video, camera axes
    planes: F64  # (N, S, 3) unit normals of the planes through the camera and the bones


@dataclass(frozen=True, slots=True)
class _Prior:
    standing: F64  # (S, 3) directions by the standing pose, NaN where unknown
    up: F64  # (3,) direction against gravity in camera axes
    up_sigma: float  # rad
    shared: float  # number of frames that have one error


def calibrate_mounting(observed: ObservedBones, standing: F64, up: F64 | None) -> tuple[F64, F64]:
    """Return the rotation (4,) from earth to camera, and the bones (S, 3) in the axes of their sensors."""
    times, every = observed.times, max(1, len(observed.times) // _MAX_FRAMES)
    shared = max(1.0, CORRELATED_S * len(times) / max(times[-1] - times[0], 1e-3))
    level_up, up_sigma = (_CAMERA_UP, _LEVEL_SIGMA) if up is None else (up, _UP_SIGMA)
    prior = _Prior(standing, level_up, up_sigma, max(1.0, shared / every))
    observed = ObservedBones(*(getattr(observed, name)[::every] for name in ObservedBones.__slots__))
    turned, seen = observed.turned, observed.directions
    best: tuple[float, F64, F64] = np.inf, np.zeros(4), np.zeros(3)
    level = from_matrix(np.array([[1.0, 0, 0], [0, 0, -1.0], [0, 1.0, 0]]))  # earth's z is the camera's -y
    for turn in np.arange(_TURNS) * (2 * np.pi / _TURNS):
        to_camera = multiply(level, about(EARTH_UP, turn))
        for _ in range(_ROUNDS):
            in_sensor = rotate(inverse(turned), rotate(inverse(to_camera), seen)).mean(axis=0)
            mounted = unit(in_sensor + np.nan_to_num(standing))
            moment = np.einsum("nsi,nsj->ij", seen, rotate(turned, mounted))
            moment += _UP_FRAMES * np.outer(prior.up, EARTH_UP)
            left, _, right = np.linalg.svd(moment)
            to_camera = from_matrix(left @ np.diag([1, 1, np.linalg.det(left @ right)]) @ right)
        to_camera, mounted, cost = _refined(to_camera, mounted, observed, prior)
        if cost < best[0]:
            best = cost, to_camera, mounted
    return best[1], best[2]


def _refined(to_camera: F64, mounted: F64, observed: ObservedBones, prior: _Prior) -> tuple[F64, F64, float]:
    """Refine a calibration by Gauss-Newton steps with Cauchy weights; also return its cost."""
    count, size = len(mounted), 3 + 3 * len(mounted)
    planes, standing, up_sigma = observed.planes, prior.standing, prior.up_sigma
    known = np.isfinite(standing)
    for _ in range(_STEPS):
        world = multiply(to_camera, observed.turned)
        pointed = rotate(world, mounted)
        off = pointed - observed.directions
        across = dot(off, planes)
        square = (across / PLANE_SIGMA) ** 2 + (dot(off, off) - across**2) / DEPTH_SIGMA**2
        cost = float(np.log1p(square / OUTLIER**2).sum() * OUTLIER**2 / prior.shared)
        weight = 1 / (1 + square / OUTLIER**2) / prior.shared
        information = weight[..., None, None] * (
            planes[..., :, None] * planes[..., None, :] * (PLANE_SIGMA**-2 - DEPTH_SIGMA**-2)
            + np.eye(3) * DEPTH_SIGMA**-2
        )
        turn = -_skew(pointed)  # of the rotation, in camera axes
        tilt = to_matrix(world)  # of the bones in the sensors' axes
        matrix, right = np.zeros((size, size)), np.zeros(size)
        matrix[:3, :3] = np.einsum("nsji,nsjk,nskl->il", turn, information, turn)
        right[:3] = -np.einsum("nsji,nsjk,nsk->i", turn, information, off)
        for one in range(count):
            own = slice(3 + 3 * one, 6 + 3 * one)
            pull = np.swapaxes(tilt[:, one], -1, -2) @ information[:, one]
            matrix[own, own] = (pull @ tilt[:, one]).sum(axis=0) + np.outer(mounted[one], mounted[one]) * 1e6
            right[own] = -(pull @ off[:, one, :, None])[..., 0].sum(axis=0)
            matrix[own, :3] = (pull @ turn[:, one]).sum(axis=0)
            matrix[:3, own] = matrix[own, :3].T
            if known[one].all():
                matrix[own, own] += np.eye(3) / _STANDING_SIGMA**2
                right[own] -= (mounted[one] - standing[one]) / _STANDING_SIGMA**2
                cost += float(((mounted[one] - standing[one]) ** 2).sum() / _STANDING_SIGMA**2)
        vertical = rotate(to_camera, EARTH_UP)
        lean = -_skew(vertical)
        matrix[:3, :3] += lean.T @ lean / up_sigma**2
        right[:3] -= lean.T @ (vertical - prior.up) / up_sigma**2
        cost += float(((vertical - prior.up) ** 2).sum() / up_sigma**2)
        change: F64 = np.asarray(np.linalg.solve(matrix + 1e-6 * np.eye(size), right), np.float64)
        angle = float(np.linalg.norm(change[:3]))
        to_camera = unit(multiply(about(change[:3] / max(angle, 1e-12), np.array(angle)), to_camera))
        mounted = unit(mounted + change[3:].reshape(-1, 3))
    return to_camera, mounted, cost


def _skew(vectors: F64) -> F64:
    """Return the matrices (..., 3, 3) of cross products with vectors (..., 3)."""
    return np.cross(vectors[..., None, :], np.eye(3)).swapaxes(-1, -2)


def hinge_axis(parent: F64, own: F64) -> F64 | None:
    """Return the axis (3,) of the hinge between two bones, all in the axes of the sensor on the second one."""
    across = np.stack([unit(cross(own, np.eye(3)[np.abs(own).argmin()])), np.zeros(3)])
    across[1] = cross(own, across[0])
    flat, weight = parent @ across.T, np.ones(len(parent))
    values, vectors = np.zeros(2), np.eye(2)
    for _ in range(_STEPS):
        values, vectors = np.linalg.eigh(np.einsum("n,ni,nj->ij", weight, flat, flat) / weight.sum())
        weight = 1 / (1 + (flat @ vectors[:, 0] / PLANE_SIGMA) ** 2)
    if values[1] < max(_MIN_BEND**2, _MIN_RATIO * values[0]):
        return None
    result: F64 = across.T @ vectors[:, 0]
    return result


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
        """Return directions (K, B, 3) of all bones at lag 0 and their sigma (K, B) rad, from those at all lags."""
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
