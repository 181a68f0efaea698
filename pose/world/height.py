"""Body height from bone lengths, size of a person, and scaling to a given height."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.skeletons import H36M17
from pose.world.rules import SIZE

_CHAIN = (("pelvis", "spine"), ("spine", "thorax"), ("thorax", "neck"), ("neck", "head"))
_LEG = (("left_hip", "left_knee"), ("left_knee", "left_ankle"))
_STRAIGHT = [H36M17.edges.index((H36M17.index(a), H36M17.index(b))) for a, b in (*_CHAIN, *_LEG)]


def stature(bones: NDArray[np.floating]) -> float:
    """Return the height in m of a straightened body with bones (16,) m (`H36M17.edges`).

    It is the sum of shank, thigh, trunk, neck and head, and of the parts above the head joint and below the ankle.
    """
    return float(sum(bones[_STRAIGHT].tolist())) + SIZE.ankle_height_m + SIZE.crown_height_m


def scaled_stature(own: float, scale: float) -> float:
    """Return the height in m of a body of height `own` whose bones are multiplied by `scale`."""
    # The parts below the ankle and above the head joint scale with the square root of `scale`, because children have
    # large feet and heads.
    fixed = SIZE.ankle_height_m + SIZE.crown_height_m
    return (own - fixed) * scale + fixed * math.sqrt(scale)


def scale_to(height: float, own: float) -> float:
    """Return the factor for joints and root that changes the height in m from `own`, apart from constants."""
    fixed = SIZE.ankle_height_m + SIZE.crown_height_m
    return (height - fixed) / (own - fixed) if own > fixed else 1.0  # no bones to scale


@dataclass(frozen=True, slots=True)
class PersonSize:
    """Size of one person."""

    height: float  # m
    interval: tuple[float, float]  # m, ends of the interval from 16 to 84 % of the height's posterior
    distance_scale: float  # factor on the lifted distance
    distance_sigma: float  # standard deviation of its logarithm
    height_alone: float  # m, from the person's proportions alone
    child: float  # probability that the person is a child
    on_floor: float  # probability that the person stands on the common floor
