"""Movement analysis of lifted people: gait, repetitions, throws, jumps, sit-to-stand, angles and ergonomics.

from pose.analysis import analyse
from pose.results import load_poses

for metric in analyse(load_poses("poses.npz")).metrics:
    print(metric.person, metric.name, metric.value, metric.low, metric.high, metric.unit)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pose.analysis.curves import angle_curves
from pose.analysis.ergonomics import NEUTRAL, Inputs, ergonomic_metrics
from pose.analysis.exercise import RepetitionRow, jump_metrics, repetition_metrics, repetition_rows, transfer_metrics
from pose.analysis.metrics import Curve, Event, Metric, Series, with_interval_quality
from pose.analysis.norms import CHILDREN, Norms
from pose.analysis.plausible import (
    id_switches,
    no_world_reason,
    plausible,
    seated_traveller_reason,
    small_body_reason,
    too_short_reason,
    unobserved_angles,
    with_norm_quality,
)
from pose.analysis.throws import throw_metrics
from pose.analysis.walking import gait_metrics
from pose.body.segments import Motion, motions
from pose.body.soles import row_ankles
from pose.errors import UsageError
from pose.results import Recording
from pose.structures.defaults import SEEN_SCORE
from pose.structures.types import F64

__all__ = [
    "DEFAULT_GROUPS",
    "GROUPS",
    "NEUTRAL",
    "Analysis",
    "Curve",
    "Event",
    "Inputs",
    "Metric",
    "Omission",
    "RepetitionRow",
    "Series",
    "analyse",
]

GROUPS = ("gait", "repetitions", "throws", "jumps", "sit-to-stand", "angles", "ergonomics")
DEFAULT_GROUPS = GROUPS[:-1]  # ergonomics asks for postures of work, not for every movement
ALL = "all"  # in an omission: every group


@dataclass(frozen=True, slots=True)
class Omission:
    """Reason why a group was not computed for a person."""

    person: int  # track id
    group: str  # one of `GROUPS`, or `ALL`
    reason: str  # the reason in one line


@dataclass(frozen=True, slots=True)
class Analysis:
    """Result of the analysis of all people, ordered by person, then by group and time."""

    metrics: list[Metric] = field(default_factory=list)  # metrics with 95 % intervals
    events: list[Event] = field(default_factory=list)  # points in time, such as foot strikes
    omissions: list[Omission] = field(default_factory=list)  # groups of metrics that were not computed, with reasons
    curves: list[Curve] = field(default_factory=list)  # joint angles over the cycle of a movement
    series: list[Series] = field(default_factory=list)  # values over time, such as RULA scores
    repetitions: list[RepetitionRow] = field(default_factory=list)  # each repetition of an exercise
    norms_source: str = CHILDREN.source  # who the norms beside the curves are of


def analyse(
    table: Recording,
    groups: Sequence[str] = DEFAULT_GROUPS,
    inputs: Inputs = NEUTRAL,
    movement: str = "",
    norms: Norms = CHILDREN,
) -> Analysis:
    """Analyse the movement of every person in a result with world coordinates.

    `inputs` are those of RULA and REBA that a camera cannot observe, `norms` angles of other people over the gait
    cycle. An empty `movement` finds the name of the repeated one. Returns metrics with 95 % intervals, events, curves,
    series, and the groups that were not computed with the reason.

    Raises:
        UsageError: If the result has no world coordinates, or a group is not in `GROUPS`.
    """
    if unknown := sorted(set(groups) - set(GROUPS)):
        raise UsageError(f"groups: {unknown[0]!r} is unknown; known: {', '.join(GROUPS)}")
    if table.placed is None:
        raise UsageError("analysis needs world coordinates; the result has none (--no-world, or the camera moved)")
    analysis = Analysis(norms_source=norms.source)
    visible = (table.joint_scores(slice(None)) >= SEEN_SCORE) & ~table.placed.filled[:, None]
    camera, swapped = _camera(table), id_switches(table)
    for person in table.people:
        own = (table.id == person) & ~table.placed.partial
        shown, contacts = visible[own], table.placed.contacts[own]
        ankles = row_ankles(table, np.flatnonzero(own))
        parts = motions(table.time[own], table.placed.joints[own], table.sigma[own], shown, camera, contacts, ankles)
        parts = [replace(part, movement=movement) for part in parts]
        excluded = no_world_reason(table.placed.joints[own]), swapped.get(person, ""), small_body_reason(table, person)
        reason = next(filter(None, excluded), "") or seated_traveller_reason(parts)
        if reason:
            analysis.omissions.append(Omission(person, ALL, reason))
        elif not parts:
            analysis.omissions.append(Omission(person, ALL, too_short_reason(table.time[own])))
        else:
            _add_person(analysis, int(person), parts, groups, inputs, unobserved_angles(table), norms)
    return analysis


def _camera(table: Recording) -> F64 | None:
    """Return the camera's position in the world, (3,) m; None for several or carried cameras, or without a world."""
    if table.world_info is None or table.camera_position is not None or (table.seen_by & (table.seen_by - 1)).any():
        return None
    return table.world_info.world.place(np.zeros(3))


def _add_person(
    analysis: Analysis, person: int, parts: list[Motion], groups: Sequence[str], inputs: Inputs, unobserved: list[str],
    norms: Norms,
) -> None:  # fmt: skip
    longest = max(parts, key=lambda part: part.duration)
    for group in groups:
        metrics: list[Metric] = []
        reason = ""
        if group == "ergonomics":
            metrics, events, series = ergonomic_metrics(person, parts, inputs)
            analysis.events.extend(events)
            analysis.series.extend(series)
        else:
            for motion in parts:
                group_metrics, group_reason = _group(analysis, person, motion, group, norms)
                metrics += group_metrics
                reason = group_reason if motion is longest else reason
        kept = plausible(metrics, [curve for curve in analysis.curves if curve.person == person], parts)
        analysis.metrics.extend(with_norm_quality(with_interval_quality(metric), norms) for metric in kept.metrics)
        analysis.omissions.extend(Omission(person, group, unlikely) for unlikely in kept.reasons)
        if group == "angles":
            analysis.curves[:] = [curve for curve in analysis.curves if curve.person != person] + kept.curves
        if not metrics:
            analysis.omissions.append(Omission(person, group, reason))
        if group == "angles" and metrics:
            angles_with_curves = {curve.angle.partition(" ")[0] for curve in analysis.curves if curve.person == person}
            absent = (reason for reason in unobserved if reason.partition(":")[0] not in angles_with_curves)
            analysis.omissions.extend(Omission(person, group, reason) for reason in absent)


def _group(analysis: Analysis, person: int, motion: Motion, group: str, norms: Norms) -> tuple[list[Metric], str]:
    """Return the metrics of one group for one segment, and the reason if there are none; add events and curves."""
    if group == "angles":
        metrics, curves, reason = angle_curves(person, motion, norms)
        analysis.curves.extend(curves)
        return metrics, reason
    of_group = {
        "gait": gait_metrics,
        "repetitions": repetition_metrics,
        "throws": throw_metrics,
        "jumps": jump_metrics,
        "sit-to-stand": transfer_metrics,
    }
    if group == "repetitions":
        analysis.repetitions.extend(repetition_rows(person, motion))
    metrics, events, reason = of_group[group](person, motion)
    analysis.events.extend(events)
    return metrics, reason
