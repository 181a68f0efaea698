"""Joint angles in the body's frame: flexion, adduction and internal rotation are positive (ISB, Wu et al. 2002, 2005).

Hips, knees, shoulders, elbows and neck are those of `pose.export.joint_angles`. Pelvis and trunk are added here. There
is no ankle and no wrist: the lifted skeleton has neither foot nor hand. Two hip joints do not show the pelvic tilt.
"""

import numpy as np
from numpy.typing import NDArray

from pose.analysis.motion import SIDES, Motion
from pose.export.joint_angles import NAMES, joint_angles

F64 = NDArray[np.float64]

# Standard deviation of the error of lifted angles, degrees: 95 % bounds of docs/studies/exports.md divided by 1.96.
# Pelvis and trunk: docs/studies/analysis.md.
ERRORS = {
    "hip flexion": 10.0, "hip adduction": 7.0, "knee flexion": 14.4, "shoulder flexion": 11.5,
    "shoulder abduction": 10.0, "shoulder elevation": 9.1, "elbow flexion": 18.0, "neck flexion": 11.4,
    "pelvis obliquity": 5.0, "pelvis rotation": 8.0, "trunk flexion": 4.5, "trunk bending": 4.0, "trunk rotation": 9.0,
}  # fmt: skip
NOT_OBSERVED = {
    "ankle": "the lifted skeleton has no foot",
    "wrist": "the lifted skeleton has no hand",
    "pelvic tilt": "two hip joints do not show it",
}
UP = np.array([0.0, 1.0, 0.0])


def body_angles(motion: Motion) -> dict[tuple[str, str], F64]:
    """(T,) degrees of every angle, by name and side ('' for those of the trunk)."""
    found = joint_angles(motion.joints, motion.sigma, UP).degrees
    columns = dict(zip(NAMES, found.T, strict=True))
    angles: dict[tuple[str, str], F64] = {}
    hips = motion.joint("left_hip") - motion.joint("right_hip")
    shoulders = motion.joint("left_shoulder") - motion.joint("right_shoulder")
    forward = motion.facing
    left = np.stack([forward[:, 2], np.zeros(len(forward)), -forward[:, 0]], axis=1)
    tilt = np.degrees(np.arctan2(hips[:, 1], np.hypot(hips[:, 0], hips[:, 2])))  # left side up
    turn = np.degrees(np.arctan2(_dot(hips, forward), _dot(hips, left)))  # left side forward
    for side, sign in zip(SIDES, (1.0, -1.0), strict=True):
        for joint, end in (("hip", "knee"), ("shoulder", "elbow")):
            angles[f"{joint} flexion", side] = _unwrapped(columns[f"{side}_{joint}_flexion"])
            angles[f"{end} flexion", side] = columns[f"{side}_{end}_flexion"]
        angles["hip adduction", side] = -columns[f"{side}_hip_abduction"]
        angles["shoulder abduction", side] = columns[f"{side}_shoulder_abduction"]
        angles["shoulder elevation", side] = columns[f"{side}_shoulder_elevation"]
        angles["pelvis obliquity", side] = sign * tilt
        angles["pelvis rotation", side] = sign * turn
    trunk = motion.joint("thorax") - motion.joint("pelvis")
    angles["trunk flexion", ""] = np.degrees(np.arctan2(_dot(trunk, forward), trunk[:, 1]))
    angles["trunk bending", ""] = -np.degrees(np.arctan2(_dot(trunk, left), trunk[:, 1]))  # to the right
    chest = np.degrees(np.arctan2(_dot(shoulders, forward), _dot(shoulders, left)))
    angles["trunk rotation", ""] = turn - chest  # of the chest on the pelvis, to the left
    angles["neck flexion", ""] = columns["neck_flexion"]
    return angles


def _unwrapped(degrees: F64) -> F64:
    """Without jumps at 180 degrees, where an arm is raised beyond the vertical."""
    return np.asarray(np.degrees(np.unwrap(np.radians(degrees))))


def _dot(a: F64, b: F64) -> F64:
    return np.asarray((a * b).sum(axis=1))
