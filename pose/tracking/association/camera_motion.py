"""Estimate of camera motion between two images as a similarity transform, from corners and optical flow.

The methods are those of OpenCV: corners of J. Shi and C. Tomasi (CVPR 1994), pyramidal Lucas-Kanade flow, and a RANSAC
fit of rotation, scale and translation.
"""

import cv2
import numpy as np

from pose.structures.types import F64, U8

MAX_CORNERS = 1000
MIN_CORNER_QUALITY = 0.01  # relative to the quality of the best corner
MIN_CORNER_DISTANCE_PX = 1.0
MIN_CORNERS = 5  # with fewer tracked corners no motion is estimated


class ImageMotion:
    """Estimator of the camera motion from one image to the next, as an affine map."""

    # Corners are tracked in images of half the resolution; the result is in pixels of the full images.

    def __init__(self) -> None:
        self._previous: U8 | None = None
        self._corners: np.ndarray | None = None

    def step(self, image: U8) -> F64:
        """Return the affine matrix (2, 3) from px of the previous to px of this image; identity if unknown."""
        half = max(1, image.shape[1] // 2), max(1, image.shape[0] // 2)
        grey = np.asarray(cv2.resize(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), half), np.uint8)
        previous, corners = self._previous, self._corners
        self._previous = grey
        self._corners = cv2.goodFeaturesToTrack(grey, MAX_CORNERS, MIN_CORNER_QUALITY, MIN_CORNER_DISTANCE_PX)
        if previous is None or corners is None or self._corners is None or previous.shape != grey.shape:
            return np.eye(2, 3)
        followed, status, _ = cv2.calcOpticalFlowPyrLK(previous, grey, corners, np.empty_like(corners))
        found = np.asarray(status).reshape(-1) > 0
        if found.sum() < MIN_CORNERS:
            return np.eye(2, 3)
        motion, _ = cv2.estimateAffinePartial2D(corners[found], followed[found], method=cv2.RANSAC)
        return np.eye(2, 3) if motion is None else motion * [1, 1, 2]
