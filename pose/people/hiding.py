"""Taking a person out of a picture, so that an estimator sees who stands behind.

An estimator that is shown two people in one crop answers with the one who can be seen best. Where that one is known
already, their body is covered with a blur of what is around it, and the answer is the other.
"""

from dataclasses import dataclass
from math import hypot

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.skeletons import Skeleton
from pose.types import F32, U8, Keypoints2D, Regions

LIMBS = {"shoulder", "elbow", "wrist", "hip", "knee", "ankle"}
THICKNESS = 0.35  # of the trunk's length: how wide limbs are painted
HEAD = 0.35  # of the trunk's length: the head's radius
BLUR = 64  # px that become one
FINEST = 384  # px along a side; larger parts are thinned out, since estimators look at 256 or fewer
GRAIN = 16  # pixels across that stand for them


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a picture. image: (h, w, 3). corner: (2,) px of the picture where its first pixel lies. step: every so
    many pixels of the picture it has one. covered: (h, w) not 0 where somebody was taken out.
    """

    image: U8
    corner: F32
    step: int
    covered: U8

    def shows(self, points: F32) -> NDArray[np.bool_]:
        """(N,) which points (N, 2) px of the picture lie inside the part and not on what is covered."""
        x, y = np.rint((points - self.corner) / self.step).astype(int).T
        height, width = self.covered.shape
        inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
        return inside & (self.covered[y.clip(0, height - 1), x.clip(0, width - 1)] == 0)

    def inside(self, regions: Regions) -> Regions:
        """Regions of the picture, in the pixels of the part."""
        step = np.float32(self.step)
        return Regions((regions.centers - self.corner) / step, regions.sizes / step, regions.angles)

    def outside(self, keypoints: Keypoints2D) -> Keypoints2D:
        """Keypoints found in the part, in the pixels of the picture."""
        following = self.regions_outside(keypoints.next_regions)
        xy = keypoints.xy * np.float32(self.step) + self.corner
        return Keypoints2D(xy, keypoints.scores, keypoints.presence, following)

    def regions_outside(self, regions: Regions) -> Regions:
        """Regions of the part, in the pixels of the picture."""
        step = np.float32(self.step)
        return Regions(regions.centers * step + self.corner, regions.sizes * step, regions.angles)


class Hiding:
    """Covers people of one skeleton."""

    def __init__(self, skeleton: Skeleton) -> None:
        names = skeleton.names
        self._trunk = [names.index(f"{side}_{part}") for part in ("shoulder", "hip") for side in ("left", "right")]
        self._face = [j for j, name in enumerate(names) if {"nose", "eye", "ear", "head"} & set(name.split("_"))]
        self.limbs = [j for j, name in enumerate(names) if LIMBS & set(name.split("_"))]
        self._bones = [(a, b) for a, b in skeleton.edges if a in self.limbs and b in self.limbs]

    def without(self, image: U8, region: Regions, poses: list[F32]) -> Part:
        """The part of the picture (h, w, 3) that holds `region` (one row) without the people of `poses` (J, 2) px."""
        turned = abs(np.cos(region.angles[0])) + abs(np.sin(region.angles[0]))
        reach = float(turned) * region.sizes[0] / 2
        low, high = np.floor(region.centers[0] - reach), np.ceil(region.centers[0] + reach)
        step = max(1, int(2 * reach.max()) // FINEST)
        (left, columns), (top, rows) = map(_span, low.tolist(), high.tolist(), image.shape[1::-1], (step, step))
        around = image[top : top + rows * step, left : left + columns * step]
        if step == 1:
            part = around.copy()
        else:
            part = np.asarray(cv2.resize(around, (columns, rows), interpolation=cv2.INTER_NEAREST), np.uint8)
        mask = np.zeros(part.shape[:2], np.uint8)
        for pose in poses:
            self._cover(mask, (pose - np.array([left, top])) / step)
        # Blurred is all that is there: the body alone would stay a body.
        cells = [max(1, side * step // BLUR) for side in (columns, rows)]
        sampled = cv2.resize(part, [GRAIN * count for count in cells], interpolation=cv2.INTER_NEAREST)
        blurred = cv2.resize(sampled, cells, interpolation=cv2.INTER_AREA)
        cv2.copyTo(cv2.resize(blurred, (columns, rows), interpolation=cv2.INTER_LINEAR), mask, part)
        return Part(part, np.array([left, top], np.float32), step, mask)

    def _cover(self, mask: U8, pose: F32) -> None:
        """Paint the body of (J, 2) px into a mask (h, w)."""
        (left_x, left_y), (right_x, right_y), *hips = pose[self._trunk].tolist()
        down = (left_x + right_x - hips[0][0] - hips[1][0]) / 2, (left_y + right_y - hips[0][1] - hips[1][1]) / 2
        length = hypot(*down)
        width = max(2, round(THICKNESS * length))
        points = np.rint(pose.clip(-10000, 10000)).astype(np.int32)
        at = points.tolist()
        for a, b in self._bones:
            cv2.line(mask, at[a], at[b], 255, width)
        left_top, right_top, left_bottom, right_bottom = self._trunk
        cv2.line(mask, at[left_top], at[right_bottom], 255, width)
        cv2.line(mask, at[right_top], at[left_bottom], 255, width)
        cv2.fillConvexPoly(mask, cv2.convexHull(points[self._trunk]), 255)
        if self._face:
            middle = [int(sum(at[joint][axis] for joint in self._face) / len(self._face)) for axis in (0, 1)]
            cv2.circle(mask, middle, round(HEAD * length), 255, -1)


def _span(low: float, high: float, limit: int, step: int) -> tuple[int, int]:
    """The first pixel inside the picture, and how many cells of `step` pixels there are until `high`, at least one."""
    first = int(min(max(low, 0), limit - 1))
    last = int(min(max(high, first + 1), limit))
    return first, max((last - first) // step, 1)
