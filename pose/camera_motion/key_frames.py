"""Key frames: images that later ones are compared with, and where the camera looked in them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.camera_motion.fit import INLIER, Fit, View, fit_view, most_common, off_by
from pose.camera_motion.reduced import Features, shift_between, thumbnail, track, within
from pose.camera_motion.turns import to_matrix
from pose.types import F32, U8

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 10  # points that a view is found from
AGREEING = 0.4  # share of the points found again that must move with the camera
CELLS = (6, 4)  # of a grid over the image, longer side first
_DOUBTFUL = 0.6  # share below which the search begins a second time, elsewhere
FEWEST_CELLS = 4  # of the grid in which such points lie: fewer may be one thing that moves, or a logo
_STILL = 0.7  # px
NEAR = 8.0  # px off the view; what is further off is not looked at for the next view
REMEMBERED = 3.0  # s after a key frame in which its points are followed further off than that
_STILL_CELLS = 0.3  # share of the cells whose points stay; then what moves is not the background


@dataclass(slots=True, eq=False)
class KeyFrame:
    """index, time: of its frame. grey: (h, w) the reduced image. features: N of it, and their rays: (N, 3). place:
    where it looked, compared with the first key frame of its stretch. stretch: a number that key frames share which are
    linked to each other. thumb: its thumbnail. off: (N, 2) px by which each feature was off the camera's view when it
    was last found: near things are off when the camera moves from its place, and are searched there.
    """

    index: int
    time: float
    grey: U8
    features: Features
    rays: F64
    place: View
    stretch: int
    thumb: F32
    off: F64

    @classmethod
    def of(cls, image: "Reduced", features: Features, place: View, stretch: int) -> "KeyFrame":
        middle = (features.points - centre(image.grey)) / image.focal
        rays = np.concatenate([middle, np.ones((len(middle), 1))], axis=1)
        thumb = thumbnail(image.grey, image.mask)
        off = np.zeros((len(middle), 2))
        return cls(image.index, image.time, image.grey, features, rays, place, stretch, thumb, off)


@dataclass(frozen=True, slots=True, eq=False)
class Reduced:
    """A frame made small. grey: (h, w). mask: (h, w), 0 on people. focal: px. scale: of the original's size. known:
    whether the focal length is.
    """

    index: int
    time: float
    grey: U8
    mask: U8
    focal: float
    scale: float
    known: bool


@dataclass(frozen=True, slots=True)
class Points:
    """Features of a key frame found in another. rows: (N,) of the features. seen: (N, 2) px from the centre."""

    rows: NDArray[np.int64]
    seen: F64


@dataclass(frozen=True, slots=True)
class Match:
    """A frame compared with a key frame. fit: of the points found again near where a turned camera shows them. rays:
    (N, 3), of these in the key frame, and seen: (N, 2) px from the centre, in the frame. points: all that were found.
    cells: of the grid that points lie in which agree. kept: share of the key frame's features, those that people now
    hide left out, that agree. shift: px by which these moved, the median.
    """

    key: KeyFrame
    fit: Fit
    rays: F64
    seen: F64
    points: Points
    cells: int
    kept: float
    shift: float

    @property
    def share(self) -> float:
        return float(self.fit.inliers.mean())

    @property
    def agreeing(self) -> int:
        return int(self.fit.inliers.sum())

    def remember(self, image: "Reduced") -> None:
        """Note how far points are off the view, to find them again there; not for long, they may be mistaken."""
        key, points = self.key, self.points
        off = points.seen - self.fit.view.project(key.rays[points.rows], image.focal)
        if image.time - key.time > REMEMBERED:
            off[np.linalg.norm(off, axis=1) > NEAR] = 0
        key.off[points.rows] = off

    @property
    def good(self) -> bool:
        return self.agreeing >= FEWEST and self.share >= AGREEING and self.cells >= FEWEST_CELLS


def most_alike(keys: list[KeyFrame], image: Reduced) -> tuple[KeyFrame, View]:
    """The key frame that shows most of what a frame shows, and roughly how the frame's camera is turned from it."""
    thumb = thumbnail(image.grey, image.mask)
    shifts = [shift_between(key.thumb, thumb) for key in keys]
    best = max(range(len(keys)), key=lambda number: shifts[number][1])
    across, down = shifts[best][0] / image.focal
    return keys[best], View(to_matrix(np.array([-down, across, 0.0])), 1.0)


def centre(grey: U8) -> F64:
    """(2,) px"""
    return np.array([(grey.shape[1] - 1) / 2, (grey.shape[0] - 1) / 2])


def compare(key: KeyFrame, image: Reduced, expected: View, before: View, levels: int = 2) -> Match | None:
    """A frame compared with a key frame; None where too few points are found again.

    expected: roughly the frame's view. before: that of the frame before; what stays
    there in many places of the picture is the background, and what moves is a train.
    """
    grey, focal = image.grey, image.focal
    guess = (expected.project(key.rays, focal) + centre(grey) + key.off).astype(np.float32)
    rows = np.flatnonzero(within(guess, image.mask))
    if len(rows) < FEWEST:
        return None
    there, found = track(key.grey, grey, key.features[rows], guess[rows], levels)
    found &= within(there, image.mask)
    if found.sum() < FEWEST:
        return None
    points = Points(rows[found], there[found] - centre(grey))
    near = np.linalg.norm(key.off[points.rows], axis=1) < NEAR
    if near.sum() < FEWEST:
        return None
    at, seen = points.rows[near], points.seen[near]
    rays, axes = key.rays[at], key.features.axes[at]
    fit = fit_view(rays, seen, axes, focal, expected)
    if fit.inliers.mean() < _DOUBTFUL:
        second = fit_view(rays, seen, axes, focal, most_common(rays, seen, focal, expected))
        fit = max(fit, second, key=lambda one: int(one.inliers.sum()))
    fit = _unless_still(fit, rays, seen, axes, focal, before, grey.shape)
    agree = fit.inliers
    if not agree.any():
        return None
    cells = len(set(cells_of(seen[agree], grey.shape)))
    moved = np.linalg.norm(seen + centre(grey) - key.features.points[at], axis=1)[agree]
    return Match(key, fit, rays, seen, points, cells, float(agree.sum()) / len(rows), float(np.median(moved)))


def cells_of(seen: F64, shape: tuple[int, ...]) -> list[int]:
    """The cell of the grid that each of the points (N, 2) px from the centre lies in."""
    across, down = CELLS if shape[1] >= shape[0] else CELLS[::-1]
    columns = np.floor((seen[:, 0] / shape[1] + 0.5) * across).astype(int)
    return [int(cell) for cell in columns + across * np.floor((seen[:, 1] / shape[0] + 0.5) * down).astype(int)]


def _unless_still(fit: Fit, rays: F64, seen: F64, axes: F64, focal: float, before: View, shape: tuple[int, ...]) -> Fit:
    """The fit, or that of points which stayed where they were before, if those lie in many places of the image."""
    still = off_by(before, rays, seen, axes, focal) < _STILL
    against = still & (fit.off > 2 * INLIER)
    if against.sum() < FEWEST:
        return fit
    cells = len(set(cells_of(seen[against], shape)))
    if cells < max(FEWEST_CELLS, _STILL_CELLS * len(set(cells_of(seen, shape)))):
        return fit
    view = fit_view(rays[still], seen[still], axes[still], focal, before).view
    return Fit(view, off_by(view, rays, seen, axes, focal), fit.sigma)
