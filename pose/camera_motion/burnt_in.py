"""Detection of logos and subtitles, which stay in place in the image while the camera moves."""

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.camera_motion.fit import View
from pose.types import F64, U8

Mask = NDArray[np.bool_]

# of a point of a logo: px that it moves at most, px that the view moves it at least
_MAX_PX, _MIN_VIEW_PX = 0.5, 3.0
_MAX_SHARE = 0.3  # of the points; more may be at the distance around which a camera orbits
_REACH_PX = 8  # around such a point
_CONFIRMED = 3  # frames
_MAX_AREA = 0.2  # maximum share of the image


def burnt_in(rays: F64, seen: F64, view: View, focal: float) -> Mask:
    """Return (N,) whether points are static in the image while the view has moved.

    Args:
        rays: (N, 3) rays of the points in the key frame, z = 1.
        seen: (N, 2) px from the image centre, positions in the later frame.
        view: View of the later frame relative to the key frame.
        focal: Focal length, px.
    """
    if not len(rays):
        return np.zeros(0, bool)
    before = focal * rays[:, :2]
    found = np.linalg.norm(seen - before, axis=1) < _MAX_PX
    found &= np.linalg.norm(view.project(rays, focal) - before, axis=1) > _MIN_VIEW_PX
    return np.asarray(found & (found.mean() < _MAX_SHARE))


class BurntIn:
    """Image regions with logos or subtitles in several frames; kept after cuts."""

    def __init__(self) -> None:
        self._frames: U8 | None = None  # (h, w)
        self._region: Mask | None = None

    def add(self, points: F64, shape: tuple[int, ...]) -> None:
        """Add the static points (N, 2) px of a frame of the given shape."""
        if not len(points):
            return
        frames = self._frames
        if frames is None or frames.shape != shape:
            frames = np.zeros(shape, np.uint8)
        near = np.zeros(shape, np.uint8)
        for x, y in points.round().astype(int).tolist():
            cv2.rectangle(near, (x - _REACH_PX, y - _REACH_PX), (x + _REACH_PX, y + _REACH_PX), 1, -1)
        frames = np.asarray(cv2.add(frames, near), np.uint8)  # saturates
        region = np.asarray(frames >= _CONFIRMED)
        if region.mean() > _MAX_AREA:
            frames, region = np.zeros(shape, np.uint8), np.zeros(shape, bool)
        self._frames, self._region = frames, region if region.any() else None

    def without(self, mask: U8) -> U8:
        """Return the mask (h, w), set to 0 in these regions as well."""
        if self._region is None or self._region.shape != mask.shape:
            return mask
        return np.where(self._region, np.uint8(0), mask)
