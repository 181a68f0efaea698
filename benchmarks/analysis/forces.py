"""Ground forces of walks against force plates: docs/studies/analysis.md.

    python -m benchmarks.analysis forces --gait ../shared/mocap/gait

Reference: two plates and the weight of the static trial, raw and below 10 Hz, in body weights. Both feet: from the
first foot off after the first plate to the next strike after the second. `steps`: `pose.body.ground_forces`, fitted to
the people not held out. `acceleration`: second derivative of the centre of mass below 2.5 Hz (Winter 2009, table 4.1).
`weight`: a constant body weight.
"""

from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.common.command import SHARED
from benchmarks.common.recordings import HELD_OUT, Trial, exact, filmed, gait_files, seen_again, trial_of
from pose.body.ground_forces import GRAVITY, INTERVAL, ground_forces
from pose.body.segments import SIDES, Motion
from pose.structures.smooth import zero_phase
from pose.structures.types import F64, Flags

LIMBS = (("hip", "knee", 0.100, 0.433), ("knee", "ankle", 0.061, 0.606), ("shoulder", "elbow", 0.028, 0.436),
         ("elbow", "wrist", 0.022, 0.682))  # fmt: skip
TRUNK, HEAD = 0.497, 0.081
LOADED = 0.04  # body weights on a plate
PLATE_HZ = 10.0


@dataclass(frozen=True, slots=True)
class Plates:
    """times: (N,) s. forces: (2, N, 3) body weights, y up, and points: (2, N, 3) m. feet: the foot on each plate."""

    times: F64
    forces: F64
    points: F64
    feet: tuple[int, int]
    spans: tuple[tuple[float, float], tuple[float, float]]

    def at(self, times: F64, cutoff: float | None = None) -> F64:
        """The forces (2, T, 3) at `times`."""
        found = self.forces if cutoff is None else [zero_phase(one, self.times, cutoff) for one in self.forces]
        return np.stack([[np.interp(times, self.times, column) for column in one.T] for one in found]).swapaxes(1, 2)


def trials(folder: Path) -> Iterator[tuple[Trial, Plates]]:
    """Walks with two loaded plates."""
    weight = np.nan
    for subject, name, file in gait_files(folder, plates=True):
        plates = file["data"]["platform"]
        if "Static" in name:
            weight = float(np.mean(plates[0]["force"][2]))
        elif (trial := trial_of(file, subject, name)) is not None:
            yield trial, _plates(trial, plates, weight, float(file["header"]["analogs"]["frame_rate"]))


def _plates(trial: Trial, found: "list[dict[str, F64]]", weight: float, rate: float) -> Plates:
    forces = np.stack([plate["force"].T[:, [1, 2, 0]] / weight for plate in found])
    points = np.stack([plate["center_of_pressure"].T[:, [1, 2, 0]] / 1000 for plate in found])
    times, feet, spans = np.arange(forces.shape[1]) / rate, [], []
    for force in forces:
        loaded = times[force[:, 1] > LOADED]
        side = min((abs(time - loaded[0]), side) for name, side, time in trial.events if name == "Foot Strike")[1]
        offs = [time for name, s, time in trial.events if name == "Foot Off" and s == side and time > loaded[0]]
        feet.append(SIDES.index(side))
        spans.append((float(loaded[0]), float(min([loaded[-1], *offs]))))
    return Plates(times, forces, points, (feet[0], feet[1]), (spans[0], spans[1]))


def both_on_plates(trial: Trial, plates: Plates, times: F64) -> Flags:
    """Whether all feet on the floor are on plates, (T,)."""
    first, second = sorted(plates.spans)
    offs = [time for name, _, time in trial.events if name == "Foot Off" and time > first[0]]
    strikes = [time for name, _, time in trial.events if name == "Foot Strike" and time > second[0] + 0.05]
    return (times >= min(offs, default=np.inf)) & (times <= min(strikes, default=second[1]))


