"""Movement of 2D keypoints with predicted 3D: each keypoint moves as much as the projection of a joint."""

import functools

import numpy as np
from numpy.typing import NDArray

from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17, Skeleton
from pose.structures.types import F32, F64

MIN_DEPTH_M = 0.2  # joints nearer to the camera or behind it are not projected
_HAND = ("wrist", "hand", "thumb", "index", "pinky", "finger", "forefinger")
_FOOT = ("ankle", "heel", "toe", "foot")


@functools.cache
def carrying_joints(skeleton: Skeleton) -> NDArray[np.int64]:
    """Return the index (J,) of the Human3.6M-17 joint with which each of the J joints of a skeleton moves."""
    return np.array(
        [H36M17.index(_carrying_joint(name, skeleton.side(joint))) for joint, name in enumerate(skeleton.names)]
    )


def _carrying_joint(name: str, side: str) -> str:
    if name in H36M17.names:
        return name
    parts = name.split("_")
    if side != "centre":
        if any(part in _FOOT for part in parts):
            return f"{side}_ankle"
        if any(part in _HAND for part in parts):
            return f"{side}_wrist"
    return "pelvis" if name == "hip" else "head"


def moved_keypoints(keypoints: F32, skeleton: Skeleton, before: F64, after: F64, camera: Camera) -> F32:
    """Move 2D keypoints as the projections of people's 3D joints move."""
    shift = _shift(before, after, camera)
    return (keypoints + shift[:, carrying_joints(skeleton)]).astype(np.float32)


def moved_boxes(boxes: F32, before: F64, after: F64, camera: Camera) -> F32:
    """Move the edges of boxes as the edges of the boxes around the projected joints move."""
    whole = _in_front(before) & _in_front(after)
    moved = boxes.copy()
    if whole.any():
        old, new = camera.project(before[whole]), camera.project(after[whole])
        moved[whole, :2] += new.min(axis=1) - old.min(axis=1)
        moved[whole, 2:] += new.max(axis=1) - old.max(axis=1)
    return moved


def _shift(before: F64, after: F64, camera: Camera) -> F64:
    shift = np.zeros((*before.shape[:2], 2))
    whole = _in_front(before) & _in_front(after)
    shift[whole] = camera.project(after[whole]) - camera.project(before[whole])
    return shift


def _in_front(joints: F64) -> NDArray[np.bool_]:
    return np.asarray((joints[..., 2] > MIN_DEPTH_M).all(axis=1))
