"""Tracking of a replaced key frame for some time, to measure parallax over a wider baseline.

A key frame is replaced early if its points contradict a rotation. Longer tracking then shows whether the camera
translates.
"""

from dataclasses import replace

import numpy as np

from pose.world.camera_motion.fit import View
from pose.world.camera_motion.key_frames import (
    LARGE_RESIDUALS_S,
    MAX_RESIDUAL_PX,
    KeyFrame,
    Points,
    ReducedFrame,
    centre,
)
from pose.world.camera_motion.parallax import MIN_POINTS, Parallax, parallax
from pose.world.camera_motion.reduced import burnt_in, track, within

TEST_INTERVAL_S = 0.4  # s between two tests
_MAX_TRACKING_S = 2.5  # s of tracking after the replacement
_MIN_SEEN_SHARE = 0.4  # minimum fraction of the key frame's points; with fewer, tracking ends
_MIN_BASELINE_S = 0.4  # s, minimum time between the two frames of a test
_MIN_SHIFT_PX, _SHIFT_PERCENTILE = 5.0, 70  # px, minimum motion of the points, and percentile at which it is measured


class ReplacedKey:
    """Tracker of the points of a key frame after its replacement."""

    def __init__(self, key: KeyFrame, time: float) -> None:
        """Start at the replacement of a key frame at `time` (s)."""
        self.key, self._end, self._next, self.ended = key, time + _MAX_TRACKING_S, time, False

    def step(self, image: ReducedFrame, view: View) -> Parallax | None:
        """Track the points to the next frame and test for parallax; return None if it is too early."""
        points = track_points(self.key, image, view)
        self.ended = points is None or len(points.rows) < _MIN_SEEN_SHARE * len(self.key.rays) or image.time > self._end
        if points is None or image.time < self._next:
            return None
        self._next = image.time + TEST_INTERVAL_S
        return measure_parallax(self.key, points, view, image)


def measure_parallax(key: KeyFrame, points: Points, view: View, image: ReducedFrame) -> Parallax | None:
    """Test points for parallax; None with too few points, too little time or too small displacements."""
    rows, seen = points.rows, points.seen
    if image.time - key.time > LARGE_RESIDUALS_S:
        near = np.linalg.norm(seen - view.project(key.rays[rows], image.focal), axis=1) < MAX_RESIDUAL_PX
        rows, seen = rows[near], seen[near]
    kept = ~burnt_in(key.rays[rows], seen, view, image.focal)
    rows, seen = rows[kept], seen[kept]
    if len(rows) < MIN_POINTS or image.time - key.time < _MIN_BASELINE_S:
        return None
    rays, focal = key.rays[rows], image.focal
    shift = np.linalg.norm(seen - focal * rays[:, :2], axis=1)
    if np.percentile(shift, _SHIFT_PERCENTILE) < _MIN_SHIFT_PX:
        return None
    found = parallax(rays, seen, key.features.axes[rows], view, focal, image.focal_known)
    return replace(found, focal_ratio=found.focal_ratio / key.view.zoom)


def track_points(key: KeyFrame, image: ReducedFrame, view: View) -> Points | None:
    """Find a key frame's features in a later frame near their last positions; return None if there are too few."""
    middle = centre(image.grey)
    plain = view.project(key.rays, image.focal) + middle
    guess = (plain + key.residuals).astype(np.float32)
    rows = np.flatnonzero(within(guess, image.mask))
    if len(rows) < MIN_POINTS:
        return None
    tracked, is_tracked = track(key.grey, image.grey, key.features[rows], guess[rows], levels=1)
    is_tracked &= within(tracked, image.mask)
    if is_tracked.sum() < MIN_POINTS:
        return None
    rows = rows[is_tracked]
    key.residuals[rows] = tracked[is_tracked] - plain[rows]
    return Points(rows, tracked[is_tracked] - middle)
