"""Straight line segments of the background, found while the video is read.

R. Grompone von Gioi et al., "LSD: a line segment detector", IPOL 2012, in OpenCV. `pose.world.scene.lines` uses them.
"""

from collections import Counter

import cv2
import numpy as np

from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, F64, I64, NO_LINK, U8, Background, People
from pose.world.camera_motion.reduced import people_mask

_SIDE_PX = 1280  # longer side of the image in which segments are found, at most
_MIN_LENGTH = 0.04  # minimum length of a segment relative to the longer side
_MAX_SEGMENTS = 60  # longest segments of a frame that are used
# Of them, at most 3 in one of 12 directions and one of 6 parts of the longer side of the image.
_MAX_PARALLEL, _DIRECTIONS, _CELLS = 3, 12, 6
_BORDER_PX = 3  # distance from the border of the image within which a segment is the border
STEADY_TIMES_S = (0.0, 1.0, 2.0)  # of the frames of a static camera, s from the start of a scene
# Later frames are at least 1 s and a twelfth of the scene apart, so that their number stays small in long videos.
_INTERVAL_S, _SHARE = 1.0, 12
_MIN_TURN = 0.01  # rad, rotation or logarithm of the zoom since the last frame with segments, in later frames


class SegmentFinder:
    """Choice of the frames in which segments are found: the start of each scene, and later ones if the camera turns."""

    def __init__(self, skeleton: Skeleton) -> None:
        """Start without frames."""
        self._skeleton = skeleton
        self._begin = self._next = -np.inf  # s, start of the scene, and time of the next frame with segments
        self._view: F64 | None = None  # (5,) key frame, rotation and zoom of the last measured frame
        self._seen: F64 | None = None  # the same, of the last frame with segments

    def step(self, image: U8, people: People, background: Background | None) -> F32 | None:
        """Return the segments (L, 2, 2) px of the next (H, W, 3) RGB frame; None if it is not needed."""
        time = people.time
        if people.cut or self._begin == -np.inf:
            self._begin = self._next = time
            self._view = self._seen = None
        if background is not None and background.links[0, 0] != NO_LINK:
            self._view = background.links[0, :5]
        steady = time - self._begin > STEADY_TIMES_S[-1] + _INTERVAL_S / 2 and not self._turned()
        if steady or time < self._next - 1e-6:
            return None
        self._next, self._seen = time + max(_INTERVAL_S, (time - self._begin) / _SHARE), self._view
        return find_segments(image, people, self._skeleton)

    def _turned(self) -> bool:
        if self._view is None or self._seen is None:
            return self._view is not self._seen
        return bool(self._view[0] != self._seen[0] or np.abs(self._view[1:] - self._seen[1:]).max() > _MIN_TURN)


def reduction(size: tuple[int, int]) -> float:
    """Return the factor by which an image of a size (width, height) px is reduced before segments are found."""
    return min(1.0, _SIDE_PX / max(size))


def find_segments(image: U8, people: People, skeleton: Skeleton) -> F32:
    """Return the ends (L, 2, 2) px of the longest line segments of an RGB image (H, W, 3) outside its people."""
    side, scale = max(image.shape[:2]), reduction((image.shape[1], image.shape[0]))
    grey = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    if scale < 1:
        grey = cv2.resize(grey, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    found = cv2.createLineSegmentDetector().detect(grey)[0]
    ends = np.zeros((0, 2, 2)) if found is None else found.reshape(-1, 2, 2).astype(np.float64)
    mask = people_mask(grey.shape, scale, people, skeleton)
    lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=-1)
    height, width = grey.shape
    middles = ends.mean(axis=1).astype(int).clip(0, [width - 1, height - 1])
    inside = np.concatenate([ends, [width - 1, height - 1] - ends], axis=2)  # px from the four borders
    border = np.any(np.all(inside < _BORDER_PX, axis=1), axis=1)  # both ends at the same border of the image
    kept = (lengths > _MIN_LENGTH * scale * side) & (mask[middles[:, 1], middles[:, 0]] > 0) & ~border
    rows = _spread(ends, lengths, np.flatnonzero(kept), side * scale)
    return np.asarray((ends[rows] + 0.5) / scale - 0.5, np.float32)


def _spread(ends: F64, lengths: F64, rows: I64, side: float) -> I64:
    """Return the longest segments, but few parallel ones of one part of the image: slats err together."""
    ordered = rows[np.argsort(-lengths[rows], kind="stable")]
    ways = ends[ordered, 1] - ends[ordered, 0]
    turns = np.rint(np.arctan2(ways[:, 1], ways[:, 0]) / np.pi * _DIRECTIONS) % _DIRECTIONS
    cells = np.floor(ends[ordered].mean(axis=1) / side * _CELLS)
    seen: Counter[tuple[float, ...]] = Counter()
    chosen = []
    for row, cell in zip(ordered, np.column_stack([turns, cells]).tolist(), strict=True):
        seen[tuple(cell)] += 1
        if seen[tuple(cell)] <= _MAX_PARALLEL:
            chosen.append(row)
    return np.array(chosen[:_MAX_SEGMENTS], np.int64)
