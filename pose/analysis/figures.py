"""A figure of the analysis: a value with its interval, its quality and the frames it comes from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

GREEN, AMBER, RED = "green", "amber", "red"
WORTH = (GREEN, AMBER, RED)
NORMAL_95 = 1.96


@dataclass(frozen=True, slots=True)
class Figure:
    """One number of one person.

    Attributes:
        person: id.
        group: 'gait', 'repetitions', 'jumps', 'sit-to-stand' or 'ergonomics'.
        name: what is measured.
        value: in `unit`.
        low: lower end of the 95 % interval.
        high: upper end of the 95 % interval.
        unit: of value, low and high.
        quality: 'green', 'amber' or 'red'; docs/guides/analysis.md defines it.
        start: first moment it comes from, s.
        end: last moment it comes from, s.
        count: number of observations (strides, repetitions, frames).
        note: condition or reason, empty where there is none.
    """

    person: int
    group: str
    name: str
    value: float
    low: float
    high: float
    unit: str
    quality: str
    start: float
    end: float
    count: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """A moment. side: 'left', 'right' or empty. time: s."""

    person: int
    group: str
    name: str
    side: str
    time: float


def mean_interval(values: Sequence[float], systematic: float = 0.0) -> tuple[float, float, float]:
    """Mean of observations and its 95 % interval.

    Args:
        values: at least one observation.
        systematic: standard deviation of an error that all observations share, in their unit.

    Returns:
        Mean, lower end, upper end.
    """
    array = np.asarray(values, float)
    mean = float(array.mean())
    spread = float(array.std(ddof=1)) / math.sqrt(len(array)) if len(array) > 1 else 0.0
    half = NORMAL_95 * math.hypot(spread, systematic)
    return mean, mean - half, mean + half


def worst(qualities: Sequence[str]) -> str:
    """The worst of several quality flags; green of none."""
    return WORTH[max((WORTH.index(one) for one in qualities), default=0)]
