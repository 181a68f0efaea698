"""Taking a person out of a picture, so that an estimator sees who stands behind.

An estimator that is shown two people in one crop answers with the one who can be seen best. Where that one is known
already, their body is covered with a blur of what is around it, and the answer is the other.
"""

from dataclasses import dataclass

import cv2
import numpy as np

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
    many pixels of the picture it has one.
    """

    image: U8
    corner: F32
    step: int

    def inside(self, regions: Regions) -> Regions:
        """Regions of the picture, in the pixels of the part."""
        step = np.float32(self.step)
        return Regions((regions.centers - self.corner) / step, regions.sizes / step, regions.angles)

    def outside(self, keypoints: Keypoints2D) -> Keypoints2D:
        """Keypoints found in the part, in the pixels of the picture."""
        step, regions = np.float32(self.step), keypoints.next_regions
        following = Regions(regions.centers * step + self.corner, regions.sizes * step, regions.angles)
        return Keypoints2D(keypoints.xy * step + self.corner, keypoints.scores, keypoints.presence, following)


class Hiding:
    """Covers people of one skeleton."""

    def __init__(self, skeleton: Skeleton) -> None:
        names = skeleton.names
        self._trunk = [names.index(f"{side}_{part}") for part in ("shoulder", "hip") for side in ("left", "right")]
        self._face = [j for j, name in enumerate(names) if {"nose", "eye", "ear", "head"} & set(name.split("_"))]
        limbs = [j for j, name in enumerate(names) if LIMBS & set(name.split("_"))]
        self._limbs = [(a, b) for a, b in skeleton.edges if a in limbs and b in limbs]

    def trunk(self, poses: F32) -> F32:
        """(..., 2, 2) px: the middle of the shoulders and of the hips of poses (..., J, 2)."""
        joints = poses[..., self._trunk, :]
        return np.stack([joints[..., :2, :].mean(axis=-2), joints[..., 2:, :].mean(axis=-2)], axis=-2)

    def without(self, image: U8, region: Regions, poses: list[F32]) -> Part:
        """The part of the picture (h, w, 3) that holds `region` (one row) without the people of `poses` (J, 2) px."""
        reach = float(np.abs([np.cos(region.angles[0]), np.sin(region.angles[0])]).sum()) * region.sizes[0] / 2
        limit = np.array(image.shape[1::-1])
        low = np.clip(np.floor(region.centers[0] - reach), 0, limit - 1).astype(int)
        high = np.clip(np.ceil(region.centers[0] + reach), low + 1, limit).astype(int)
        step = max(1, int(2 * reach.max()) // FINEST)
        size = np.maximum((high - low) // step, 1)
        high = np.minimum(low + size * step, limit)
        around = image[low[1] : high[1], low[0] : high[0]]
        if step == 1:
            part = around.copy()
        else:
            part = np.asarray(cv2.resize(around, size.tolist(), interpolation=cv2.INTER_NEAREST), np.uint8)
        mask = np.zeros(part.shape[:2], np.uint8)
        for pose in poses:
            self._cover(mask, (pose - low) / step)
        size = part.shape[1::-1]
        cells = [max(1, side * step // BLUR) for side in size]  # of all that is there: the body alone would stay a body
        sampled = cv2.resize(part, [GRAIN * count for count in cells], interpolation=cv2.INTER_NEAREST)
        blurred = cv2.resize(sampled, cells, interpolation=cv2.INTER_AREA)
        cv2.copyTo(cv2.resize(blurred, size, interpolation=cv2.INTER_LINEAR), mask, part)
        return Part(part, low.astype(np.float32), step)

    def _cover(self, mask: U8, pose: F32) -> None:
        """Paint the body of (J, 2) px into a mask (h, w)."""
        top, bottom = self.trunk(pose)
        length = float(np.hypot(*(top - bottom)))
        width = max(2, round(THICKNESS * length))
        points = np.rint(np.clip(pose, -10000, 10000)).astype(np.int32)
        for a, b in self._limbs:
            cv2.line(mask, points[a].tolist(), points[b].tolist(), 255, width)
        left_top, right_top, left_bottom, right_bottom = points[self._trunk]
        cv2.line(mask, left_top.tolist(), right_bottom.tolist(), 255, width)
        cv2.line(mask, right_top.tolist(), left_bottom.tolist(), 255, width)
        cv2.fillConvexPoly(mask, cv2.convexHull(points[self._trunk]), 255)
        if self._face:
            cv2.circle(mask, points[self._face].mean(axis=0).astype(int).tolist(), round(HEAD * length), 255, -1)
