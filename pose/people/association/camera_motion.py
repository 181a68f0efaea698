"""How the camera moved from one picture to the next: corners followed by optical flow, and one motion for most of them.

Corners are those of J. Shi and C. Tomasi (CVPR 1994), flow that of B. Lucas and T. Kanade in pyramids, and the motion
(turn, scale and shift) that on which most points agree (RANSAC); all three are OpenCV's.
"""

import cv2
import numpy as np

from pose.types import F64, U8

CORNERS = 1000
QUALITY = 0.01  # of the best corner
DISTANCE = 1.0  # px between corners
FEWEST = 5  # corners that a motion is taken from


class CameraMotion:
    """Looks at pictures of half the size."""

    def __init__(self) -> None:
        self._previous: U8 | None = None
        self._corners: np.ndarray | None = None

    def step(self, image: U8) -> F64:
        """(2, 3) from pixels of the picture before to those of `image` (H, W, 3); no motion where none is found."""
        half = max(1, image.shape[1] // 2), max(1, image.shape[0] // 2)
        grey = np.asarray(cv2.resize(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), half), np.uint8)
        previous, corners = self._previous, self._corners
        self._previous = grey
        self._corners = cv2.goodFeaturesToTrack(grey, CORNERS, QUALITY, DISTANCE)
        if previous is None or corners is None or self._corners is None or previous.shape != grey.shape:
            return np.eye(2, 3)
        followed, status, _ = cv2.calcOpticalFlowPyrLK(previous, grey, corners, np.empty_like(corners))
        found = np.asarray(status).reshape(-1) > 0
        if found.sum() < FEWEST:
            return np.eye(2, 3)
        motion, _ = cv2.estimateAffinePartial2D(corners[found], followed[found], method=cv2.RANSAC)
        return np.eye(2, 3) if motion is None else motion * [1, 1, 2]
