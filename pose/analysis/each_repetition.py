"""One row per repetition: its times, and the body at its turning point and over it."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pose.analysis.jumps import knee_flexions, knee_valgus
from pose.analysis.plausible import LIMITS
from pose.analysis.quality import FRONTAL, VIEW_DEGREES, view_angle
from pose.analysis.repetitions import find_repetitions, movement_name
from pose.body.segments import SIDES, Motion, angle_between
from pose.structures.smooth import zero_phase
from pose.structures.types import F64

_HAND_HZ = 6.0  # cut-off of the hands' positions before their speed


@dataclass(frozen=True, slots=True)
class RepetitionRow:
    """A repetition. The turning point is the moment farthest from rest: the bottom of a squat, the end of a throw."""

    person: int  # track id
    movement: str  # name of the movement
    number: int  # number of the repetition, from 1
    start: float  # s
    turning_point: float  # s
    end: float  # s
    out_s: float  # from the start to the turning point: the way down of a squat
    back_s: float  # from the turning point to the end
    pelvis_travel_m: float  # vertical travel of the pelvis
    trunk_lean_degrees: float  # at the turning point, from the vertical, in any direction
    knee_flexion_left_degrees: float  # at the turning point; 0 is straight
    knee_flexion_right_degrees: float
    thigh_left_degrees: float  # at the turning point; 0 is parallel to the floor, positive below it
    thigh_right_degrees: float
    valgus_left_degrees: float | None  # at the turning point, inwards positive; None if impossible or not shown
    valgus_right_degrees: float | None
    ankle_rise_left_m: float  # of the ankle from the start to the turning point: a heel that lifts raises it
    ankle_rise_right_m: float
    hip_flexion_left_degrees: float  # between trunk and thigh at the turning point; 0 is straight
    hip_flexion_right_degrees: float
    elbow_flexion_left_degrees: float  # at the turning point; 0 is straight
    elbow_flexion_right_degrees: float
    front_foot_m: float  # at the turning point: how far the left foot is in front of the right; negative: behind
    hand_speed_left_mps: float  # largest speed of the hand relative to the pelvis
    hand_speed_right_mps: float


def repetition_rows(person: int, motion: Motion) -> list[RepetitionRow]:
    """Return a row for each complete repetition."""
    found = find_repetitions(motion)
    if not found.items:
        return []
    name, signals = movement_name(found.courses, motion.movement), _signals(motion)
    complete = [(number, one) for number, one in enumerate(found.items, start=1) if one.complete]
    rows = []
    for number, one in complete:
        inside = (motion.times >= one.start) & (motion.times <= one.end)
        if not inside.any():
            continue

        def at(signal: str, time: float) -> float:
            return round(float(np.interp(time, motion.times, signals[signal])), 4)

        low, high = LIMITS["knee valgus after landing"]
        shown = motion.camera is None or view_angle(motion, inside, FRONTAL) >= VIEW_DEGREES[0]
        valgus = [at(f"valgus_{side}", one.peak) for side in SIDES]
        rises = [at(f"ankle_{side}", one.peak) - at(f"ankle_{side}", one.start) for side in SIDES]
        travel = float(np.ptp(motion.joint("pelvis")[inside, 1]))
        values: list[Any] = [
            one.start, one.peak, one.end, one.peak - one.start, one.end - one.peak, travel, at("lean", one.peak),
            *(at(f"{what}_{side}", one.peak) for what in ("flexion", "thigh") for side in SIDES),
            *(value if shown and low <= value <= high else None for value in valgus), *rises,
            *(at(f"{what}_{side}", one.peak) for what in ("hip", "elbow") for side in SIDES),
            at("front_foot", one.peak), *(float(signals[f"hand_{side}"][inside].max()) for side in SIDES),
        ]  # fmt: skip
        rows.append(RepetitionRow(person, name, number, *values))
    return rows


def _signals(motion: Motion) -> dict[str, F64]:
    """Return the quantities of a row over time, (T,) each."""
    flexion, valgus = knee_flexions(motion), knee_valgus(motion)
    trunk = motion.joint("thorax") - motion.joint("pelvis")
    apart = motion.joint("left_ankle") - motion.joint("right_ankle")
    signals = {
        "lean": np.degrees(np.arctan2(np.hypot(trunk[:, 0], trunk[:, 2]), trunk[:, 1])),
        "front_foot": (apart * motion.facing).sum(axis=1),
    }
    for column, side in enumerate(SIDES):
        thigh = motion.joint(f"{side}_knee") - motion.joint(f"{side}_hip")
        hand = zero_phase(motion.joint(f"{side}_wrist") - motion.joint("pelvis"), motion.times, _HAND_HZ)
        forearm, upper = (
            motion.joint(f"{side}_{end}") - motion.joint(f"{side}_{start}")
            for start, end in (("elbow", "wrist"), ("shoulder", "elbow"))
        )
        signals |= {
            f"hip_{side}": angle_between(-trunk, thigh),
            f"elbow_{side}": angle_between(upper, forearm),
            f"flexion_{side}": flexion[:, column],
            f"valgus_{side}": valgus[:, column],
            f"thigh_{side}": np.degrees(np.arctan2(thigh[:, 1], np.hypot(thigh[:, 0], thigh[:, 2]))),
            f"ankle_{side}": motion.joint(f"{side}_ankle")[:, 1],
            f"hand_{side}": np.linalg.norm(np.gradient(hand, motion.times, axis=0), axis=1),
        }
    return signals
