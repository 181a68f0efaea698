"""Axes and bone names of Unity, for VMC and VRChat.

Unity is left-handed: x right, y up, z forward. File axes are right-handed; a person in the T-pose looks along z, and x
points to the person's left. Mirroring x maps one to the other: (x, y, z) to (-x, y, z) and quaternions (w, x, y, z) to
(w, x, -y, -z).
"""

import numpy as np

from pose.structures.rotations import euler
from pose.structures.types import F64

# Bones of Unity's HumanBodyBones with the joint of `pose.body.skeleton.NAMES` that moves them.
BONES = {
    "Hips": "pelvis", "LeftUpperLeg": "left_hip", "LeftLowerLeg": "left_knee", "LeftFoot": "left_ankle",
    "RightUpperLeg": "right_hip", "RightLowerLeg": "right_knee", "RightFoot": "right_ankle", "Spine": "spine",
    "Chest": "thorax", "Neck": "neck", "Head": "head", "LeftUpperArm": "left_shoulder", "LeftLowerArm": "left_elbow",
    "LeftHand": "left_wrist", "RightUpperArm": "right_shoulder", "RightLowerArm": "right_elbow",
    "RightHand": "right_wrist",
}  # fmt: skip
# Finger bones of one hand in the order of `pose.body.fingers.FINGER_NAMES`, without the side.
FINGERS = tuple(
    f"{finger}{part}"
    for finger in ("Thumb", "Index", "Middle", "Ring", "Little")
    for part in ("Proximal", "Intermediate", "Distal")
)
_MIRROR = np.array([-1.0, 1.0, 1.0])
_MIRROR_ROTATION = np.array([1.0, 1.0, -1.0, -1.0])


def to_unity(points: F64) -> F64:
    """Convert points (..., 3) in file axes to Unity's axes."""
    mirrored: F64 = points * _MIRROR
    return mirrored


def rotations_to_unity(quaternions: F64) -> F64:
    """Convert quaternions (..., 4), w first, in file axes to Unity's axes."""
    mirrored: F64 = quaternions * _MIRROR_ROTATION
    return mirrored


def unity_euler(quaternions: F64) -> F64:
    """Return Unity's Euler angles (..., 3) in degrees about x, y, z of quaternions in Unity's axes.

    Unity applies them in the order z, x, y about fixed axes: R = Ry Rx Rz.
    """
    angles = np.degrees(euler(quaternions, "yxz"))
    result: F64 = angles[..., [1, 0, 2]]
    return result
