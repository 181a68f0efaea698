"""Refinement of a person's lifted motion over all frames: constant bone lengths, and legs that can be straight.

A lifter bends limbs whose depth is uncertain, which cannot be detected in a single frame. In a whole clip, frames whose
image shows a straight leg determine the length of the leg.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pose.structures.sequences import Sequence2D, Sequence3D
from pose.structures.skeletons import H36M17, get_skeleton, to_h36m17
from pose.structures.two_bones import place_middle, reach
from pose.structures.types import F32

Joints = TypeVar("Joints", bound=NDArray[np.floating])

_LEGS = ((1, 2, 3), (4, 5, 6))  # hip, knee, ankle of H36M17
_MAX_FLEXION_2D = 8.0  # degrees in the image; below it a leg counts as straight
_MIN_LEG_SCORE = 0.5  # minimum score of hip, knee and ankle of a straight leg
_MIN_STRAIGHT_LEGS = 20  # minimum number of straight legs, both sides together
# The percentile of the hip-ankle distances of straight legs, and the flexion in degrees that it corresponds to.
_REACH_PERCENTILE, _FLEXION = 90, 3.0
_MIN_LEG_FACTOR = 0.97


def _chains() -> NDArray[np.float64]:
    """Return a (17, 16) matrix with 1 where a bone is part of the chain from the pelvis to a joint, else 0."""
    chains = np.zeros((len(H36M17), len(H36M17.edges)))
    for bone, (parent, child) in enumerate(H36M17.edges):  # parents precede their children
        chains[child] = chains[parent]
        chains[child, bone] = 1
    return chains


_PARENTS, _CHILDREN = np.array(H36M17.edges).T
_CHAINS = _chains()


@dataclass(frozen=True, slots=True)
class BodyDimensions:
    """Constant dimensions of a person's body."""

    bones: F32  # (16,) m, length of each bone in the order of `H36M17.edges`
    # Factor (at most 1) on the lengths of thigh and shank, with which legs that are straight in the image are also
    # straight in 3D.
    legs: float = 1.0


def refine(lifted: Sequence3D, observed: Sequence2D) -> Sequence3D:
    """Give the motion of one person constant bone lengths."""
    return with_body_lengths(lifted, estimate_body(lifted, observed))


def estimate_body(lifted: Sequence3D, observed: Sequence2D) -> BodyDimensions:
    """Estimate the body of one person from some or all frames, and the 2D from which these were lifted.

    A lifter that bends a straight leg moves its knee towards or away from the camera, which makes thigh and shank too
    long. If the image shows enough straight legs, `BodyDimensions.legs` shortens both, so that the most extended of
    these legs are straight in 3D. Otherwise the factor is 1.
    """
    bones = bone_lengths(lifted)
    joints = constant_bones(lifted).joints
    pixels, scores = to_h36m17(observed.keypoints, observed.scores, get_skeleton(observed.skeleton))
    straight = []
    for leg in _LEGS:
        upper, lower = (np.diff(pixels[:, leg], axis=1)[:, i] for i in (0, 1))
        crossed = upper[:, 0] * lower[:, 1] - upper[:, 1] * lower[:, 0]
        bent = np.degrees(np.arctan2(np.abs(crossed), (upper * lower).sum(axis=-1)))
        near, far = (float(np.linalg.norm(joints[0, b] - joints[0, a])) for a, b in pairwise(leg))
        hip_ankle_m = np.linalg.norm(joints[:, leg[2]] - joints[:, leg[0]], axis=-1)
        straight.append(
            (hip_ankle_m / reach(near, far, _FLEXION))[
                (bent < _MAX_FLEXION_2D) & (scores[:, leg].min(axis=1) > _MIN_LEG_SCORE)
            ]
        )
    ratios = np.concatenate(straight)
    factor = (
        float(np.clip(np.percentile(ratios, _REACH_PERCENTILE), _MIN_LEG_FACTOR, 1))
        if len(ratios) >= _MIN_STRAIGHT_LEGS
        else 1.0
    )
    return BodyDimensions(bones, factor)


def with_body_lengths(lifted: Sequence3D, body: BodyDimensions) -> Sequence3D:
    """Return the motion with the bone lengths of a body.

    Bone directions are kept. If `body.legs` is below 1, thigh and shank are then scaled by this factor, by moving the
    knees. The hips stay in place, and so do the ankles if the shortened legs can reach them.
    """
    joints = assembled(lifted.joints, body.bones)
    if body.legs < 1:
        exact = joints.astype(np.float64)
        for leg in _LEGS:
            near, far = (body.legs * float(body.bones[H36M17.edges.index(edge)]) for edge in pairwise(leg))
            place_middle(exact, leg, (near, far))
        joints = exact.astype(np.float32)
    return replace(lifted, joints=joints)


def constant_bones(sequence: Sequence3D) -> Sequence3D:
    """Give all frames the same bone lengths.

    The length of a bone is a weighted median over all frames and both sides of the body, since people are symmetric
    within the error of the lifter. The weight of a frame is 1 / (sigma_1^2 + sigma_2^2), with the sigmas of the bone's
    two ends. The joints are then reassembled from the pelvis outwards with the original bone directions. Root, sigma
    and times are unchanged. A bone of length 0 has no direction and is unchanged.
    """
    return replace(sequence, joints=assembled(sequence.joints, bone_lengths(sequence)))


def assembled(directed: Joints, lengths: NDArray[np.floating]) -> Joints:
    """Return joints (T, 17, 3) m with the bone directions of `directed` and lengths (16,) or (T, 16) m."""
    bones = directed[:, _CHILDREN] - directed[:, _PARENTS]
    size = np.sqrt((bones * bones).sum(axis=-1))
    bones *= (lengths / np.maximum(size, 1e-12))[..., None]
    result: Joints = directed[:, :1] + _CHAINS.astype(directed.dtype, copy=False) @ bones
    return result


def bone_lengths(sequence: Sequence3D) -> F32:
    """Return the constant bone lengths (16,) m of a person, in the order of `H36M17.edges` (see `constant_bones`)."""
    return lengths_of(sequence.joints, sequence.sigma)


def lengths_of(joints: NDArray[np.floating], sigma: NDArray[np.floating]) -> F32:
    """Return the constant bone lengths (16,) m like `bone_lengths`, from joints (T, 17, 3) m and sigma in mm."""
    flip = np.array(H36M17.flip_order)
    bones = {edge: i for i, edge in enumerate(H36M17.edges)}
    mirrored = [bones[int(flip[a]), int(flip[b])] for a, b in H36M17.edges]
    pairs = [sorted({i, other}) for i, other in enumerate(mirrored)]
    medians = {tuple(pair): _median_length(joints, sigma, pair) for pair in pairs}
    return np.array([medians[tuple(pair)] for pair in pairs], np.float32)


def _median_length(joints: NDArray[np.floating], sigma: NDArray[np.floating], bones: list[int]) -> float:
    """Return the weighted median length of a bone, or of a pair of bones; arguments as of `lengths_of`."""
    parents, children = np.array(H36M17.edges)[bones].T
    length = np.linalg.norm(joints[:, children] - joints[:, parents], axis=-1)
    return _weighted_median(length, 1 / (sigma[:, children] ** 2 + sigma[:, parents] ** 2))


def _weighted_median(values: NDArray[np.floating], weights: NDArray[np.floating]) -> float:
    """Return the smallest value at which the cumulative weight reaches half of the total."""
    order = np.argsort(values, axis=None)
    share = np.cumsum(weights.ravel()[order], dtype=np.float64)
    return float(values.ravel()[order[np.searchsorted(share, share[-1] / 2)]])
