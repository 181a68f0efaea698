"""Keypoints with left and right as in the lifted 3D pose, for display beside it."""

import functools

import numpy as np
from numpy.typing import NDArray

from pose.lifting.repair.swaps import LIMBS, limb_pairs
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, FrameResult

LIMB_NAMES = tuple(LIMBS)  # the columns of `Poses3D.swapped`


@functools.cache
def mirrored_orders(skeleton: Skeleton) -> NDArray[np.int64]:
    """Return joint indices (2, J): an order of all joints with the legs swapped, and one with the arms swapped."""
    orders = np.tile(np.arange(len(skeleton)), (len(LIMB_NAMES), 1))
    for order, pairs in zip(orders, limb_pairs(skeleton).values(), strict=True):
        order[pairs] = pairs[:, ::-1]
    return orders


def with_lifted_sides(result: FrameResult, skeleton: Skeleton) -> tuple[F32, F32]:
    """Return keypoints (P, J, 2) px and scores of a frame with the left and right sides that the lifter received."""
    keypoints, scores = result.people.keypoints, result.people.scores
    if not result.poses.swapped.any():
        return keypoints, scores
    keypoints, scores = keypoints.copy(), scores.copy()
    for row, limb in np.argwhere(result.poses.swapped):
        order = mirrored_orders(skeleton)[limb]
        keypoints[row], scores[row] = keypoints[row, order], scores[row, order]
    return keypoints, scores
