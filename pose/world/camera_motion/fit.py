"""Rotation and zoom between two images of a camera, from corresponding points: robust least squares in pixels.

A rotating camera moves every point by a homography that does not depend on depth (R. Hartley and A. Zisserman, Multiple
View Geometry, 8.4). A ray X appears at x = s f R X / (R X)_z, with zoom s and focal length f. Gauss-Newton finds the
four unknowns, three of the rotation and the zoom. The weights are those of a Cauchy distribution. Its width decreases
from the spread of all residuals to that of well-tracked points.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera_rotations import to_matrix
from pose.structures.types import F64, Flags

MAX_INLIER_PX = 1.0  # px of the reduced image; maximum residual of a point that moves with the camera
_WIDTH_PX = 0.7  # px, final width of the Cauchy distribution
_ITERATIONS = 7
_WIDE_ITERATIONS = 3
_CONVERGED_PX = 0.02  # px
_MAX_SHIFT_DIFFERENCE_PX = 2.0  # px, maximum difference of two shifts that count as equal
_MIN_ZOOM_SIGMAS, _MIN_ZOOM = 3.0, 0.002  # minimum zoom that is significant: standard deviations, and relative


@dataclass(frozen=True, slots=True)
class View:
    """Rotation and zoom of a camera relative to a key frame."""

    rotation: F64  # (3, 3), from the key frame's camera axes to this camera's
    zoom: float  # focal length relative to the key frame's

    def project(self, rays: F64, focal: float) -> F64:
        """Project rays (N, 3) of the key frame to (N, 2) px from the image centre, for its focal length in px."""
        seen = rays @ self.rotation.T
        return np.asarray(self.zoom * focal * seen[:, :2] / np.maximum(seen[:, 2:], 1e-3))

    def compose(self, other: "View") -> "View":
        """Return this view relative to the other key frame: first `other` is applied, then this view."""
        return View(self.rotation @ other.rotation, self.zoom * other.zoom)

    @property
    def inverse(self) -> "View":
        """View of the key frame relative to the frame of this view."""
        return View(self.rotation.T, 1 / self.zoom)


IDENTITY_VIEW = View(np.eye(3), 1.0)


@dataclass(frozen=True, slots=True)
class Fit:
    """A view fitted to N points; `sigma` is that of the rotation about each image axis."""

    view: View
    residuals: F64  # (N,) px, residual of each point
    sigma: float  # standard deviation of the rotation about each image axis in rad, from the residuals of the inliers

    @property
    def inliers(self) -> Flags:
        """Mask (N,) of the points that agree with the view."""
        return np.asarray(self.residuals < MAX_INLIER_PX)


def fit_view(rays: F64, seen: F64, axes: F64, focal: float, start: View = IDENTITY_VIEW) -> Fit:
    """Fit the view in which rays (N, 3) of the key frame appear at `seen` (N, 2) px from the image centre."""
    # A zoom that does not differ significantly from 1 is set to 1, so that it does not drift while the camera only
    # rotates. A zoom that does not differ significantly from the initial one is kept.
    view, residuals, covariance = _solve(rays, seen, axes, focal, start, np.arange(4))
    zoom, sigma = float(np.log(view.zoom)), float(np.sqrt(covariance[3, 3]))
    if abs(zoom) < max(_MIN_ZOOM_SIGMAS * sigma, _MIN_ZOOM):
        if zoom:
            view, residuals, covariance = _solve(
                rays, seen, axes, focal, View(view.rotation, 1.0), np.arange(3), accurate_start=True
            )
    elif abs(zoom - np.log(start.zoom)) < sigma / 2:
        view, residuals, covariance = _solve(
            rays, seen, axes, focal, View(view.rotation, start.zoom), np.arange(3), accurate_start=True
        )
    return Fit(view, residuals, float(np.sqrt(covariance[[0, 1], [0, 1]].mean())))


def rotated_by_common_shift(rays: F64, seen: F64, focal: float, expected: View) -> View:
    """Return the expected view after a further rotation by the most frequent shift of the points (px)."""
    shifts = seen - expected.project(rays, focal)
    alike = np.asarray((np.abs(shifts[:, None] - shifts[None]) < _MAX_SHIFT_DIFFERENCE_PX).all(axis=2))
    best = alike[int(alike.sum(axis=1).argmax())]
    across, down = shifts[best].mean(axis=0) / (focal * expected.zoom)
    return View(to_matrix(np.array([-down, across, 0.0])) @ expected.rotation, expected.zoom)


def view_residuals(view: View, rays: F64, seen: F64, axes: F64, focal: float) -> F64:
    """Return the residuals (N,) px of points for a view, along the directions in which each point can be measured."""
    (x, y), parts = (seen - view.project(rays, focal)).T, axes.transpose(1, 2, 0)
    across, down = parts[0, 0] * x + parts[0, 1] * y, parts[1, 0] * x + parts[1, 1] * y
    return np.asarray(np.sqrt(across * across + down * down))


def _solve(
    rays: F64, seen: F64, axes: F64, focal: float, view: View, free: NDArray[np.int64], accurate_start: bool = False
) -> tuple[View, F64, F64]:
    """Fit the `free` unknowns (rotation x, y, z, zoom) of a view; return it, residuals px, covariance (4, 4)."""
    rotation, zoom, regular = view.rotation, view.zoom, 1e-6 * np.eye(len(free))
    parts = axes.transpose(1, 2, 0)
    across, down = np.ascontiguousarray(seen.T)
    normal = np.eye(4)
    for number in range(_ITERATIONS):
        errors, slopes = _linear(rays, (across, down), parts, focal, rotation, zoom)
        slopes = slopes if len(free) == len(slopes) else slopes[free]
        square = errors[0] * errors[0] + errors[1] * errors[1]
        width = _WIDTH_PX
        if number < _WIDE_ITERATIONS and not accurate_start:
            width = max(width, 1.5 * float(np.sqrt(fast_median(square))))
        weight = 1 / (1 + square / width**2)
        weighted = (slopes * weight).reshape(len(free), -1)
        normal = weighted @ slopes.reshape(len(free), -1).T + regular
        step = np.zeros(4)
        step[free] = np.linalg.solve(normal, weighted @ errors.reshape(-1))
        rotation, zoom = to_matrix(step[:3]) @ rotation, zoom * float(np.exp(np.clip(step[3], -0.3, 0.3)))
        if width == _WIDTH_PX and max(float(np.abs(step[:3]).max()), abs(float(step[3]))) * focal < _CONVERGED_PX:
            break
    found = View(rotation, zoom)
    residuals = view_residuals(found, rays, seen, axes, focal)
    inliers = residuals < MAX_INLIER_PX
    variance = (float((residuals[inliers] ** 2).mean()) / 2 + 0.02**2) if inliers.any() else MAX_INLIER_PX**2
    covariance = np.zeros((4, 4))
    covariance[np.ix_(free, free)] = variance * np.linalg.inv(normal)
    return found, residuals, covariance


def _linear(rays: F64, seen: tuple[F64, F64], axes: F64, focal: float, rotation: F64, zoom: float) -> tuple[F64, F64]:
    """Return residuals (2, N) px along `axes` and their Jacobian (4, 2, N) by rotation (rad) and log zoom."""
    there = rotation @ rays.T
    scale = zoom * focal
    x, y = there[:2] / np.maximum(there[2], 1e-3)
    slopes, product = np.empty((4, 2, len(rays))), x * y
    slopes[0, 0], slopes[1, 0], slopes[2, 0], slopes[3, 0] = -product, 1 + x * x, -y, x
    slopes[0, 1], slopes[1, 1], slopes[2, 1], slopes[3, 1] = -1 - y * y, product, x, y
    slopes *= scale
    errors = axes[:, 0] * (seen[0] - scale * x) + axes[:, 1] * (seen[1] - scale * y)
    return errors, axes[:, 0] * slopes[:, None, 0] + axes[:, 1] * slopes[:, None, 1]


def fast_median(values: F64) -> float:
    """Return the median of (N,) numbers; faster than `numpy.median` for few numbers."""
    upper = len(values) // 2
    ordered = np.partition(values, (upper - 1, upper) if len(values) % 2 == 0 else upper)
    return float(ordered[upper] if len(values) % 2 else (ordered[upper - 1] + ordered[upper]) / 2)
