"""Key frames, and the comparison of later frames with key frames to measure the camera's rotation and zoom.

The view of a frame is its rotation and relative zoom.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera_rotations import to_matrix
from pose.structures.types import F32, F64, U8
from pose.world.camera_motion.fit import MAX_INLIER_PX, Fit, View, fit_view, rotated_by_common_shift, view_residuals
from pose.world.camera_motion.reduced import LEVELS, Features, shift_between, thumbnail, track, within

MIN_POINTS = 10  # minimum points for a view
MIN_INLIER_SHARE = 0.4  # minimum fraction of the tracked points that move with the camera
CELLS = (6, 4)  # grid over the image, longer side first
_MIN_ACCEPTED_SHARE = 0.6  # fraction below which the search is repeated from another start
MIN_CELLS = 4  # minimum grid cells with points that move with the camera; fewer may be one moving object or a logo
_MAX_STATIC_PX = 0.7  # px, maximum residual of a point that keeps the view of the previous frame
MAX_RESIDUAL_PX = 8.0  # px; points with larger residuals are not used for the next view
LARGE_RESIDUALS_S = 3.0  # s after a key frame during which points with larger residuals are tracked
# Minimum fraction of grid cells with static points; from it on, the moving points are not the background.
_MIN_STATIC_CELL_SHARE = 0.3


@dataclass(slots=True, eq=False)
class KeyFrame:
    """A key frame with N features."""

    index: int  # index of its frame
    time: float  # time of the frame, s
    grey: U8  # (h, w) reduced grey image
    features: Features  # image features
    rays: F64  # (N, 3) directions of the features in camera axes, with z = 1
    view: View  # view relative to the first key frame of the component
    component: int  # number of the component, a group of connected key frames
    thumbnail: F32  # thumbnail of the image, for `shift_between`
    residuals: F64  # (N, 2) px, last residual of each feature

    @classmethod
    def of(cls, image: "ReducedFrame", features: Features, view: View, component: int) -> "KeyFrame":
        """Make a key frame of a reduced image."""
        middle = (features.points - centre(image.grey)) / image.focal
        rays = np.concatenate([middle, np.ones((len(middle), 1))], axis=1)
        thumb = thumbnail(image.grey, image.mask)
        residuals = np.zeros((len(middle), 2))
        return cls(image.index, image.time, image.grey, features, rays, view, component, thumb, residuals)


@dataclass(frozen=True, slots=True, eq=False)
class ReducedFrame:
    """A frame reduced in size for tracking."""

    index: int  # index of the frame
    time: float  # time of the frame, s
    grey: U8  # (h, w) reduced grey image
    mask: U8  # (h, w) mask of the background, 0 on people, logos and subtitles
    focal: float  # focal length in the reduced image, px
    scale: float  # ratio of the reduced to the original size
    focal_known: bool  # whether the focal length is known


@dataclass(frozen=True, slots=True)
class Points:
    """Features of a key frame found in another frame."""

    rows: NDArray[np.int64]  # (N,) indices of the features in the key frame
    seen: F64  # (N, 2) px, positions in the other frame relative to the image centre


@dataclass(frozen=True, slots=True)
class Match:
    """Comparison of a frame with a key frame."""

    key: KeyFrame  # key frame
    fit: Fit  # view of the frame relative to the key frame, fitted to the N inliers, the points with small residuals
    rays: F64  # (N, 3) directions of the inliers in the key frame
    seen: F64  # (N, 2) px, positions of the inliers in the frame relative to the image centre
    points: Points  # directions and positions of all tracked points, including those with large residuals
    cells: int  # number of grid cells of the image that contain inliers
    # Number of inliers, as a fraction of the key frame's features that are in view and not occluded by people.
    tracked_share: float
    shift: float  # median shift of the inliers between both frames, px

    @property
    def inlier_share(self) -> float:
        """Fraction of inliers among the N points."""
        return float(self.fit.inliers.mean())

    @property
    def inlier_count(self) -> int:
        """Number of inliers."""
        return int(self.fit.inliers.sum())

    def store_residuals(self, image: "ReducedFrame") -> None:
        """Store the residuals for the next search; large ones, maybe errors, only for `LARGE_RESIDUALS_S`."""
        key, points = self.key, self.points
        residuals = points.seen - self.fit.view.project(key.rays[points.rows], image.focal)
        if image.time - key.time > LARGE_RESIDUALS_S:
            residuals[np.linalg.norm(residuals, axis=1) > MAX_RESIDUAL_PX] = 0
        key.residuals[points.rows] = residuals

    @property
    def is_reliable(self) -> bool:
        """Whether the view is reliable: enough points agree with it, in enough parts of the image."""
        return self.inlier_count >= MIN_POINTS and self.inlier_share >= MIN_INLIER_SHARE and self.cells >= MIN_CELLS


def most_similar_key(keys: list[KeyFrame], image: ReducedFrame) -> tuple[KeyFrame, View]:
    """Return the key frame that is most similar to a frame, and the frame's approximate view relative to it."""
    thumb = thumbnail(image.grey, image.mask)
    shifts = [shift_between(key.thumbnail, thumb) for key in keys]
    best = max(range(len(keys)), key=lambda number: shifts[number][1])
    across, down = shifts[best][0] / image.focal
    return keys[best], View(to_matrix(np.array([-down, across, 0.0])), 1.0)


