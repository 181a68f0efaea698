"""Reduced grey images for tracking, their features, and logos and subtitles that stay in place."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, F64, U8, Flags, People
from pose.world.camera_motion.fit import View

MAX_SIDE_PX = 480  # px of the longer side
_SCALE_TOLERANCE = 1.005  # tolerance with which a scale factor counts as a whole number
MAX_FEATURES = 120  # maximum number of features in an image
MIN_DISTANCE_PX = 9.0  # px, minimum distance of two features
WINDOW_PX = 11  # px, window around a feature
LEVELS = 2  # pyramid levels of the optical flow above the image itself, unless the motion can be large
MAX_ROUND_TRIP_PX = 0.5  # px, maximum forward-backward tracking error
_MIN_QUALITY = 0.004  # minimum quality relative to the best corner
_NOISE = 6.0  # mean squared gradient, (grey levels/px)^2, at which a direction counts half; noise has less
_LIMB, _SKULL = 0.12, 0.16  # width of limbs and radius of the head, relative to the diagonal of a person's box
_TRUNK = ("left_shoulder", "right_shoulder", "left_hip", "right_hip")
_HEAD = ("nose", "head")
_MAX_BAR_GREY = 24  # of 255; rows and columns without a brighter pixel are bars
# Bars partly covered by a logo: maximum grey level of black (16 in video levels), and minimum share of black pixels.
_BLACK_GREY, _MIN_BAR_SHARE = 18, 0.6
_MIN_BORDER_PX = 6  # px, minimum distance of features from the border and from bars
_THUMBNAIL_SCALE = 8  # scale of thumbnails: px of the reduced image per px
_CRITERIA = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, 12, 0.02)


def reduce(image: U8) -> U8:
    """Return the green channel of an image, averaged down to a longer side of at most `MAX_SIDE_PX` px."""
    height, width = image.shape[:2]
    step = max(1, max(height, width) // (2 * MAX_SIDE_PX))
    green = np.ascontiguousarray(image[::step, ::step, 1])
    scale = MAX_SIDE_PX / max(height, width)
    if scale >= 1:
        return green
    size = max(8, round(width * scale)), max(8, round(height * scale))
    # Averaging is fast over whole pixels; the remaining factor is small and needs none.
    factor = int(max(green.shape) * _SCALE_TOLERANCE / MAX_SIDE_PX)
    if factor > 1:
        few = [max(1, side // factor) for side in green.shape]
        cropped = green[: few[0] * factor, : few[1] * factor]
        green = np.asarray(cv2.resize(cropped, few[::-1], interpolation=cv2.INTER_AREA), np.uint8)
    return np.asarray(cv2.resize(green, size, interpolation=cv2.INTER_LINEAR), np.uint8)


@dataclass(frozen=True, slots=True)
class Features:
    """N points of an image that can be tracked."""

    # The first row of `axes` is across the edge at the point, the second along it. The length of a row, 0 to 1, says
    # how well motion in this direction can be measured; along a straight edge it is 0.

    points: F32  # (N, 2) px
    axes: F64  # (N, 2, 2) directions of each point: the first row is across the edge at the point, the second along it

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, rows: NDArray[np.generic]) -> "Features":
        return Features(self.points[rows], self.axes[rows])


def people_mask(shape: tuple[int, ...], scale: float, people: People, skeleton: Skeleton) -> U8:
    """Return a mask (h, w), 0 where people may be, else 255; their boxes if the joints are invalid."""
    mask = np.full(shape, 255, np.uint8)
    trunk = [skeleton.names.index(name) for name in _TRUNK if name in skeleton.names]
    head = [skeleton.names.index(name) for name in _HEAD if name in skeleton.names]
    for box, joints in zip(people.boxes * scale, people.keypoints * scale, strict=True):
        if not np.isfinite(joints).all() or np.abs(joints).max() > 1e4:
            corners = np.nan_to_num(box).clip(-1e4, 1e4).astype(int).tolist()
            cv2.rectangle(mask, corners[:2], corners[2:], 0, -1)
            continue
        size = float(np.hypot(*(box[2:] - box[:2])))
        ends = joints.round().astype(int).tolist()
        lines = [(ends[one], ends[other]) for one, other in skeleton.edges]
        if trunk:
            middle = joints[trunk].mean(axis=0).round().astype(int).tolist()
            lines += [(middle, ends[joint]) for joint in (*trunk, *head)]
        for one, other in lines:
            cv2.line(mask, one, other, 0, max(3, round(_LIMB * size)))
        for joint in head:
            cv2.circle(mask, ends[joint], round(_SKULL * size), 0, -1)
    return mask


def within(points: NDArray[np.floating], mask: U8) -> NDArray[np.bool_]:
    """Return (N,) whether points (N, 2) px are inside the image and where `mask` is not 0."""
    height, width = mask.shape
    x, y = points[:, 0], points[:, 1]
    inside = (x >= 1) & (y >= 1) & (x < width - 2) & (y < height - 2)
    columns, rows = np.where(inside, x, 0).astype(int), np.where(inside, y, 0).astype(int)
    return np.asarray(inside & (mask[rows, columns] > 0))


def find_features(grey: U8, mask: U8) -> Features:
    """Find corners where `mask` is not 0, outside black bars at the borders and with contrast above noise."""
    # Source: J. Shi and C. Tomasi, "Good features to track", CVPR 1994.
    allowed = np.zeros_like(mask)
    rows, columns = (np.flatnonzero(~_bars(grey, axis)) for axis in (1, 0))
    if len(rows) and len(columns):
        inner = (
            slice(rows[0] + _MIN_BORDER_PX, max(rows[-1] + 1 - _MIN_BORDER_PX, 0)),
            slice(columns[0] + _MIN_BORDER_PX, max(columns[-1] + 1 - _MIN_BORDER_PX, 0)),
        )
        allowed[inner] = mask[inner]
    found = cv2.goodFeaturesToTrack(grey, MAX_FEATURES, _MIN_QUALITY, MIN_DISTANCE_PX, mask=allowed)
    if found is None:
        return features_at(grey, np.zeros((0, 2), np.float32))
    features = features_at(grey, np.asarray(found, np.float32).reshape(-1, 2))
    return features[np.flatnonzero((features.axes[:, 0] ** 2).sum(axis=1) > 0.5)]


def _bars(grey: U8, axis: int) -> NDArray[np.bool_]:
    """Return which rows (axis 1) or columns (axis 0) are black bars; a logo or subtitle may cover a part of them."""
    dark = grey <= _MAX_BAR_GREY
    black = (grey <= _BLACK_GREY).mean(axis=axis) > _MIN_BAR_SHARE
    return np.asarray(dark.all(axis=axis) | black)


def features_at(grey: U8, points: NDArray[np.floating]) -> Features:
    """Make trackable features at points (N, 2) px."""
    points = np.asarray(points, np.float32)
    height, width = grey.shape
    offsets = np.arange(-(WINDOW_PX // 2) - 1, WINDOW_PX // 2 + 2)
    at = points.round().astype(int)
    rows = (at[:, 1, None] + offsets).clip(0, height - 1)[:, :, None]
    columns = (at[:, 0, None] + offsets).clip(0, width - 1)[:, None]
    patches = grey[rows, columns].astype(np.float32)
    across = (patches[:, 1:-1, 2:] - patches[:, 1:-1, :-2]) / 2
    down = (patches[:, 2:, 1:-1] - patches[:, :-2, 1:-1]) / 2
    p, q, r = ((one * other).mean(axis=(1, 2)) for one, other in ((across, across), (across, down), (down, down)))
    mean, apart = (p + r) / 2, np.hypot((p - r) / 2, q)
    angle = np.arctan2(2 * q, p - r) / 2
    axes = np.empty((len(points), 2, 2))
    for number, strength in enumerate((mean + apart, np.maximum(mean - apart, 0))):
        size, turned = np.sqrt(strength / (strength + _NOISE)), angle + number * np.pi / 2
        axes[:, number, 0], axes[:, number, 1] = size * np.cos(turned), size * np.sin(turned)
    return Features(points, axes)


def track(one: U8, other: U8, features: Features, expected: F32, levels: int = LEVELS) -> tuple[F32, NDArray[np.bool_]]:
    """Track features between grey images (h, w) by pyramidal optical flow (Lucas and Kanade); return px and found."""
    points = features.points
    if not len(points):
        return points, np.zeros(0, bool)
    tracked, ok = _flow(one, other, points, expected, levels)
    back, also = _flow(other, one, tracked, points, 1)
    height, width = other.shape
    inside = ((tracked > 1) & (tracked < [width - 2, height - 2])).all(axis=1)
    off = np.einsum("nij,nj->ni", features.axes, back - points)
    return tracked, ok & also & inside & (np.abs(off).max(axis=1) < MAX_ROUND_TRIP_PX)


def thumbnail(grey: U8, mask: U8) -> F32:
    """Return a small image for `shift_between`, without people and with mean 0."""
    size = max(8, grey.shape[1] // _THUMBNAIL_SCALE), max(8, grey.shape[0] // _THUMBNAIL_SCALE)
    small = cv2.resize(grey, size, interpolation=cv2.INTER_AREA).astype(np.float32)
    shown = cv2.resize(mask, size, interpolation=cv2.INTER_AREA) > 128
    small = np.where(shown, small - (small[shown].mean() if shown.any() else 0), 0)
    return np.asarray(small * cv2.createHanningWindow(size, cv2.CV_32F), np.float32)


def shift_between(one: F32, other: F32) -> tuple[F64, float]:
    """Return the shift (x, y) px from the first to the second thumbnail, and the phase correlation's peak, 0 to 1."""
    shift, response = cv2.phaseCorrelate(one, other)
    return np.array(shift) * _THUMBNAIL_SCALE, float(response)


