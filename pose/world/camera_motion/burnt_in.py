"""Detection of logos and subtitles, which stay in place in the image while the camera moves."""

import cv2
import numpy as np

from pose.structures.types import F64, U8, Flags
from pose.world.camera_motion.fit import View

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
