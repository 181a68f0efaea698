"""Joint angles in the body's frame: flexion, adduction and internal rotation are positive (ISB, Wu et al. 2002, 2005).

Hips, knees, shoulders, elbows and neck are those of `pose.body.joint_angles`. This module adds pelvis and trunk.
Ankle angles come from `pose.world.foot_points` and need detected heels and toes.
`pose.analysis.unsupported.unobserved_angles` states why there are no wrist angles and no pelvic tilt.
"""

import numpy as np

from pose.body.joint_angles import NAMES, joint_angles
from pose.body.segments import MAX_GAP_S, SIDES, Motion
from pose.structures.types import F64
from pose.world.foot_points import ANKLE_SD

# Standard deviation of the error of lifted angles, degrees: the 95 % bounds of docs/studies/exports.md and
# docs/studies/analysis.md, the larger one, divided by 1.96.
ERRORS = {
    "hip flexion": 10.0, "hip adduction": 7.0, "knee flexion": 14.4, "shoulder flexion": 11.5,
    "shoulder abduction": 10.0, "shoulder elevation": 11.9, "elbow flexion": 18.0, "neck flexion": 11.4,
    "pelvis obliquity": 5.3, "pelvis rotation": 4.3, "trunk flexion": 7.5, "trunk bending": 5.3, "trunk rotation": 6.6,
    "ankle flexion": ANKLE_SD,
}  # fmt: skip
# The same for the mean range of motion over cycles, and for the left-right difference of this range
# (docs/studies/analysis.md, "Intervals").
RANGE_ERRORS = {
    "hip flexion": 8.3, "hip adduction": 5.3, "knee flexion": 9.5, "shoulder flexion": 12.8, "shoulder abduction": 7.6,
    "shoulder elevation": 9.7, "elbow flexion": 12.0, "neck flexion": 7.8, "pelvis obliquity": 4.4,
    "pelvis rotation": 3.7, "trunk flexion": 3.0, "trunk bending": 2.3, "trunk rotation": 4.5,
    "ankle flexion": ANKLE_SD * 2**0.5,  # not measured: error of a difference of two angles
}  # fmt: skip
DIFFERENCE_ERRORS = {
    "hip flexion": 10.4, "hip adduction": 6.6, "knee flexion": 14.2, "shoulder flexion": 11.9,
    "shoulder abduction": 9.7, "shoulder elevation": 10.3, "elbow flexion": 17.8, "ankle flexion": ANKLE_SD * 2,
}  # fmt: skip
MAX_ABDUCTION_DEGREES = 60.0  # degrees; shoulder flexion is undefined beyond it
UP = np.array([0.0, 1.0, 0.0])


def body_angles(motion: Motion) -> dict[tuple[str, str], F64]:
    """Return every angle over time, (T,) degrees, by (name, side); side is '' for the angles of trunk and neck."""
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
            angles[f"{joint} flexion", side] = _overhead(columns[f"{side}_{joint}_flexion"])
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
    if motion.ankles is not None:
        for column, side in enumerate(SIDES):
            angles["ankle flexion", side] = _bridged(motion.ankles[:, column], motion.times)
    return angles


def _bridged(values: F64, times: F64) -> F64:
    """Return values (T,) with gaps of at most `MAX_GAP_S` interpolated."""
    known = np.flatnonzero(np.isfinite(values))
    if len(known) < 2:
        return values
    filled = np.interp(times, times[known], values[known], np.nan, np.nan)
    after = np.clip(np.searchsorted(known, np.arange(len(times))), 1, len(known) - 1)
    long = times[known[after]] - times[known[after - 1]] > MAX_GAP_S
    return np.where(np.isfinite(values), values, np.where(long, np.nan, filled))


def is_defined(angles: dict[tuple[str, str], F64], angle: str, side: str) -> F64:
    """Return (T,) 1.0 for frames in which an angle is defined, else 0.0."""
    # Shoulder flexion is undefined while the arm is raised sideways by `MAX_ABDUCTION_DEGREES` or more.
    values = angles[angle, side]
    if angle != "shoulder flexion":
        return np.isfinite(values).astype(float)
    return np.asarray((np.abs(angles["shoulder abduction", side]) < MAX_ABDUCTION_DEGREES).astype(float))


def _overhead(degrees: F64) -> F64:
    """Wrap from -180..180 to -90..270, so that raised limbs pass the vertical without a jump."""
    return np.asarray(np.where(degrees < -90, degrees + 360, degrees))


def _dot(a: F64, b: F64) -> F64:
    return np.asarray((a * b).sum(axis=1))