def accelerated(motion: Motion) -> F64:
    """Vertical force (T,) of the acceleration of the centre of mass."""
    middle = [np.mean([motion.joint(f"{side}_{joint}") for side in SIDES], axis=0) for joint in ("hip", "shoulder")]
    total = TRUNK * (middle[0] + middle[1]) / 2 + HEAD * (motion.joint("neck") + motion.joint("head")) / 2
    mass = TRUNK + HEAD
    for side in SIDES:
        for start, end, share, at in LIMBS:
            a, b = motion.joint(f"{side}_{start}"), motion.joint(f"{side}_{end}")
            total, mass = total + share * (a + at * (b - a)), mass + share
    height = zero_phase(total[:, 1] / mass, motion.times, 2.5)
    return np.asarray(1 + np.gradient(np.gradient(height, motion.times), motion.times) / GRAVITY)


def force_errors(motion: Motion, trial: Trial, plates: Plates, true: Motion) -> dict[str, F64]:
    """Errors in body weights, by quantity; none outside straight walks."""
    found, times = ground_forces(motion, motion.times), motion.times
    rows = both_on_plates(trial, plates, times) & found.known
    errors = {}
    for label, cutoff in (("raw", None), ("10 Hz", PLATE_HZ)):
        measured = plates.at(times, cutoff)
        total = measured[..., 1].sum(axis=0)
        errors[f"both feet, steps, {label}"] = (found.forces[..., 1].sum(axis=1) - total)[rows]
        errors[f"both feet, acceleration, {label}"] = (accelerated(motion) - total)[rows]
        errors[f"both feet, weight, {label}"] = (1 - total)[rows]
        along = np.stack([np.interp(times, true.times, column) for column in true.facing.T], axis=1)
        across = np.cross(along, [0.0, 1.0, 0.0])
        own_across = np.cross(motion.facing, [0.0, 1.0, 0.0])
        for force, foot, (start, end) in zip(measured, plates.feet, plates.spans, strict=True):
            on = (times > start - 0.15) & (times < end + 0.15) & found.known
            own = found.forces[:, foot]
            for axis, mine, theirs in (
                ("vertical", own[:, 1], force[:, 1]),
                ("along", (own * motion.facing).sum(axis=1), (force * along).sum(axis=1)),
                ("across", (own * own_across).sum(axis=1), (force * across).sum(axis=1)),
            ):
                key = f"each foot, {axis}, {label}"
                errors[key] = np.concatenate([errors.get(key, np.zeros(0)), (mine - theirs)[on]])
    return errors


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--gait", type=Path, default=SHARED / "mocap/gait")
    parser.add_argument("--views", type=int, default=4)
    parser.add_argument("--only", default="", help="subjects, separated by commas")


def main(given: Namespace) -> None:
    found = [pair for pair in trials(given.gait) if not given.only or pair[0].clip.subject in given.only.split(",")]
    motions = [("exact", exact(trial.clip), trial, plates) for trial, plates in found]
    for number in range(given.views):
        for trial, plates in found:
            motions += [("lifted", one.lifted, trial, plates) for one in filmed(seen_again(trial.clip, number))]
    together: dict[tuple[str, str, str], list[F64]] = defaultdict(list)
    for joints, motion, trial, plates in motions:
        people = "held out" if trial.clip.subject in HELD_OUT else "fitted to"
        for name, errors in force_errors(motion, trial, plates, exact(trial.clip)).items():
            together[name, joints, people].append(errors)
    print("| force | joints | people | RMS, % | inside the interval, % |\n|---|---|---|---|---|")
    for (name, joints, people), parts in together.items():
        errors = np.concatenate(parts)
        inside = f"{100 * np.mean(np.abs(errors) <= INTERVAL):.0f}" if "steps" in name else ""
        print(f"| {name} | {joints} | {people} | {100 * np.sqrt(np.mean(errors**2)):.1f} | {inside} |")
