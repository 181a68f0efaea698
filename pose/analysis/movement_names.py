"""Names of repeated movements, from the joints in the median repetition; docs/guides/analysis.md lists them."""

from collections.abc import Callable

import numpy as np

from pose.body.segments import SIDES, angle_between
from pose.structures.skeletons import H36M17
from pose.structures.types import F64

UNNAMED = "movement A"
MIN_NAMED = 3  # repetitions from which most of them alone must have the name
MIN_AGREEING = 0.75  # minimum fraction of them; those of a dance differ


def movement_name(courses: F64, given: str = "") -> str:
    """Return the name of a movement of poses (R, S, 17, 3) m (x left, y up): `given`, or 'movement A' if none fits."""
    if given:
        return given
    name = _name_of(np.median(courses, axis=0))
    alone = [_name_of(course) == name for course in courses] if len(courses) >= MIN_NAMED else []
    return name if sum(alone) >= MIN_AGREEING * len(alone) else UNNAMED


def _name_of(course: F64) -> str:
    """Return the name of one repetition (S, 17, 3) m."""

    def joint(name: str) -> F64:
        return np.asarray(course[:, H36M17.index(name)])

    knees = [_bend(joint, side, "hip", "knee", "ankle") for side in ("left", "right")]
    flexion = [float(np.ptp(knee)) for knee in knees]
    sinks = float(np.ptp(joint("pelvis")[:, 1]))
    wrists = [joint(f"{side}_wrist") for side in ("left", "right")]
    shoulders = [joint(f"{side}_shoulder") for side in ("left", "right")]
    lifts = [float(np.ptp(wrist[:, 1] - shoulder[:, 1])) for wrist, shoulder in zip(wrists, shoulders, strict=True)]
    apart = [float(np.max(np.abs(joint("left_ankle") - joint("right_ankle"))[:, axis])) for axis in (0, 2)]
    trunk = joint("thorax") - joint("pelvis")
    lean = float(np.ptp(np.degrees(np.arctan2(trunk[:, 2], trunk[:, 1]))))
    if float(np.median(np.degrees(np.arctan2(np.hypot(trunk[:, 0], trunk[:, 2]), trunk[:, 1])))) > 60:
        bends = [_bend(joint, side, "shoulder", "elbow", "wrist") for side in SIDES]
        return "push-up" if min(float(np.ptp(bend)) for bend in bends) > 40 else UNNAMED
    if lean > 45 and 15 < min(flexion) < 80 and lean > 0.8 * max(flexion):
        return "hip hinge"
    if sinks > 0.15 and min(flexion) > 40:
        return "lunge" if apart[1] > 0.45 else "side lunge" if apart[0] > 0.75 else "squat"
    spread = float(np.ptp(np.abs(joint("left_ankle") - joint("right_ankle"))[:, 0]))
    if min(lifts) > 0.4 and spread > 0.25:
        return "jumping jack"
    if max(lifts) > 0.4 and sinks < 0.15 and max(flexion) < 40:
        return "arm raise" if min(lifts) > 0.4 else "one-arm raise"
    if lean > 45 and max(flexion) < 40:
        return "forward bend"
    if sinks < 0.15 and max(flexion) > 40 and min(flexion) < 30:
        return "leg raise"
    return UNNAMED


def _bend(joint: Callable[[str], F64], side: str, a: str, b: str, c: str) -> F64:
    """Return the angle between two bones with the common joint `b`, (S,) degrees; 0 is straight."""
    first, second, third = (joint(f"{side}_{name}") for name in (a, b, c))
    return angle_between(second - first, third - second)
