"""Several 2D networks on the same people: the robust mean of their joints.

Networks that were trained on different images make different errors, which last for about a second, so that more frames
of one network do not reduce them. Joints are matched by name. Their mean is weighted by score and by agreement: where
two networks disagree by much, the more certain one counts. Disagreement lowers the score of a joint, with which the
repair, the lifter, the fit and several cameras weight it.
"""

from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np

from pose.networks import crops
from pose.structures.skeletons import Skeleton
from pose.structures.stages import Estimator
from pose.structures.types import F32, U8, Boxes, Keypoints2D, Regions

# Boxes around joints are smaller than those of detectors, for which the regions of the networks are defined.
BOX_SCALE = 1.08
AGREEMENT = 0.03  # distance of two networks, relative to the person's height, at which they start to disagree
HALF_SCORE = 0.08  # distance, relative to the person's height, that halves the score of a joint
# Median distance of the joints, relative to the person's height, above which a network shows another person.
MAX_STRAY = 0.15
ITERATIONS = 5  # of the robust mean
MIN_WEIGHT = 1e-3


class Ensemble:
    """Estimator that runs several; the first one determines skeleton, presence and regions."""

    def __init__(self, estimators: Sequence[Estimator], *, mirror: bool = False) -> None:
        """Combine estimators; with `mirror`, each also processes the mirrored crop."""
        self._first, *others = estimators
        self._mirror = mirror
        self.skeleton: Skeleton = self._first.skeleton
        self._further = FurtherNetworks(self.skeleton, others, mirror=mirror)
        self.name = "+".join(estimator.name for estimator in estimators)

    def regions(self, boxes: Boxes) -> Regions:
        """Return the regions of the first estimator."""
        return self._first.regions(boxes)

    def estimate(self, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
        """Estimate joints in every region of every image with all networks, and combine them."""
        first = self._first.estimate(images, regions)
        mirrored = _mirrored(self._first, images, regions) if self._mirror else first
        combined = []
        for image, keypoints, other in zip(images, first, mirrored, strict=True):
            opinions = self._further.opinions(image, keypoints.xy, keypoints.scores)
            if self._mirror:
                opinions.insert(0, (self.skeleton, other))
            combined.append(combine(self.skeleton, keypoints, opinions))
        return combined


class FurtherNetworks:
    """Estimators beside a first one, whose joints they improve."""

    def __init__(self, skeleton: Skeleton, estimators: Sequence[Estimator], *, mirror: bool = False) -> None:
        """Take the skeleton of the first estimator, and further ones."""
        self._skeleton, self._estimators, self._mirror = skeleton, estimators, mirror

    def opinions(self, image: U8, xy: F32, scores: F32) -> list[tuple[Skeleton, Keypoints2D]]:
        """Return the keypoints of the further estimators for the people with joints (P, J, 2) px."""
        found: list[tuple[Skeleton, Keypoints2D]] = []
        boxes = _boxes_around(xy, scores)
        for estimator in self._estimators:
            regions = [estimator.regions(boxes)]
            found.append((estimator.skeleton, estimator.estimate([image], regions)[0]))
            if self._mirror:
                found.append((estimator.skeleton, _mirrored(estimator, [image], regions)[0]))
        return found

    def improved(self, image: U8, xy: F32, scores: F32) -> Keypoints2D:
        """Return the keypoints of all estimators together for joints (P, J, 2) px of the first one and its scores."""
        box = _boxes_around(xy, scores)
        regions = crops.square_regions(box.xyxy, 1)
        first = Keypoints2D(xy, scores, box.scores, regions)
        return combine(self._skeleton, first, self.opinions(image, xy, scores))


def combine(skeleton: Skeleton, first: Keypoints2D, others: Sequence[tuple[Skeleton, Keypoints2D]]) -> Keypoints2D:
    """Return the robust mean of the keypoints of a skeleton, and those of other skeletons for the same people."""
    xy, scores = [first.xy], [first.scores]
    for other, found in others:
        rows = [other.names.index(name) if name in other.names else -1 for name in skeleton.names]
        known = np.array(rows) >= 0
        xy.append(np.where(known[:, None], found.xy[:, rows], first.xy))
        scores.append(np.where(known, found.scores[:, rows], 0).astype(np.float32))
    boxes = crops.bounds(first.xy, first.scores > 0)
    heights = np.maximum((boxes[:, 2:] - boxes[:, :2]).max(axis=1), 1.0)[:, None]
    for place in range(1, len(xy)):
        both = (scores[0] > 0) & (scores[place] > 0)
        away = np.where(both, np.linalg.norm(xy[place] - xy[0], axis=-1) / heights, np.nan)
        for row in np.flatnonzero(both.any(axis=1)):
            if np.nanmedian(away[row]) > MAX_STRAY:
                scores[place][row] = 0
    mean, distance = robust_mean(np.stack(xy), np.stack(scores), heights)
    agreement = 1 / (1 + (distance / (HALF_SCORE * heights)) ** 2)
    certain = np.where(first.scores > 0, first.scores, np.max(scores, axis=0)) * agreement
    return replace(first, xy=mean, scores=certain.astype(np.float32), distance=np.hypot(first.distance, distance))


def robust_mean(xy: F32, scores: F32, heights: F32) -> tuple[F32, F32]:
    """Return the mean (P, J, 2) of K opinions (K, P, J, 2), and their root mean square distance from it (P, J), px."""
    weights = np.maximum(scores, np.where(scores > 0, MIN_WEIGHT, 0))
    none = ~(weights > 0).any(axis=0)
    weights[0][none] = 1  # keypoints that no network sees are those of the first network
    certain, mean = weights, xy[0]
    for _ in range(ITERATIONS):
        mean = (weights[..., None] * xy).sum(axis=0) / weights.sum(axis=0)[..., None]
        away = np.linalg.norm(xy - mean, axis=-1) / (AGREEMENT * heights)
        weights = certain / (1 + away**2)
    away = np.linalg.norm(xy - mean, axis=-1)
    spread = np.sqrt((certain * away**2).sum(axis=0) / certain.sum(axis=0))
    return mean.astype(np.float32), spread.astype(np.float32)


def _boxes_around(xy: F32, scores: F32) -> Boxes:
    boxes = crops.bounds(xy, scores > 0)
    middle, half = (boxes[:, :2] + boxes[:, 2:]) / 2, (boxes[:, 2:] - boxes[:, :2]) * np.float32(BOX_SCALE / 2)
    return Boxes(np.concatenate([middle - half, middle + half], axis=1), np.ones(len(xy), np.float32))


def _mirrored(estimator: Estimator, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
    """Return the keypoints that an estimator finds in mirrored crops, in px of the images."""
    flipped = [np.asarray(cv2.flip(image, 1), np.uint8) for image in images]
    turned = [_mirror_regions(rows, image) for rows, image in zip(regions, images, strict=True)]
    order = list(estimator.skeleton.flip_order)
    found = []
    for keypoints, image in zip(estimator.estimate(flipped, turned), images, strict=True):
        xy = keypoints.xy[:, order] * np.array([-1, 1], np.float32)
        xy[..., 0] += image.shape[1] - 1
        found.append(
            Keypoints2D(
                xy, keypoints.scores[:, order], keypoints.presence, _mirror_regions(keypoints.next_regions, image)
            )
        )
    return found


def _mirror_regions(regions: Regions, image: U8) -> Regions:
    centers = regions.centers * np.array([-1, 1], np.float32)
    centers[:, 0] += image.shape[1] - 1
    return Regions(centers, regions.sizes, -regions.angles)
