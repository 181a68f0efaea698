"""A person's region over time: the One-Euro filter that keeps a crop still while its person is still."""

import math

import numpy as np
from numpy.typing import NDArray

from pose.types import Regions


class RegionFilter:
    """Smooths one person's regions from frame to frame, as MediaPipe smooths the two points that span them.

    A region is two points: its centre, and the one above it on the circle around the body. Each coordinate passes a
    One-Euro filter (Casiez et al., CHI 2012, doi:10.1145/2207676.2208639) whose speed is measured in body sizes a
    second. Constants: google-ai-edge/mediapipe, `pose_landmark_filtering.pbtxt`. Without it, noise in the landmarks
    moves the crop, which moves the landmarks.
    """

    MIN_CUTOFF = 0.01  # Hz, of a person at rest
    BETA = 10.0  # Hz for one body size a second
    DERIVATIVE_CUTOFF = 1.0  # Hz
    REACH = 0.4  # of a region's height from its centre to the upper point

    def __init__(self) -> None:
        self._time = -math.inf
        self._raw = np.zeros((2, 2))
        self._smooth = np.zeros((2, 2))
        self._speed = np.zeros((2, 2))

    def __call__(self, region: Regions, time: float) -> Regions:
        """The smoothed region. region: one row. time: s, increasing from call to call."""
        up = np.array([math.sin(region.angles[0]), -math.cos(region.angles[0])]) * region.sizes[0, 1] * self.REACH
        points = np.stack([region.centers[0], region.centers[0] + up])
        if math.isinf(self._time):
            self._smooth = points
        else:
            step = max(time - self._time, 1e-3)
            size = max(2 * math.hypot(*up), 1e-6)
            speed = (points - self._raw) / (size * step)
            self._speed += _weight(self.DERIVATIVE_CUTOFF, step) * (speed - self._speed)
            self._smooth += _weight(self.MIN_CUTOFF + self.BETA * np.abs(self._speed), step) * (points - self._smooth)
        self._raw, self._time = points, time
        return self._region(region)

    def _region(self, region: Regions) -> Regions:
        up = self._smooth[1] - self._smooth[0]
        height = math.hypot(*up) / self.REACH
        width = height * region.sizes[0, 0] / region.sizes[0, 1]
        return Regions(
            self._smooth[:1].astype(np.float32),
            np.array([[width, height]], np.float32),
            np.array([math.atan2(up[0], -up[1])], np.float32),
        )


def _weight(cutoff: float | NDArray[np.float64], step: float) -> NDArray[np.float64]:
    """What a first-order low pass of `cutoff` Hz gives a new sample after `step` seconds."""
    return np.asarray(1 / (1 + 1 / (2 * math.pi * cutoff * step)))
