"""Rotation and zoom between two images of a camera, from points seen in both: robust least squares in pixels.

A rotating camera moves every point by a homography that does not depend on depth (R. Hartley and A. Zisserman, Multiple
View Geometry, 8.4): x = s f R X / (R X)_z of the ray X. The four unknowns are found by Gauss-Newton with the weights of
a Cauchy distribution, whose width shrinks from that of all residuals to that of well-tracked points.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.camera_motion.turns import to_matrix

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

INLIER = 1.0  # px of the reduced image; a point further off does not move with the camera
_WIDTH = 0.7  # px, of the weights in the end
_ROUNDS = 7
_WIDE_ROUNDS = 3
_CONVERGED = 0.02  # px
_ALIKE = 2.0  # px, of two shifts
_SURE_ZOOM, _LEAST_ZOOM = 3.0, 0.002  # standard deviations and share; less of a zoom is none


@dataclass(frozen=True, slots=True)
class View:
    """How a camera is turned and zoomed compared with a key frame.

    turn: (3, 3), from the key frame's camera axes to this camera's. zoom: its focal length over the key frame's.
    """

    turn: F64
    zoom: float

    def project(self, rays: F64, focal: float) -> F64:
        """(N, 2) px from the image's centre where the rays (N, 3) of the key frame are seen; far off when behind."""
        seen = rays @ self.turn.T
        return np.asarray(self.zoom * focal * seen[:, :2] / np.maximum(seen[:, 2:], 1e-3))

    def of(self, other: "View") -> "View":
        """This view, which is compared with what `other` is, compared with what that is compared with."""
        return View(self.turn @ other.turn, self.zoom * other.zoom)

    @property
    def inverse(self) -> "View":
        return View(self.turn.T, 1 / self.zoom)


SAME = View(np.eye(3), 1.0)


@dataclass(frozen=True, slots=True)
class Fit:
    """view: that was found. off: (N,) px by which each point is off. sigma: rad, of the rotation about each axis of the
    picture's plane, as far as the inliers' residuals tell.
    """

    view: View
    off: F64
    sigma: float

    @property
    def inliers(self) -> Mask:
        return np.asarray(self.off < INLIER)


def fit_view(rays: F64, seen: F64, axes: F64, focal: float, start: View = SAME) -> Fit:
    """The view in which rays (N, 3) of the key frame are seen at (N, 2) px from the centre, N >= 4. axes: (N, 2, 2), as
    in `Features`.

    Zoom is left at the start's where it is not significant: a camera that only turns must not drift in it.
    """
    view, off, covariance = _solve(rays, seen, axes, focal, start, np.arange(4))
    zoom, sigma = float(np.log(view.zoom)), float(np.sqrt(covariance[3, 3]))
    if abs(zoom) < max(_SURE_ZOOM * sigma, _LEAST_ZOOM):
        if zoom:
            view, off, covariance = _solve(rays, seen, axes, focal, View(view.turn, 1.0), np.arange(3), near=True)
    elif abs(zoom - np.log(start.zoom)) < sigma / 2:
        view, off, covariance = _solve(rays, seen, axes, focal, View(view.turn, start.zoom), np.arange(3), near=True)
    return Fit(view, off, float(np.sqrt(covariance[[0, 1], [0, 1]].mean())))


def most_common(rays: F64, seen: F64, focal: float, expected: View) -> View:
    """The expected view, turned by the shift that most points share."""
    shifts = seen - expected.project(rays, focal)
    alike = np.asarray((np.abs(shifts[:, None] - shifts[None]) < _ALIKE).all(axis=2))
    best = alike[int(alike.sum(axis=1).argmax())]
    across, down = shifts[best].mean(axis=0) / (focal * expected.zoom)
    return View(to_matrix(np.array([-down, across, 0.0])) @ expected.turn, expected.zoom)


def off_by(view: View, rays: F64, seen: F64, axes: F64, focal: float) -> F64:
    """(N,) px by which points are off a view, as far as it can be measured."""
    off = (axes @ (seen - view.project(rays, focal))[:, :, None])[:, :, 0]
    return np.asarray(np.sqrt((off * off).sum(axis=1)))


def _solve(
    rays: F64, seen: F64, axes: F64, focal: float, view: View, free: NDArray[np.int64], near: bool = False
) -> tuple[View, F64, F64]:
    """free: which of rotation x, y, z and zoom are solved. near: whether the view is nearly right. The view, px off,
    and the covariance (4, 4).
    """
    turn, zoom = view.turn, view.zoom
    normal = np.eye(4)
    for number in range(_ROUNDS):
        apart, jacobian = _linear(rays, seen, focal, turn, zoom)
        apart, part = (axes @ apart[:, :, None])[:, :, 0], axes @ jacobian[:, :, free]
        square = (apart * apart).sum(axis=1)
        width = _WIDTH
        if number < _WIDE_ROUNDS and not near:
            width = max(width, 1.5 * float(np.sqrt(np.median(square))))
        weighted = part / (1 + square / width**2)[:, None, None]
        flat = part.reshape(-1, len(free))
        normal = weighted.reshape(-1, len(free)).T @ flat + 1e-6 * np.eye(len(free))
        step = np.zeros(4)
        step[free] = np.linalg.solve(normal, weighted.reshape(-1, len(free)).T @ apart.reshape(-1))
        turn, zoom = to_matrix(step[:3]) @ turn, zoom * float(np.exp(np.clip(step[3], -0.3, 0.3)))
        if width == _WIDTH and max(float(np.abs(step[:3]).max()), abs(float(step[3]))) * focal < _CONVERGED:
            break
    found = View(turn, zoom)
    off = off_by(found, rays, seen, axes, focal)
    inliers = off < INLIER
    variance = (float((off[inliers] ** 2).mean()) / 2 + 0.02**2) if inliers.any() else INLIER**2
    covariance = np.zeros((4, 4))
    covariance[np.ix_(free, free)] = variance * np.linalg.inv(normal)
    return found, off, covariance


def _linear(rays: F64, seen: F64, focal: float, turn: F64, zoom: float) -> tuple[F64, F64]:
    """(N, 2) px by which points are off, and (N, 2, 4) px by which they move for a small turn (rad) and zoom (log)."""
    there = rays @ turn.T
    scale = zoom * focal
    x, y = (there[:, :2] / np.maximum(there[:, 2:], 1e-3)).T
    jacobian = np.empty((len(rays), 2, 4))
    jacobian[:, 0, 0], jacobian[:, 0, 1], jacobian[:, 0, 2], jacobian[:, 0, 3] = -x * y, 1 + x * x, -y, x
    jacobian[:, 1, 0], jacobian[:, 1, 1], jacobian[:, 1, 2], jacobian[:, 1, 3] = -(1 + y * y), x * y, x, y
    jacobian *= scale
    return seen - scale * np.stack([x, y], axis=1), jacobian
