"""Results of the analysis: metrics with intervals and quality flags, events, curves and series.

The quality of a metric depends on the number of frames, occlusion, sigma, the frame rate, and the view of the plane of
motion.
"""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pose.body.segments import Motion
from pose.structures.skeletons import H36M17

LEGS = tuple(f"{side}_{joint}" for side in ("left", "right") for joint in ("hip", "knee", "ankle"))
FEET = ("left_ankle", "right_ankle")
BODY = H36M17.names
SAGITTAL, FRONTAL = "sagittal", "frontal"

# Amber beyond the first threshold, red beyond the second.
SIGMA_MM = (80.0, 150.0)  # median sigma of the joints
MISSING = (0.1, 0.3)  # fraction of frames without the person
OCCLUDED = (0.2, 0.5)  # fraction of the joints in all frames that are occluded
# angle between the line of sight and the plane of motion; below, the motion is mostly in depth
VIEW_DEGREES = (35.0, 10.0)
HALF_WIDTH_RELATIVE = (0.5, 1.0)  # half of the interval relative to the value
HALF_WIDTH_DEGREES = (15.0, 30.0)  # half of the interval of an angle that may have either sign
WIDTH_SHARE = (0.5, 1.0)  # width of the interval of a share
# Words in the names of metrics that may have either sign. Their intervals are not compared with their values.
SIGNED = ("asymmetry", "less", "valgus", "smoothness", "hand above shoulder", "elbow flexion at release")


def quality(
    motion: Motion, start: float, end: float, joints: Sequence[str] = BODY,
    *, plane: str = "", rates: tuple[float, float] = (15.0, 4.0), few: str = "",
) -> tuple[str, str]:  # fmt: skip
    """Rate a metric, in `plane` if it is a motion in it, as 'green', 'amber' or 'red', and return the reason."""
    rows = (motion.times >= start - 1e-6) & (motion.times <= end + 1e-6)
    if not rows.any():
        return RED, "no frame of this part shows the person"
    columns = [H36M17.index(joint) for joint in joints]
    sigma = float(np.median(motion.sigma[rows][:, columns]))
    flags = [
        (_above(sigma, SIGMA_MM), f"uncertain joints: sigma {sigma:.0f} mm"),
        (_above(-motion.rate, (-rates[0], -rates[1])), f"only {motion.rate:.0f} frames/s"),
        (AMBER if few else GREEN, few),
    ]
    if motion.visible is not None:
        visible = motion.visible[rows]
        missing = 1 - visible.any(axis=1).mean() * min(visible.shape[0] / max((end - start) * motion.rate, 1), 1)
        occluded = 1 - visible[visible.any(axis=1)][:, columns].mean() if visible.any() else 1.0
        flags += [
            (_above(missing, MISSING), f"person not seen in {missing:.0%} of the frames"),
            (_above(occluded, OCCLUDED), f"{occluded:.0%} of the joints occluded"),
        ]
    if plane and motion.camera is not None:
        angle = view_angle(motion, rows, plane)
        side = "side" if plane == SAGITTAL else "front"
        text = f"not filmed from the {side}, {plane} plane seen at {angle:.0f} degrees"
        flags.append((_above(-angle, (-VIEW_DEGREES[0], -VIEW_DEGREES[1])), text))
    return worst([one for one, _ in flags]), "; ".join(reason for one, reason in flags if one != GREEN)


def view_angle(motion: Motion, rows: NDArray[np.bool_], plane: str) -> float:
    """Return the median angle in degrees between line of sight and plane of motion; 90 is best, 0 along the sight."""
    assert motion.camera is not None
    line_of_sight = motion.joint("pelvis")[rows] - motion.camera
    line_of_sight /= np.maximum(np.linalg.norm(line_of_sight, axis=1, keepdims=True), 1e-9)
    forward = motion.facing[rows]
    left = np.stack([forward[:, 2], np.zeros(len(forward)), -forward[:, 0]], axis=1)
    normal = left if plane == SAGITTAL else forward
    sine = np.abs((line_of_sight * normal).sum(axis=1))
    return float(np.median(np.degrees(np.arcsin(np.clip(sine, 0, 1)))))


def _above(value: float, thresholds: tuple[float, float]) -> str:
    return RED if value > thresholds[1] else AMBER if value > thresholds[0] else GREEN


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


def with_interval_quality(metric: Metric) -> Metric:
    """Return the metric, with a worse quality flag if its 95 % interval is wide."""
    half = (metric.high - metric.low) / 2
    if metric.unit == "share":
        flag = _above(2 * half, WIDTH_SHARE)
    elif metric.unit == "score":
        flag = GREEN
    elif any(word in metric.name for word in SIGNED):
        flag = _above(half, HALF_WIDTH_DEGREES) if metric.unit == "degrees" else GREEN
    else:
        flag = _above(half, (HALF_WIDTH_RELATIVE[0] * abs(metric.value), HALF_WIDTH_RELATIVE[1] * abs(metric.value)))
    doubt = "; ".join(filter(None, (metric.doubt, "wide range" if flag != GREEN else "")))
    return replace(metric, quality=worst([metric.quality, flag]), doubt=doubt)
