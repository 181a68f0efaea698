"""Parallax test: distinguishes translation of the camera from rotation and zoom.

Points of a key frame are compared with their positions much later, so that even slow motion has a wide baseline.
Rotation and zoom move them by a homography that does not depend on depth. Translation also moves them along lines
through one epipole, by amounts that depend on depth (R. Hartley and A. Zisserman, Multiple View Geometry, 9 and 22).
Points that agree with a translation but with no rotation show parallax; other outliers are moving objects.
"""

from dataclasses import dataclass

import numpy as np

from pose.structures.camera_rotations import to_matrix
from pose.structures.types import F64
from pose.world.camera_motion.fit import View, fast_median

MIN_POINTS = 20  # minimum points of a test
MIN_TRANSLATION_RAD = 0.007  # rad, minimum parallax of a carried camera
MAX_FOCAL_RATIO = 3.0  # median ratio to the assumed focal length above which tests must agree on it
MAX_TESTED_FOCAL_RATIO = 12.0  # maximum ratio to the assumed focal length in a test: a field of view of 5 degrees
# Maximum ratio to the expected focal length, if that is assumed and if it is known.
_MAX_RATIO_ASSUMED, _MAX_RATIO_KNOWN = 1.5, 1.1
_FOCAL_PRIOR_PX2 = 1.0  # px^2, weight of the prior of the focal length
_WIDTH_PX = 1.5  # px, width of the Cauchy weights of both models
_MIN_SIGMA_PX = 0.05  # px, minimum standard deviation of a point
_MAX_LINE_PX = 1.2  # px; maximum distance from its line of a point that fits a translation
_PERCENTILE, _HIGH_PERCENTILE, _HIGH_FACTOR = 91, 95, 1 / 3  # percentiles of the residuals, and factor on the second
_ITERATIONS = 6
_SLOPE_STEP = 1e-4  # rad, or log, step of numerical derivatives
_DIRECTIONS = 40  # directions of translation that are tried
_REFINED, _STEPS = 6, 4  # iterations of the direction, and of rotation and zoom for a direction


@dataclass(frozen=True, slots=True)
class Parallax:
    """Result of a parallax test."""

    # `parallax` measures the residuals for the best rotation and zoom, rad, over the points that agree with a
    # translation: their 91st percentile, or a third of their 95th if this is larger. 0 if no point agrees.

    parallax: float  # measure of the residuals for the best rotation and zoom, rad
    focal_ratio: float  # ratio of the focal length for which a rotation fits best to the expected one
    focal_sigma: float  # standard deviation of the logarithm of `focal_ratio`, from the residuals


def parallax(rays: F64, seen: F64, axes: F64, view: View, focal: float, focal_known: bool = False) -> Parallax:
    """Test points of a key frame (rays (N, 3), seen (N, 2) px from the centre) for camera translation."""
    best, residuals, slopes, largest_ratio = _fit_rotation(rays, seen, axes, view, focal, MAX_TESTED_FOCAL_RATIO)
    focal_ratio, sigma = float(np.exp(best[4])), _focal_sigma(residuals, slopes)
    max_ratio = _MAX_RATIO_KNOWN if focal_known else _MAX_RATIO_ASSUMED
    if largest_ratio > max_ratio:  # otherwise the result would be the same
        _, residuals, slopes, _ = _fit_rotation(rays, seen, axes, view, focal, max_ratio)
    agree = _line_distances(residuals, slopes, seen / (focal * view.zoom), axes) < _MAX_LINE_PX
    if not agree.any():
        return Parallax(0.0, focal_ratio, sigma)
    typical, high = np.percentile(np.linalg.norm(residuals[agree], axis=1), [_PERCENTILE, _HIGH_PERCENTILE])
    return Parallax(float(max(typical, _HIGH_FACTOR * high)) / (focal * view.zoom), focal_ratio, sigma)


def _focal_sigma(residuals: F64, slopes: F64) -> float:
    """Return the standard deviation of the log focal length from residuals (N, 2) px and slopes (N, 2, 5)."""
    square = (residuals * residuals).sum(axis=1)
    weight = 1 / (1 + square / _WIDTH_PX**2)
    normal = (slopes * weight[:, None, None]).reshape(-1, 5).T @ slopes.reshape(-1, 5) + 1e-6 * np.eye(5)
    variance = float((weight * square).sum() / (2 * weight.sum())) + _MIN_SIGMA_PX**2
    return float(np.sqrt(variance * np.linalg.inv(normal)[4, 4]))


