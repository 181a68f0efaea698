"""Smoothing of a person's region over time with One-Euro filters, which keep the crop of a resting person still."""

import math

import numpy as np

from pose.structures.types import Regions

Points = tuple[float, ...]  # x, y of the centre and of the upper point, px
MIN_STEP_S = 1e-3
MIN_SIZE_PX = 1e-6


class RegionFilter:
    """Filter for the regions of one person, which smooths the two points that define a region, as MediaPipe does.

    The two points are the region's centre and the point above it on the circle around the body. Each coordinate passes
    a One-Euro filter (Casiez et al., CHI 2012, doi:10.1145/2207676.2208639) with speeds in body sizes per second.
    The constants are those of google-ai-edge/mediapipe, `pose_landmark_filtering.pbtxt`. Without the filter, noise of
    the keypoints moves the crop, which in turn changes the keypoints.
    """

    MIN_CUTOFF_HZ = 0.01  # cutoff frequency at rest
    BETA = 10.0  # increase of the cutoff frequency, Hz per body size per second
    DERIVATIVE_CUTOFF_HZ = 1.0  # cutoff frequency of the speed
    RADIUS = 0.4  # distance of the upper point from the centre, as a fraction of the region's height

    def __init__(self) -> None:
        self._time = -math.inf
        self._raw: Points = (0.0, 0.0, 0.0, 0.0)
        self._smooth: Points = self._raw
        self._speed: Points = self._raw

    def __call__(self, region: Regions, time: float) -> Regions:
        """Return the smoothed region."""
        (x, y), angle, height = region.centers[0].tolist(), float(region.angles[0]), float(region.sizes[0, 1])
        up = math.sin(angle) * height * self.RADIUS, -math.cos(angle) * height * self.RADIUS
        points = x, y, x + up[0], y + up[1]
        if math.isinf(self._time):
            self._smooth = points
        else:
            self._update(points, max(time - self._time, MIN_STEP_S), max(2 * math.hypot(*up), MIN_SIZE_PX))
        self._raw, self._time = points, time
        return self._region(region)

    def _update(self, points: Points, step: float, size: float) -> None:
        """Filter the points of the next frame. Floats are used, because they are faster than a small array."""
        speed_weight = _low_pass_weight(self.DERIVATIVE_CUTOFF_HZ, step)
        speeds, smooth = [], []
        for now, raw, speed, old in zip(points, self._raw, self._speed, self._smooth, strict=True):
            speed += speed_weight * ((now - raw) / (size * step) - speed)
            speeds.append(speed)
            cutoff = self.MIN_CUTOFF_HZ + self.BETA * abs(speed)
            smooth.append(old + _low_pass_weight(cutoff, step) * (now - old))
        self._speed, self._smooth = tuple(speeds), tuple(smooth)

    def _region(self, region: Regions) -> Regions:
        x, y, upper_x, upper_y = self._smooth
        up = upper_x - x, upper_y - y
        height = math.hypot(*up) / self.RADIUS
        width = height * region.sizes[0, 0] / region.sizes[0, 1]
        return Regions(
            np.array([[x, y]], np.float32),
            np.array([[width, height]], np.float32),
            np.array([math.atan2(up[0], -up[1])], np.float32),
        )


def _low_pass_weight(cutoff: float, step: float) -> float:
    """Return the weight of a new sample, after `step` s, in a first-order low-pass filter of `cutoff` Hz."""
    return 1 / (1 + 1 / (2 * math.pi * cutoff * step))
