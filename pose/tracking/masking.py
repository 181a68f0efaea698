"""Masking of known people in a crop, so that the estimator finds the person behind them.

An estimator returns the pose of the more visible of two people in a crop. If this person is known already, their body
is replaced by a blur of the surroundings, so that the estimator returns the pose of the other person.
"""

from dataclasses import dataclass, replace
from math import hypot

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, U8, Keypoints2D, Regions

LIMB_JOINTS = {"shoulder", "elbow", "wrist", "hip", "knee", "ankle"}
LIMB_WIDTH = 0.35  # fraction of the trunk's length
HEAD_RADIUS = 0.35  # fraction of the trunk's length
BLUR_CELL_PX = 64
MAX_CROP_PX = 384  # larger crops are subsampled, because the input of estimators has 256 px or fewer
SAMPLES_PER_CELL = 16  # pixels along one side of a blur cell


@dataclass(frozen=True, slots=True)
class MaskedCrop:
    """Part of an image with some people masked."""

    image: U8  # (h, w, 3) uint8 RGB
    corner: F32  # (2,) px, position of the crop's first pixel in the image
    step: int  # subsampling factor in both directions; 1 for a crop at full resolution
    mask: U8  # (h, w) uint8, nonzero where a person was masked

    def is_visible(self, points: F32) -> NDArray[np.bool_]:
        """Return whether points (N, 2) px of the image lie in the crop and outside the mask, (N,) bool."""
        x, y = np.rint((points - self.corner) / self.step).astype(int).T
        height, width = self.mask.shape
        inside = (x >= 0) & (y >= 0) & (x < width) & (y < height)
        result: NDArray[np.bool_] = inside & (self.mask[y.clip(0, height - 1), x.clip(0, width - 1)] == 0)
        return result

    def regions_to_crop(self, regions: Regions) -> Regions:
        """Convert regions from pixels of the image to pixels of the crop."""
        step = np.float32(self.step)
        return Regions((regions.centers - self.corner) / step, regions.sizes / step, regions.angles)

    def keypoints_to_image(self, keypoints: Keypoints2D) -> Keypoints2D:
        """Convert keypoints and their next regions from pixels of the crop to pixels of the image."""
        next_regions = self.regions_to_image(keypoints.next_regions)
        xy = keypoints.xy * np.float32(self.step) + self.corner
        distance = keypoints.distance * np.float32(self.step)
        return replace(keypoints, xy=xy, next_regions=next_regions, distance=distance)

    def regions_to_image(self, regions: Regions) -> Regions:
        """Convert regions from pixels of the crop to pixels of the image."""
        step = np.float32(self.step)
        return Regions(regions.centers * step + self.corner, regions.sizes * step, regions.angles)


class PersonMasker:
    """Masker of people in images, for poses of one skeleton."""

    def __init__(self, skeleton: Skeleton) -> None:
        names = skeleton.names
        self._trunk = [names.index(f"{side}_{part}") for part in ("shoulder", "hip") for side in ("left", "right")]
        self._face = [j for j, name in enumerate(names) if {"nose", "eye", "ear", "head"} & set(name.split("_"))]
        self.limbs = [j for j, name in enumerate(names) if LIMB_JOINTS & set(name.split("_"))]
        self._bones = [(a, b) for a, b in skeleton.edges if a in self.limbs and b in self.limbs]

    def mask(self, image: U8, region: Regions, poses: list[F32]) -> MaskedCrop:
        """Return the crop of an image around a region of length 1, with people of poses (J, 2) px masked."""
        turned = abs(np.cos(region.angles[0])) + abs(np.sin(region.angles[0]))
        reach = float(turned) * region.sizes[0] / 2
        low, high = np.floor(region.centers[0] - reach), np.ceil(region.centers[0] + reach)
        step = max(1, int(2 * reach.max()) // MAX_CROP_PX)
        (left, columns), (top, rows) = map(_span, low.tolist(), high.tolist(), image.shape[1::-1], (step, step))
        around = image[top : top + rows * step, left : left + columns * step]
        if step == 1:
            crop = around.copy()
        else:
            crop = np.asarray(cv2.resize(around, (columns, rows), interpolation=cv2.INTER_NEAREST), np.uint8)
        mask = np.zeros(crop.shape[:2], np.uint8)
        for pose in poses:
            self._paint_body(mask, (pose - np.array([left, top])) / step)
        # Blur the whole crop, because a blur of the body alone would still look like a body.
        cells = [max(1, side * step // BLUR_CELL_PX) for side in (columns, rows)]
        samples = cv2.resize(crop, [SAMPLES_PER_CELL * count for count in cells], interpolation=cv2.INTER_NEAREST)
        blurred = cv2.resize(samples, cells, interpolation=cv2.INTER_AREA)
        cv2.copyTo(cv2.resize(blurred, (columns, rows), interpolation=cv2.INTER_LINEAR), mask, crop)
        return MaskedCrop(crop, np.array([left, top], np.float32), step, mask)

    def _paint_body(self, mask: U8, pose: F32) -> None:
        """Paint the body of a pose (J, 2), px of the crop, into a mask (h, w)."""
        (left_x, left_y), (right_x, right_y), *hips = pose[self._trunk].tolist()
        down = (left_x + right_x - hips[0][0] - hips[1][0]) / 2, (left_y + right_y - hips[0][1] - hips[1][1]) / 2
        length = hypot(*down)
        width = max(2, round(LIMB_WIDTH * length))
        points = np.rint(pose.clip(-10000, 10000)).astype(np.int32)
        at = points.tolist()
        for a, b in self._bones:
            cv2.line(mask, at[a], at[b], 255, width)
        left_top, right_top, left_bottom, right_bottom = self._trunk
        cv2.line(mask, at[left_top], at[right_bottom], 255, width)
        cv2.line(mask, at[right_top], at[left_bottom], 255, width)
        cv2.fillConvexPoly(mask, cv2.convexHull(points[self._trunk]), 255)
        if self._face:
            centre = [int(sum(at[joint][axis] for joint in self._face) / len(self._face)) for axis in (0, 1)]
            cv2.circle(mask, centre, round(HEAD_RADIUS * length), 255, -1)


def _span(low: float, high: float, limit: int, step: int) -> tuple[int, int]:
    """Limit an interval of px to the image; return the first px, and the number after subsampling, at least 1."""
    first = int(min(max(low, 0), limit - 1))
    last = int(min(max(high, first + 1), limit))
    return first, max((last - first) // step, 1)
