"""Means with 95 % confidence intervals over seeds, and confidence intervals of proportions."""

import math
from collections.abc import Sequence
from statistics import NormalDist, mean, stdev

# Student's t at 97.5 % for 1 to 9 degrees of freedom; beyond, the normal quantile is used.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
NORMAL = NormalDist().inv_cdf(0.975)


def mean_and_half_width(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and half the width of its 95 % confidence interval (Student's t; NaN for a single value)."""
    if len(values) < 2:
        return mean(values), math.nan
    degrees_of_freedom = len(values) - 1
    t = STUDENT[degrees_of_freedom - 1] if degrees_of_freedom <= len(STUDENT) else NORMAL
    return mean(values), t * stdev(values) / math.sqrt(len(values))


def wilson_interval(proportion: float, count: int) -> tuple[float, float]:
    """Return the 95 % confidence interval of a proportion (Wilson, 1927)."""
    squared = NORMAL**2 / count
    centre = (proportion + squared / 2) / (1 + squared)
    half = NORMAL / (1 + squared) * math.sqrt(proportion * (1 - proportion) / count + squared / (4 * count))
    return max(0.0, centre - half), min(1.0, centre + half)
