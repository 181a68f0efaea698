"""Hand keypoints combined with body keypoints for drawing."""

import functools

import numpy as np
from numpy.typing import NDArray

from pose.structures.hand_points import BONES, LEFT_NAMES, POINTS, RIGHT_NAMES, SIDES, WRISTS, Hands, sized_to_body
from pose.structures.skeletons import Skeleton
from pose.structures.types import F32, FrameResult

# The suffix distinguishes them from the hand joints of whole-body skeletons.
HAND_POINTS = tuple(f"{name}_point" for name in (*LEFT_NAMES, *RIGHT_NAMES))
_REPLACED = ("pinky", "index", "thumb")  # hand joints of a body skeleton; their edges are omitted


@functools.cache
def skeleton_with_hands(skeleton: Skeleton) -> Skeleton:
    """Return the skeleton with the 21 points of the left hand, then of the right hand, after its own joints."""
    count = len(skeleton)
    names = (*skeleton.names, *HAND_POINTS)
    replaced = {at for at, name in enumerate(skeleton.names) if name.split("_")[-1] in _REPLACED and "foot" not in name}
    edges = [edge for edge in skeleton.edges if not replaced.intersection(edge)]
    for side, name in enumerate(SIDES):
        first = count + side * POINTS
        edges.append((skeleton.index(f"{name}_wrist"), first))
        edges += [(first + parent, first + child) for parent, child in BONES]
    return Skeleton(f"{skeleton.name}+hands", names, tuple(edges), skeleton.derived)


def hands_in_scene(result: FrameResult, rows: NDArray[np.integer], placed: F32) -> F32 | None:
    """Return hands (n, side, 21, 3) m in the 3D view, NaN if undetected; None if not estimated or without people."""
    # The hands are placed at the wrists of `placed`, (n, 17, 3) m: x right, y away from the camera, z up.
    if result.people.hands is None or not len(rows):
        return None
    joints, swapped = result.poses.joints[rows], result.poses.swapped[rows]
    points = sized_to_body(result.people.hands[rows], joints, swapped)
    centres = joints.mean(axis=1, keepdims=True), placed.mean(axis=1, keepdims=True)
    left, _, right = np.linalg.svd(np.swapaxes(joints - centres[0], 1, 2) @ (placed - centres[1]))
    left[..., -1] *= np.sign(np.linalg.det(left @ right))[:, None]
    rotated = points @ (left @ right)[:, None]
    return np.asarray(rotated + placed[:, WRISTS][:, :, None], np.float32)


def with_hands(keypoints: F32, scores: F32, hands: Hands, swapped: NDArray[np.bool_]) -> tuple[F32, F32]:
    """Append hand points, left then right, to body keypoints: (P, J + 42, 2) px and scores (P, J + 42)."""
    # The hands of `swapped` people are swapped, as their arms were swapped before lifting.
    count = len(keypoints)
    points = np.where(swapped[:, None, None, None], hands.points[:, ::-1], hands.points)
    seen = np.where(swapped[:, None, None], hands.scores[:, ::-1], hands.scores)
    return (
        np.concatenate([keypoints, points.reshape(count, 2 * POINTS, 2)], axis=1).astype(np.float32, copy=False),
        np.concatenate([scores, seen.reshape(count, 2 * POINTS)], axis=1).astype(np.float32, copy=False),
    )
