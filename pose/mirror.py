"""The mirrored picture and the mirrored person: for test-time augmentation, and for training on both."""

from dataclasses import replace

import numpy as np

from pose.skeletons import H36M17, get_skeleton
from pose.types import F32, Sequence2D, Sequence3D

_SIDES = np.array([-1, 1, 1], np.float32)


def mirror_picture(sequence: Sequence2D) -> Sequence2D:
    """The same person in the mirrored picture: left joints become right ones, and the lens mirrors with them."""
    last = sequence.image_size[0] - 1
    order = list(get_skeleton(sequence.skeleton).flip_order)
    lens = sequence.intrinsics
    if lens is not None:
        lens = lens.copy()
        lens[0, 2] = last - lens[0, 2]
    keypoints = sequence.keypoints[:, order] * _SIDES[:2]
    keypoints[..., 0] += last
    return replace(sequence, keypoints=keypoints, scores=sequence.scores[:, order], intrinsics=lens)


def mirror_poses(poses: F32) -> F32:
    """(..., 17, 3) in the camera frame, as the mirrored picture shows them."""
    return poses[..., list(H36M17.flip_order), :] * _SIDES


def mirror_answer(answer: Sequence3D) -> Sequence3D:
    """What a lifter says of a mirrored picture, for the picture as it was; and the other way round."""
    sigma = answer.sigma[:, list(H36M17.flip_order)]
    return Sequence3D(mirror_poses(answer.joints), answer.root * _SIDES, sigma, answer.times)
