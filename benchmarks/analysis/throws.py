"""Errors of throws and strokes of the recordings of SNU, against the same definitions on recorded joints.

    python -m benchmarks.analysis throws

One actor plays table tennis and boxes (docs/studies/analysis.md).
"""

from argparse import ArgumentParser, Namespace
from collections import defaultdict
from pathlib import Path

import numpy as np
from pose_datasets.snu import load_snu

from benchmarks.common.command import SHARED
from benchmarks.common.recordings import exact, filmed, part_of, seen_again
from pose.analysis.throws import Throw, find_throws

AROUND_S = 3.0  # before and after a throw
SAME_S = 0.15  # maximum difference of the times of one throw


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--snu", type=Path, default=SHARED / "mocap/snu")
    parser.add_argument("--views", type=int, default=4)


def main(given: Namespace) -> None:
    """Print the errors as the rows of a table."""
    people = [(clip, exact(clip)) for clip in load_snu(given.snu) if "woody" in clip.subject]
    clips = [
        part_of(clip, number, throw.release, AROUND_S)
        for clip, motion in people
        if len(motion.times) >= 10
        for number, throw in enumerate(find_throws(motion))
    ]
    seen = (one for number in range(given.views) for clip in clips for one in filmed(seen_again(clip, number)))
    errors: dict[str, list[float]] = defaultdict(list)
    count = found = spurious = 0
    for one in seen:
        true, lifted = find_throws(one.true), find_throws(one.lifted)
        pairs = [(a, b) for a in true for b in lifted if a.side == b.side and abs(a.release - b.release) < SAME_S]
        count, found, spurious = count + len(true), found + len(pairs), spurious + len(lifted) - len(pairs)
        for a, b in pairs:
            for name, value in _measures(a, b).items():
                errors[name].append(value)
    print(f"{found} of {count} throws and strokes found, {spurious} spurious.\n")
    print("| measure | bias | 95 % of errors below |\n|---|---|---|")
    for name, values in errors.items():
        print(f"| {name} | {np.mean(values):+.2g} | {np.percentile(np.abs(values), 95):.2g} |")


def _measures(true: Throw, lifted: Throw) -> dict[str, float]:
    return {
        "hand speed, share": lifted.speed / true.speed - 1,
        "release, s": lifted.release - true.release,
        "wind-up, s": (lifted.back - lifted.start) - (true.back - true.start),
        "forward phase, s": (lifted.release - lifted.back) - (true.release - true.back),
        "follow-through, s": (lifted.end - lifted.release) - (true.end - true.release),
        "elbow flexion at release, degrees": lifted.elbow_flexion - true.elbow_flexion,
        "hand above shoulder, m": lifted.height - true.height,
    }