def _fit_rotation(
    rays: F64, seen: F64, axes: F64, view: View, focal: float, max_ratio: float
) -> tuple[F64, F64, F64, float]:
    """Fit rotation, zoom, focal length: parameters (5,), residuals (N, 2) px, slopes (N, 2, 5), largest factor."""
    parameters, bound, largest_log = np.zeros(5), float(np.log(max_ratio)), 0.0
    flat, parts, goal = rays.T, axes.transpose(1, 2, 0), seen.T
    ahead = np.concatenate([np.zeros((1, 5)), _SLOPE_STEP * np.eye(5)])

    def residuals_at(p: F64) -> F64:
        """Return the residuals (K, 2, N) px for parameters (K, 5)."""
        focal_ratio = np.exp(p[:, 4])
        rotations = to_matrix(p[:, :3]) @ view.rotation
        rotations[:, :, :2] /= focal_ratio[:, None, None]
        there = rotations @ flat
        scale = focal * view.zoom * focal_ratio * np.exp(p[:, 3])
        x, y = np.moveaxis(goal - scale[:, None, None] * there[:, :2] / np.maximum(there[:, 2:], 1e-3), 1, 0)
        return np.stack([parts[0, 0] * x + parts[0, 1] * y, parts[1, 0] * x + parts[1, 1] * y], axis=1)

    for number in range(_ITERATIONS):
        tried = residuals_at(parameters + ahead)
        residuals, slopes = tried[0], (tried[:1] - tried[1:]) / _SLOPE_STEP
        square = residuals[0] * residuals[0] + residuals[1] * residuals[1]
        width = max(_WIDTH_PX, 1.5 * float(np.sqrt(fast_median(square)))) if number < 3 else _WIDTH_PX
        weighted = (slopes / (1 + square / width**2)).reshape(5, -1)
        normal = weighted @ slopes.reshape(5, -1).T + np.diag([1e-6, 1e-6, 1e-6, 1e-6, _FOCAL_PRIOR_PX2])
        pull = weighted @ residuals.reshape(-1) - np.array([0, 0, 0, 0, _FOCAL_PRIOR_PX2 * parameters[4]])
        step = np.linalg.solve(normal, pull)
        largest_log = max(largest_log, abs(float(parameters[4] + step[4])))
        if abs(parameters[4] + step[4]) > bound:  # the focal length is at its bound; solve for the rest
            log_step = np.copysign(bound, parameters[4] + step[4]) - parameters[4]
            step[:4] = np.linalg.solve(normal[:4, :4], pull[:4] - normal[:4, 4] * log_step)
            step[4] = log_step
        parameters = parameters + step
    return parameters, residuals_at(parameters[None])[0].T, slopes.transpose(2, 1, 0), float(np.exp(largest_log))


def _line_distances(residuals: F64, slopes: F64, points: F64, axes: F64) -> F64:
    """Return the distances (N,) px of points from their lines for the best translation, rotation and zoom."""
    # A translation t moves a point x at depth Z by (t_xy - t_z x) / Z, which is along a line.
    plain = np.zeros((len(points), 2, 3))
    plain[:, 0, 0], plain[:, 1, 1], plain[:, :, 2] = 1, 1, -points
    lines = axes @ plain  # (N, 2, 3); its product with t is the direction of each point's line
    best = _best(_solve(_half_sphere(_DIRECTIONS), residuals, slopes, lines))
    for _ in range(_REFINED):
        rest = residuals - slopes[:, :, :4] @ best.changes[0]
        cross = (rest[:, 0, None] * lines[:, 1] - rest[:, 1, None] * lines[:, 0]) / best.lengths[0, :, None]
        weights = 1 / (1 + (best.across[0] / _WIDTH_PX) ** 2)
        t = np.linalg.eigh((weights[:, None] * cross).T @ cross)[1][:, 0]
        found = _solve(t[None], residuals, slopes, lines)
        if found.costs[0] >= best.costs[0]:
            break
        best = found
    result: F64 = np.abs(best.across[0])
    return result


@dataclass(frozen=True, slots=True)
class _TranslationFits:
    """Fits for D directions of translation and N points."""

    changes: F64  # (D, 4) changes of rotation (rad) and log zoom
    across: F64  # (D, N) px, distances of the points from their lines
    lengths: F64  # (D, N) lengths of the lines' direction vectors, px
    costs: F64  # (D,) robust sums of squared distances


def _best(tried: _TranslationFits) -> _TranslationFits:
    at = slice(least := int(tried.costs.argmin()), least + 1)
    return _TranslationFits(tried.changes[at], tried.across[at], tried.lengths[at], tried.costs[at])


def _solve(directions: F64, residuals: F64, slopes: F64, lines: F64) -> _TranslationFits:
    line = np.einsum("nij,dj->dni", lines, directions)
    lengths = np.maximum(np.sqrt((line * line).sum(axis=2)), 1e-6)
    normal = np.stack([-line[:, :, 1], line[:, :, 0]], axis=2) / lengths[:, :, None]
    apart = (normal * residuals).sum(axis=2)
    slope = normal[:, :, :1] * slopes[:, 0, :4] + normal[:, :, 1:] * slopes[:, 1, :4]
    changes, rest = np.zeros((len(directions), 4)), apart
    for _ in range(_STEPS):
        weighted = slope / (1 + (rest / _WIDTH_PX) ** 2)[:, :, None]
        across = np.swapaxes(weighted, 1, 2)
        changes = np.linalg.solve(across @ slope + 1e-3 * np.eye(4), across @ apart[:, :, None])[:, :, 0]
        rest = apart - (slope @ changes[:, :, None])[:, :, 0]
    return _TranslationFits(changes, rest, lengths, np.log1p((rest / _WIDTH_PX) ** 2).sum(axis=1))


def _half_sphere(count: int) -> F64:
    """Return unit vectors (count, 3) distributed evenly over half a sphere: a Fibonacci lattice."""
    number = np.arange(count) + 0.5
    z, angle = number / count, np.pi * (1 + 5**0.5) * number
    radius = np.sqrt(1 - z * z)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), z], axis=1)