def _flow(one: U8, other: U8, points: F32, expected: F32, levels: int) -> tuple[F32, NDArray[np.bool_]]:
    start = np.ascontiguousarray(expected, np.float32).reshape(-1, 1, 2).copy()
    positions, status, _ = cv2.calcOpticalFlowPyrLK(
        one, other, points.reshape(-1, 1, 2), start, winSize=(WINDOW_PX, WINDOW_PX), maxLevel=levels,
        criteria=_CRITERIA, flags=cv2.OPTFLOW_USE_INITIAL_FLOW,
    )  # fmt: skip
    return np.asarray(positions, np.float32).reshape(-1, 2), np.asarray(status).reshape(-1) > 0


# px; a point of a logo moves less than the first in the image, and would move more than the second with the camera
_MAX_PX, _MIN_VIEW_PX = 0.5, 3.0
_MAX_SHARE = 0.3  # maximum share of such points; more may be scene points around which the camera orbits
_MARGIN_PX = 8  # half the side of the square that is masked around such a point
_MIN_FRAMES = 3  # frames with static points that confirm a region
_MAX_AREA = 0.2  # maximum share of the image; larger regions are discarded


def burnt_in(rays: F64, seen: F64, view: View, focal: float) -> Flags:
    """Return (N,) whether points at (N, 2) px are static in the image although the camera has moved."""
    # False for all points if many are static: they are then too many for a logo.
    if not len(rays):
        return np.zeros(0, bool)
    before = focal * rays[:, :2]
    found = np.linalg.norm(seen - before, axis=1) < _MAX_PX
    found &= np.linalg.norm(view.project(rays, focal) - before, axis=1) > _MIN_VIEW_PX
    return np.asarray(found & (found.mean() < _MAX_SHARE))


