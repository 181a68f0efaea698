"""A person's region over time: the One-Euro filter that keeps a crop still while its person is still."""

import math

import numpy as np

from pose.types import Regions

Points = tuple[float, ...]  # x, y of the centre and of the upper point, px


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
        self._raw: Points = (0.0, 0.0, 0.0, 0.0)
        self._smooth: Points = self._raw
        self._speed: Points = self._raw

    def __call__(self, region: Regions, time: float) -> Regions:
        """The smoothed region. region: one row. time: s, increasing from call to call."""
        (x, y), angle, height = region.centers[0].tolist(), float(region.angles[0]), float(region.sizes[0, 1])
        up = math.sin(angle) * height * self.REACH, -math.cos(angle) * height * self.REACH
        points = x, y, x + up[0], y + up[1]
        if math.isinf(self._time):
            self._smooth = points
        else:
            self._follow(points, max(time - self._time, 1e-3), max(2 * math.hypot(*up), 1e-6))
        self._raw, self._time = points, time
        return self._region(region)

    def _follow(self, points: Points, step: float, size: float) -> None:
        """Take in the next points. Four numbers are quicker one by one than as an array."""
        steady = _weight(self.DERIVATIVE_CUTOFF, step)
        speeds, smooth = [], []
        for now, raw, speed, old in zip(points, self._raw, self._speed, self._smooth, strict=True):
            speed += steady * ((now - raw) / (size * step) - speed)
            speeds.append(speed)
            smooth.append(old + _weight(self.MIN_CUTOFF + self.BETA * abs(speed), step) * (now - old))
        self._speed, self._smooth = tuple(speeds), tuple(smooth)

    def _region(self, region: Regions) -> Regions:
        x, y, upper_x, upper_y = self._smooth
        up = upper_x - x, upper_y - y
        height = math.hypot(*up) / self.REACH
        width = height * region.sizes[0, 0] / region.sizes[0, 1]
        return Regions(
            np.array([[x, y]], np.float32),
            np.array([[width, height]], np.float32),
            np.array([math.atan2(up[0], -up[1])], np.float32),
        )


def _weight(cutoff: float, step: float) -> float:
    """What a first-order low pass of `cutoff` Hz gives a new sample after `step` seconds."""
    return 1 / (1 + 1 / (2 * math.pi * cutoff * step))
