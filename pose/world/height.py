"""How tall a person is, from the bones; and a person brought to a height that somebody knows."""

import math

import numpy as np
from numpy.typing import NDArray

from pose.skeletons import H36M17
from pose.world.rules import RULES, SizeRules

F64 = NDArray[np.float64]

_CHAIN = (("pelvis", "spine"), ("spine", "thorax"), ("thorax", "neck"), ("neck", "head"))
_LEG = (("left_hip", "left_knee"), ("left_knee", "left_ankle"))
_STRAIGHT = [H36M17.edges.index((H36M17.index(a), H36M17.index(b))) for a, b in (*_CHAIN, *_LEG)]


def stature(bones: NDArray[np.floating], rules: SizeRules = RULES.size) -> float:
    """m from the sole to the crown of a body with bones (16,) m (`H36M17.edges`), straightened: shank, thigh, trunk,
    neck and head in one line, and what lies above the head joint and below the ankle.
    """
    return float(sum(bones[_STRAIGHT].tolist())) + rules.ankle_height_m + rules.crown_height_m


def scaled_stature(own: float, scale: float, rules: SizeRules = RULES.size) -> float:
    """m, the height of a body whose bones become `scale` times as long; it is `own` m tall.

    What lies below the ankle and above the head joint shrinks with the root of the scale: feet and heads of children
    are large.
    """
    fixed = rules.ankle_height_m + rules.crown_height_m
    return (own - fixed) * scale + fixed * math.sqrt(scale)


def scale_to(height: float, own: float, rules: SizeRules = RULES.size) -> float:
    """The factor for joints and root that makes who is `own` m tall `height` m tall; what they look like stays.

    The head's crown and the foot's sole have a fixed length in `stature`, so the factor is that of the rest.
    """
    fixed = rules.ankle_height_m + rules.crown_height_m
    return (height - fixed) / (own - fixed) if own > fixed else 1.0  # without bones there is nothing to scale