def centre(grey: U8) -> F64:
    """Return the image centre (2,) px."""
    return np.array([(grey.shape[1] - 1) / 2, (grey.shape[0] - 1) / 2])


def compare(key: KeyFrame, image: ReducedFrame, expected: View, previous: View, levels: int = LEVELS) -> Match | None:
    """Compare a frame with a key frame; return None if too few points are found or agree."""
    grey, focal = image.grey, image.focal
    guess = (expected.project(key.rays, focal) + centre(grey) + key.residuals).astype(np.float32)
    rows = np.flatnonzero(within(guess, image.mask))
    if len(rows) < MIN_POINTS:
        return None
    tracked, is_tracked = track(key.grey, grey, key.features[rows], guess[rows], levels)
    is_tracked &= within(tracked, image.mask)
    if is_tracked.sum() < MIN_POINTS:
        return None
    points = Points(rows[is_tracked], tracked[is_tracked] - centre(grey))
    near = np.linalg.norm(key.residuals[points.rows], axis=1) < MAX_RESIDUAL_PX
    if near.sum() < MIN_POINTS:
        return None
    at, seen = points.rows[near], points.seen[near]
    rays, axes = key.rays[at], key.features.axes[at]
    fit = fit_view(rays, seen, axes, focal, expected)
    if fit.inliers.mean() < _MIN_ACCEPTED_SHARE:
        second = fit_view(rays, seen, axes, focal, rotated_by_common_shift(rays, seen, focal, expected))
        fit = max(fit, second, key=lambda one: int(one.inliers.sum()))
    fit = _static_fit(fit, rays, seen, axes, focal, previous, grey.shape)
    agree = fit.inliers
    if not agree.any():
        return None
    cells = len(set(cells_of(seen[agree], grey.shape)))
    moved = np.linalg.norm(seen + centre(grey) - key.features.points[at], axis=1)[agree]
    return Match(key, fit, rays, seen, points, cells, float(agree.sum()) / len(rows), float(np.median(moved)))


def cells_of(seen: F64, shape: tuple[int, ...]) -> list[int]:
    """Return the number of the grid cell that contains each point (N, 2) px from the image centre."""
    across, down = CELLS if shape[1] >= shape[0] else CELLS[::-1]
    columns = np.floor((seen[:, 0] / shape[1] + 0.5) * across).astype(int)
    return [int(cell) for cell in columns + across * np.floor((seen[:, 1] / shape[0] + 0.5) * down).astype(int)]


def _static_fit(fit: Fit, rays: F64, seen: F64, axes: F64, focal: float, previous: View, shape: tuple[int, ...]) -> Fit:
    """Return the fit, or a fit to the points that keep the view `previous`, if these are in many parts of the image."""
    still = view_residuals(previous, rays, seen, axes, focal) < _MAX_STATIC_PX
    against = still & (fit.residuals > 2 * MAX_INLIER_PX)
    if against.sum() < MIN_POINTS:
        return fit
    cells = len(set(cells_of(seen[against], shape)))
    if cells < max(MIN_CELLS, _MIN_STATIC_CELL_SHARE * len(set(cells_of(seen, shape)))):
        return fit
    view = fit_view(rays[still], seen[still], axes[still], focal, previous).view
    return Fit(view, view_residuals(view, rays, seen, axes, focal), fit.sigma)
