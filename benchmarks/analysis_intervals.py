"""Errors of the figures of gait, repetitions and angles, and how many of their 95 % intervals hold the truth.

    python benchmarks/analysis_intervals.py --gait ../shared/mocap/gait --ui-prmd ../shared/mocap/ui-prmd

Truth is the same figure of the recorded joints, whose foot strikes are those of the force plates on average. Lifted: as
in `analysis.py`, walks with four cameras and the body height known, exercises with one camera and without it. Only
recordings count in which both have the same number of strides or repetitions. docs/studies/analysis.md shows the table.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from analysis import exact, gait_trials, lifted, lifted_height, seen_again, ui_prmd_recordings

from pose.analysis import gait
from pose.analysis.curves import angle_curves
from pose.analysis.exercise import repetition_metrics
from pose.analysis.metrics import Metric
from pose.analysis.motion import Motion
from pose.analysis.walking import gait_metrics

VIEWS = 4  # cameras of each walk
TRUE_STRIKE_SHIFT_S = 0.031  # of recorded joints; `gait.STRIKE_SHIFT_S` is that of lifted ones
HELD_OUT = ("HC038A", "HC044A", "HC055A", "s09", "s10")  # no definition was chosen on them but the shift of foot offs


def figures_of(motion: Motion) -> dict[str, Metric]:
    """Figures by group and name, without the name of the movement."""
    named = [(f"gait: {figure.name}", figure) for figure in gait_metrics(1, motion)[0]]
    for group, of_group in (("repetitions", repetition_metrics), ("angles", angle_curves)):
        named += [(f"{group}: {figure.name.partition(': ')[2]}", figure) for figure in of_group(1, motion)[0]]
    return dict(named)


def kind_of(name: str) -> str:
    """The row of a figure: both sides share one."""
    return name.replace(", left", "").replace(", right", "") if ", left less" not in name else name


def pairs(options: argparse.Namespace) -> Iterator[tuple[str, Motion, Motion]]:
    """Subject, recorded and lifted motion."""
    for trial in gait_trials(options.gait) if options.gait else []:
        for number in range(VIEWS):
            clip = seen_again(trial.clip, number)
            yield from ((clip.subject, a, b) for a, b in zip(exact(clip), lifted_height(clip), strict=False))
    recordings = ui_prmd_recordings(options.ui_prmd) if options.ui_prmd else {}
    for clip, _ in recordings.values():
        yield from ((clip.subject, a, b) for a, b in zip(exact(clip), lifted(clip), strict=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gait", type=Path)
    parser.add_argument("--ui-prmd", type=Path)
    options = parser.parse_args()
    found: dict[str, dict[bool, list[tuple[float, bool]]]] = defaultdict(lambda: defaultdict(list))
    for subject, true, seen in pairs(options):
        figures, shift = figures_of(seen), gait.STRIKE_SHIFT_S
        gait.STRIKE_SHIFT_S = TRUE_STRIKE_SHIFT_S
        truths = figures_of(true)
        gait.STRIKE_SHIFT_S = shift
        for name, figure in figures.items():
            truth = truths.get(name)
            if truth is not None and truth.count == figure.count:
                inside = figure.low <= truth.value <= figure.high
                found[kind_of(name)][subject.endswith(HELD_OUT)].append((figure.value - truth.value, inside))
    print("| figure | bias | 95 % of errors below | intervals | held out: 95 % | intervals |")
    for name, groups in found.items():
        cells = [f"{np.mean([error for error, _ in groups[False]]):+.3g}"]
        for held in (False, True):
            errors = [abs(error) for error, _ in groups[held]] or [np.nan]
            holds = sum(inside for _, inside in groups[held])
            cells += [f"{np.percentile(errors, 95):.3g}", f"{holds} of {len(groups[held])}"]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
