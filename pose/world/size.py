"""Size of a person, from the scene (`pose.world.scene`)."""

from dataclasses import dataclass


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
