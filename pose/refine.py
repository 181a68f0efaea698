"""Refinement of lifted motion, after all frames of a person are known."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.sequences import Sequence3D
from pose.skeletons import H36M17
from pose.types import F32


def constant_bones(sequence: Sequence3D) -> Sequence3D:
    """The same motion of a body whose bones keep their length.

    The length of a bone is the median over all frames and both sides of the body (people are symmetric within the
    lifter's error), each frame weighted by 1 / sigma^2 of its two ends, so that frames in which the lifter was unsure
    say little. The joints are then put together anew from the pelvis outwards, every bone in the direction it had.
    Root, sigma and times stay. A bone of length 0 has no direction and stays so.
    """
    lengths = bone_lengths(sequence)
    joints = np.zeros_like(sequence.joints)
    joints[:, 0] = sequence.joints[:, 0]
    for (parent, child), length in zip(H36M17.edges, lengths, strict=True):  # a parent comes before its children
        bone = sequence.joints[:, child] - sequence.joints[:, parent]
        size = np.linalg.norm(bone, axis=-1, keepdims=True)
        joints[:, child] = joints[:, parent] + bone * (length / np.where(size > 0, size, 1))
    return replace(sequence, joints=joints)


def bone_lengths(sequence: Sequence3D) -> F32:
    """(16,) m, one for each of `H36M17.edges`: what `constant_bones` gives the bones."""
    parents, children = np.array(H36M17.edges).T
    length = np.linalg.norm(sequence.joints[:, children] - sequence.joints[:, parents], axis=-1)
    weight = 1 / (sequence.sigma[:, children] ** 2 + sequence.sigma[:, parents] ** 2)
    flip = np.array(H36M17.flip_order)
    bones = {edge: i for i, edge in enumerate(H36M17.edges)}
    mirrored = [bones[int(flip[a]), int(flip[b])] for a, b in H36M17.edges]
    pairs = [sorted({i, other}) for i, other in enumerate(mirrored)]
    return np.array([_weighted_median(length[:, pair], weight[:, pair]) for pair in pairs], np.float32)


def _weighted_median(values: NDArray[np.floating], weights: NDArray[np.floating]) -> float:
    """The smallest value that, with all below it, holds half of the weight."""
    order = np.argsort(values, axis=None)
    share = np.cumsum(weights.ravel()[order], dtype=np.float64)
    return float(values.ravel()[order[np.searchsorted(share, share[-1] / 2)]])
