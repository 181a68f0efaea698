"""Results of the analysis: metrics with their intervals and quality, events, curves and series."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

GREEN, AMBER, RED = "green", "amber", "red"
QUALITIES = (GREEN, AMBER, RED)
NORMAL_95 = 1.96
METRIC_ERRORS = Path(__file__).with_name("metric_errors.csv")  # by benchmarks.analysis method-errors
RELATIVE = frozenset(
    f"{group}: {name}" for group, names in (
        ("gait", ("cadence", "speed", "stride length", "step length")), ("repetitions", ("tempo", "depth")),
    ) for name in names
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured value of one person."""

    person: int  # track id
    group: str  # one of `pose.analysis.GROUPS`
    name: str  # name of the metric, such as 'cadence' or 'squat: depth'
    value: float  # value in `unit`
    low: float  # lower end of the 95 % interval
    high: float  # upper end of the 95 % interval
    unit: str  # unit of value, low and high
    quality: str  # 'green', 'amber' or 'red'; docs/guides/analysis.md defines it
    start: float  # start of the time range from which the value is computed, s
    end: float  # end of that time range, s
    count: int  # number of observations (strides, repetitions, frames)
    note: str = ""  # condition under which the value applies; empty without one
    doubt: str = ""  # reason why the quality is not green; empty if it is green


@dataclass(frozen=True, slots=True)
class Event:
    """An event at a point in time."""

    person: int  # track id
    group: str  # group of metrics, as in `Metric`
    name: str  # name of the event, such as 'Foot Strike'
    side: str  # 'left', 'right' or empty
    time: float  # time of the event, s


@dataclass(frozen=True, slots=True)
class Curve:
    """A joint angle over the cycle of a movement: 101 points from 0 to 100 % of the cycle."""

    person: int  # track id
    movement: str  # 'walking', 'running' or the name of the repetition
    angle: str  # name such as 'knee flexion'; docs/guides/analysis.md defines zero and sign of each
    side: str  # 'left', 'right' or empty
    mean: tuple[float, ...]  # mean over the cycles, degrees
    sd: tuple[float, ...]  # standard deviation between cycles, degrees
    error: float  # standard deviation of the method's error, degrees
    quality: str  # 'green', 'amber' or 'red'
    start: float  # start of the first cycle, s
    end: float  # end of the last cycle, s
    count: int  # number of cycles
    norm_mean: tuple[float, ...] = ()  # mean of the published norm, degrees; empty without a norm
    norm_sd: tuple[float, ...] = ()  # standard deviation of the norm between people, degrees


@dataclass(frozen=True, slots=True)
class Series:
    """A value over time."""

    person: int  # track id
    group: str  # group of metrics, as in `Metric`
    name: str  # name of the value, such as 'RULA'
    unit: str  # unit of the values
    times: tuple[float, ...]
    values: tuple[float, ...]  # values in `unit`


def method_sd(group: str, name: str, value: float) -> float:
    """Return the standard deviation of the method's error of a metric (docs/reference/method-errors.md)."""
    sd = _metric_errors()[f"{group}: {name}"]
    return sd * abs(value) if f"{group}: {name}" in RELATIVE else sd


@cache
def _metric_errors() -> dict[str, float]:
    with METRIC_ERRORS.open(encoding="utf-8", newline="") as file:
        return {row["metric"]: float(row["sd"]) for row in csv.DictReader(file)}


def mean_interval(
    values: Sequence[float], systematic: float = 0.0, minimum: float = -math.inf, maximum: float = math.inf
) -> tuple[float, float, float]:
    """Compute the mean of observations, and the lower and upper end of its 95 % interval."""
    array = np.asarray(values, float)
    mean = float(array.mean())
    spread = float(array.std(ddof=1)) / math.sqrt(len(array)) if len(array) > 1 else 0.0
    half = NORMAL_95 * math.hypot(spread, systematic)
    return mean, max(mean - half, min(minimum, mean)), min(mean + half, max(maximum, mean))


def worst(qualities: Sequence[str]) -> str:
    """Return the worst of several quality flags; green if there are none."""
    return QUALITIES[max((QUALITIES.index(one) for one in qualities), default=0)]
