"""Joint angles in the body's frame: flexion, adduction and internal rotation are positive (ISB, Wu et al. 2002, 2005).

Hips, knees, shoulders, elbows and neck are those of `pose.body.joint_angles`. This module adds pelvis and trunk.
Ankle angles come from `pose.world.foot_points` and need detected heels and toes.
`pose.analysis.plausible.unobserved_angles` states why there are no wrist angles and no pelvic tilt.
"""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from pose.analysis.metrics import SAGITTAL, view_angle
from pose.body.joint_angles import NAMES, joint_angles
from pose.body.segments import MAX_GAP_S, SIDES, Motion
from pose.structures.types import F64
from pose.world.foot_points import ANKLE_SD

METHOD_ERRORS = Path(__file__).with_name("method_errors.csv")  # by benchmarks/method_errors.py
COLUMNS = ("error", "range", "difference")
ANY, VIEWS = "any", ("side", "oblique", "front")  # by the angle between line of sight and sagittal plane
SIDE_DEGREES, FRONT_DEGREES = 60.0, 30.0
MAX_ABDUCTION_DEGREES = 60.0  # degrees; shoulder flexion is undefined beyond it
UP = np.array([0.0, 1.0, 0.0])


@dataclass(frozen=True, slots=True)
class MethodError:
    """Standard deviations of the errors of a lifted angle, degrees (docs/reference/method-errors.md)."""

    error: float  # of the angle in a frame
    range: float  # of the mean range of motion over cycles
    difference: float  # of the left-right difference of this range


def view_of(motion: Motion, start: float = -np.inf, end: float = np.inf) -> str:
    """Return from where a person is filmed between two times: side, oblique, front (or back), or any if unknown."""
    if motion.camera is None:
        return ANY
    angle = view_angle(motion, (motion.times >= start - 1e-6) & (motion.times <= end + 1e-6), SAGITTAL)
    return VIEWS[0] if angle >= SIDE_DEGREES else VIEWS[2] if angle < FRONT_DEGREES else VIEWS[1]


@cache
def method_errors() -> dict[tuple[str, str], MethodError]:
    """Return the errors of each angle from each view, by (angle, view)."""
    with METHOD_ERRORS.open(encoding="utf-8", newline="") as file:
        rows = [
            (row["angle"], row["view"], [float(row[name] or "nan") for name in COLUMNS]) for row in csv.DictReader(file)
        ]
    # Ankles were measured against force plates' shoes, not against lifted feet: the errors of a range and of a
    # difference follow from that of an angle.
    ankle = MethodError(ANKLE_SD, ANKLE_SD * 2**0.5, ANKLE_SD * 2)
    return {(angle, view): MethodError(*values) for angle, view, values in rows} | {
        ("ankle flexion", view): ankle for view in (ANY, *VIEWS)
    }


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