class BurntIn:
    """Image regions that contain logos or subtitles, found in several frames; kept after cuts."""

    def __init__(self) -> None:
        self._frames: U8 | None = None  # (h, w), number of frames with static points near each pixel
        self._region: Flags | None = None

    def add(self, points: F64, shape: tuple[int, ...]) -> None:
        """Add the static points (N, 2) px of a frame of shape (height, width)."""
        if not len(points):
            return
        frames = self._frames
        if frames is None or frames.shape != shape:
            frames = np.zeros(shape, np.uint8)
        near = np.zeros(shape, np.uint8)
        for x, y in points.round().astype(int).tolist():
            cv2.rectangle(near, (x - _MARGIN_PX, y - _MARGIN_PX), (x + _MARGIN_PX, y + _MARGIN_PX), 1, -1)
        frames = np.asarray(cv2.add(frames, near), np.uint8)  # cv2.add saturates at 255
        region = np.asarray(frames >= _MIN_FRAMES)
        if region.mean() > _MAX_AREA:
            frames, region = np.zeros(shape, np.uint8), np.zeros(shape, bool)
        self._frames, self._region = frames, region if region.any() else None

    def exclude_from(self, mask: U8) -> U8:
        """Return a copy of the mask (h, w) that is 0 in the logos and subtitles too, or the mask if there are none."""
        if self._region is None or self._region.shape != mask.shape:
            return mask
        return np.where(self._region, np.uint8(0), mask)
