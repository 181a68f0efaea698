"""A key frame that is followed on after another took its place, to see parallax grow over a wide baseline.

A key frame is replaced early when its points disagree with a rotation, which is just when a longer look tells why.
"""

from dataclasses import replace

import numpy as np

from pose.camera_motion.fit import View
from pose.camera_motion.key_frames import NEAR, REMEMBERED, KeyFrame, Points, Reduced, centre
from pose.camera_motion.parallax import FEWEST, Parallax, parallax
from pose.camera_motion.reduced import track, within

EVERY = 0.4  # s between two tests
_LONGEST = 2.5  # s
_LEAST_SEEN = 0.4  # of its points; with fewer it ends
_SHORTEST = 0.4  # s between the two frames of a test: nobody walks far in less
_LEAST_SHIFT, _FAR = 5.0, 70  # px by which the points have moved, all but the 30 % that moved most


class Witness:
    """Follows the points of one key frame wherever they go."""

    def __init__(self, key: KeyFrame, time: float) -> None:
        """time: s, of the frame in which another key frame took its place."""
        self.key, self._end, self._next, self.over = key, time + _LONGEST, time, False

    def step(self, image: Reduced, view: View) -> Parallax | None:
        """A test of parallax; None where it is too early for one. view: of the frame, compared with the key frame."""
        points = follow(self.key, image, view)
        self.over = points is None or len(points.rows) < _LEAST_SEEN * len(self.key.rays) or image.time > self._end
        if points is None or image.time < self._next:
            return None
        self._next = image.time + EVERY
        return tested(self.key, points, view, image)


def tested(key: KeyFrame, points: Points, view: View, image: Reduced) -> Parallax | None:
    """A test of parallax; None where too few points are found, too early, or near where they were."""
    rows, seen = points.rows, points.seen
    if image.time - key.time > REMEMBERED:
        near = np.linalg.norm(seen - view.project(key.rays[rows], image.focal), axis=1) < NEAR
        rows, seen = rows[near], seen[near]
    if len(rows) < FEWEST or image.time - key.time < _SHORTEST:
        return None
    rays, focal = key.rays[rows], image.focal
    shift = np.linalg.norm(seen - focal * rays[:, :2], axis=1)
    if np.percentile(shift, _FAR) < _LEAST_SHIFT:
        return None
    found = parallax(rays, seen, key.features.axes[rows], view, focal, image.known)
    return replace(found, lens=found.lens / key.place.zoom)


def follow(key: KeyFrame, image: Reduced, view: View) -> Points | None:
    """The features of a key frame that are found again, near where they were last time; None where too few are."""
    middle = centre(image.grey)
    plain = view.project(key.rays, image.focal) + middle
    guess = (plain + key.off).astype(np.float32)
    rows = np.flatnonzero(within(guess, image.mask))
    if len(rows) < FEWEST:
        return None
    there, found = track(key.grey, image.grey, key.features[rows], guess[rows], levels=1)
    found &= within(there, image.mask)
    if found.sum() < FEWEST:
        return None
    rows = rows[found]
    key.off[rows] = there[found] - plain[rows]
    return Points(rows, there[found] - middle)
