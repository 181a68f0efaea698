"""Movement analysis: gait, repetitions, jumps, sit-to-stand and ergonomics of lifted people, with intervals.

from pose.analysis import analyse
from pose.files import load_poses

for figure in analyse(load_poses("poses.npz")).figures:
    print(figure.person, figure.name, figure.value, figure.low, figure.high, figure.unit)
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pose.analysis.ergonomics import NEUTRAL, Inputs
from pose.analysis.exercise import ergonomic_figures, jump_figures, repetition_figures, transfer_figures
from pose.analysis.figures import Event, Figure
from pose.analysis.motion import Motion, motions
from pose.analysis.walking import gait_figures
from pose.errors import UsageError
from pose.files import PoseTable

__all__ = ["GROUPS", "NEUTRAL", "Analysis", "Event", "Figure", "Inputs", "Omission", "analyse"]

GROUPS = ("gait", "repetitions", "jumps", "sit-to-stand", "ergonomics")


@dataclass(frozen=True, slots=True)
class Omission:
    """Why a person has no figures of a group."""

    person: int
    group: str
    reason: str


@dataclass(frozen=True, slots=True)
class Analysis:
    """Figures, events and omissions of everybody, by person and time."""

    figures: list[Figure] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    omissions: list[Omission] = field(default_factory=list)


def analyse(table: PoseTable, groups: Sequence[str] = GROUPS, inputs: Inputs = NEUTRAL) -> Analysis:
    """Analyse everybody in a result.

    Args:
        table: a result with a world.
        groups: of `GROUPS`.
        inputs: what RULA and REBA need and no camera observes.

    Returns:
        Figures with 95 % intervals, events, and what was omitted and why.

    Raises:
        UsageError: for a result without a world, or an unknown group.
    """
    if unknown := sorted(set(groups) - set(GROUPS)):
        raise UsageError(f"groups: {unknown[0]!r} is unknown; known: {', '.join(GROUPS)}")
    if table.placed is None:
        raise UsageError("analysis needs world coordinates; run pose-run without --no-world")
    analysis = Analysis()
    for person in np.unique(table.id).tolist():
        own = table.id == person
        parts = motions(table.time[own], table.placed.joints[own], table.sigma[own])
        _add_person(analysis, int(person), parts, groups, inputs)
    return analysis


def _add_person(
    analysis: Analysis, person: int, parts: list[Motion], groups: Sequence[str], inputs: Inputs
) -> None:  # fmt: skip
    for group in groups:
        figures: list[Figure] = []
        reason = "the person is seen for less than half a second"
        for motion in parts:
            found, events, reason = _group(person, motion, group, inputs)
            figures += found
            analysis.events.extend(events)
        if figures:
            analysis.figures.extend(figures)
        else:
            analysis.omissions.append(Omission(person, group, reason))


def _group(person: int, motion: Motion, group: str, inputs: Inputs) -> tuple[list[Figure], list[Event], str]:
    """Figures and events of one group, and why there are none."""
    if group == "gait":
        return gait_figures(person, motion)
    if group == "repetitions":
        return *repetition_figures(person, motion), "no movement is repeated"
    if group == "jumps":
        return *jump_figures(person, motion), "no jump with both feet in the air"
    if group == "sit-to-stand":
        return *transfer_figures(person, motion), "nobody rests on a seat and stands up, or sits down"
    return *ergonomic_figures(person, motion, inputs), ""
