"""Refinement of lifted motion, after the frames of a person are known: one body for all of them.

What is uncertain in depth comes out bent, and every frame by itself cannot know better. A whole clip can: where the
picture shows a leg straight, it is as long as it will ever be.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pose.sequences import Sequence2D, Sequence3D
from pose.skeletons import H36M17, get_skeleton, to_h36m17
from pose.two_bones import place_middle, reach
from pose.types import F32

Joints = TypeVar("Joints", bound=NDArray[np.floating])

_LEGS = ((1, 2, 3), (4, 5, 6))  # hip, knee, ankle of H36M17
_IN_LINE = 8.0  # degrees of flexion in the picture below which a leg is taken for straight
_SURE = 0.5  # least score of hip, knee and ankle for that
_ENOUGH = 20  # legs of that kind, of both sides together
_STRAIGHTEST, _FLEXION = 90, 3.0  # of those, this percentile of their reach stands for so many degrees
_LEAST = 0.97  # legs do not get shorter than by this


def _chains() -> NDArray[np.float64]:
    """(17, 16) 1 where a bone is between the pelvis and a joint."""
    chains = np.zeros((len(H36M17), len(H36M17.edges)))
    for bone, (parent, child) in enumerate(H36M17.edges):  # a parent comes before its children
        chains[child] = chains[parent]
        chains[child, bone] = 1
    return chains


_PARENTS, _CHILDREN = np.array(H36M17.edges).T
_CHAINS = _chains()


@dataclass(frozen=True, slots=True)
class Body:
    """What a person keeps. bones: (16,) m, one length for each of `H36M17.edges`. legs: factor (at most 1) of thigh and
    shank that lets legs be straight where the picture says so."""

    bones: F32
    legs: float = 1.0


def refine(lifted: Sequence3D, seen: Sequence2D) -> Sequence3D:
    """The motion of one person on one body (`body_of`, `on_body`). seen: the 2D that was lifted, frame by frame."""
    return on_body(lifted, body_of(lifted, seen))


def body_of(lifted: Sequence3D, seen: Sequence2D) -> Body:
    """The body of one person, from some of its frames.

    The legs' factor is 1 unless enough legs are straight in the picture: then thigh and shank become so much shorter
    that the longest of them are straight in 3D as well. Hips and ankles stay, knees come in: a lifter that bends a
    straight leg puts its knee too near or too far, and thereby makes its bones too long.
    """
    bones = bone_lengths(lifted)
    joints = constant_bones(lifted).joints
    pixels, scores = to_h36m17(seen.keypoints, seen.scores, get_skeleton(seen.skeleton))
    straight = []
    for leg in _LEGS:
        upper, lower = (np.diff(pixels[:, leg], axis=1)[:, i] for i in (0, 1))
        crossed = upper[:, 0] * lower[:, 1] - upper[:, 1] * lower[:, 0]
        bent = np.degrees(np.arctan2(np.abs(crossed), (upper * lower).sum(axis=-1)))
        near, far = (float(np.linalg.norm(joints[0, b] - joints[0, a])) for a, b in pairwise(leg))
        apart = np.linalg.norm(joints[:, leg[2]] - joints[:, leg[0]], axis=-1)
        straight.append((apart / reach(near, far, _FLEXION))[(bent < _IN_LINE) & (scores[:, leg].min(axis=1) > _SURE)])
    found = np.concatenate(straight)
    factor = float(np.clip(np.percentile(found, _STRAIGHTEST), _LEAST, 1)) if len(found) >= _ENOUGH else 1.0
    return Body(bones, factor)


def on_body(lifted: Sequence3D, body: Body) -> Sequence3D:
    """The same motion, every bone in the direction it had, of its length in `body`; legs as `body.legs` says."""
    joints = assembled(lifted.joints, body.bones)
    if body.legs < 1:
        exact = joints.astype(np.float64)
        for leg in _LEGS:
            near, far = (body.legs * float(body.bones[H36M17.edges.index(edge)]) for edge in pairwise(leg))
            place_middle(exact, leg, (near, far))
        joints = exact.astype(np.float32)
    return replace(lifted, joints=joints)


def constant_bones(sequence: Sequence3D) -> Sequence3D:
    """The same motion of a body whose bones keep their length.

    The length of a bone is the median over all frames and both sides of the body (people are symmetric within the
    lifter's error), each frame weighted by 1 / sigma^2 of its two ends, so that frames in which the lifter was unsure
    say little. The joints are then put together anew from the pelvis outwards, every bone in the direction it had.
    Root, sigma and times stay. A bone of length 0 has no direction and stays so.
    """
    return replace(sequence, joints=assembled(sequence.joints, bone_lengths(sequence)))


def assembled(directed: Joints, lengths: NDArray[np.floating]) -> Joints:
    """Joints (T, 17, 3) whose bones have these lengths, (16,) or (T, 16), and the directions of those in `directed`."""
    bones = directed[:, _CHILDREN] - directed[:, _PARENTS]
    size = np.sqrt((bones * bones).sum(axis=-1))
    bones *= (lengths / np.maximum(size, 1e-12))[..., None]
    result: Joints = directed[:, :1] + _CHAINS.astype(directed.dtype, copy=False) @ bones
    return result


def bone_lengths(sequence: Sequence3D) -> F32:
    """(16,) m, one for each of `H36M17.edges`: what `constant_bones` gives the bones."""
    return lengths_of(sequence.joints, sequence.sigma)


def lengths_of(joints: NDArray[np.floating], sigma: NDArray[np.floating]) -> F32:
    """(16,) m, `bone_lengths` of joints (T, 17, 3) m with their sigma (T, 17) mm."""
    parents, children = np.array(H36M17.edges).T
    length = np.linalg.norm(joints[:, children] - joints[:, parents], axis=-1)
    weight = 1 / (sigma[:, children] ** 2 + sigma[:, parents] ** 2)
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
