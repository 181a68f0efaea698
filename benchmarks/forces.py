"""Vertical ground force from the motion of the body's mass, against force plates: docs/studies/analysis.md.

    python -m benchmarks.forces --gait ../shared/mocap/gait --views 3

Segment masses and centres: Winter, Biomechanics and Motor Control of Human Movement, 2009, table 4.1. Reference: two
plates and the weight of the static trial, from the first foot off after the first plate to the next strike after the
second, in body weights. `filter`: second derivative of the centre of mass below a cut-off. `cycle`: a sine of the step
frequency and a parabola fitted to its height. `weight`: a constant force of one body weight.
"""

import argparse
import io
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.analysis import Trial, _trial, exact, seen_again
from benchmarks.method_errors import filmed
from pose.body.gait import analyse_gait
from pose.body.segments import SIDES, Motion
from pose.structures.smooth import zero_phase

LIMBS = (("hip", "knee", 0.100, 0.433), ("knee", "ankle", 0.061, 0.606), ("shoulder", "elbow", 0.028, 0.436),
         ("elbow", "wrist", 0.022, 0.682))  # fmt: skip
TRUNK, HEAD = 0.497, 0.081
LOADED = 0.04  # body weights on a plate
CUTOFFS_HZ = (2.5, 4.0, 6.0)


def height_of_mass(motion: Motion) -> np.ndarray:
    """Height of the centre of mass (T,) m."""
    middle = [np.mean([motion.joint(f"{side}_{joint}") for side in SIDES], axis=0) for joint in ("hip", "shoulder")]
    total = TRUNK * (middle[0] + middle[1]) / 2 + HEAD * (motion.joint("neck") + motion.joint("head")) / 2
    mass = TRUNK + HEAD
    for side in SIDES:
        for start, end, share, at in LIMBS:
            a, b = motion.joint(f"{side}_{start}"), motion.joint(f"{side}_{end}")
            total, mass = total + share * (a + at * (b - a)), mass + share
    return np.asarray(total[:, 1] / mass)


def filtered(motion: Motion, cutoff: float) -> np.ndarray:
    height = zero_phase(height_of_mass(motion), motion.times, cutoff)
    return 1 + np.gradient(np.gradient(height, motion.times), motion.times) / 9.81


def of_cycle(motion: Motion) -> np.ndarray:
    strides, time = analyse_gait(motion).strides, motion.times - motion.times[0]
    if not strides:
        return np.ones(len(time))
    omega = 4 * np.pi / float(np.median([stride.duration for stride in strides]))
    wave = np.stack([np.cos(omega * time), np.sin(omega * time)], axis=1)
    terms = np.hstack([wave, np.stack([np.ones_like(time), time, time**2], axis=1)])
    return 1 - omega**2 / 9.81 * wave @ np.linalg.lstsq(terms, height_of_mass(motion), rcond=None)[0][:2]


def trials(folder: Path) -> Iterator[tuple[Trial, list[np.ndarray], float]]:
    """Walks, the force on both plates (n,) in body weights, and their rate."""
    import ezc3d

    path = Path(tempfile.mkdtemp()) / "trial.c3d"
    for archive in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as opened:
            weight = np.nan
            for name in sorted((n for n in opened.namelist() if n.endswith(".c3d")), key=lambda n: "Static" not in n):
                path.write_bytes(opened.read(name))
                file = ezc3d.c3d(str(path), extract_forceplat_data=True)
                forces = [plate["force"][2] for plate in file["data"]["platform"]]
                if "Static" in name:
                    weight = float(np.mean(forces[0]))
                elif (trial := _trial(file, archive.stem, name)) is not None:
                    yield trial, [one / weight for one in forces], float(file["header"]["analogs"]["frame_rate"])


def on_plates(trial: Trial, plates: list[np.ndarray], rate: float, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whether both feet are on plates or in the air, and the force, at `times`."""
    forces = [np.interp(times, np.arange(len(plate)) / rate, plate) for plate in plates]
    loaded = [np.flatnonzero(force > LOADED) for force in forces]
    if not all(len(rows) for rows in loaded):
        return np.zeros(len(times), bool), forces[0]
    first, second = sorted(loaded, key=lambda rows: rows[0])
    offs = [time for name, _, time in trial.events if name == "Foot Off" and time > times[first[0]]]
    strikes = [time for name, _, time in trial.events if name == "Foot Strike" and time > times[second[0]] + 0.05]
    end = min(strikes, default=times[second[-1]])
    return (times >= min(offs, default=np.inf)) & (times <= end), forces[0] + forces[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gait", type=Path, required=True)
    parser.add_argument("--views", type=int, default=3)
    options = parser.parse_args()
    found = list(trials(options.gait))
    motions = {"exact": [(exact(one[0].clip)[0], one) for one in found], "lifted": []}
    for number in range(options.views):
        for one in found:
            motions["lifted"] += [(seen.lifted, one) for seen in filmed([seen_again(one[0].clip, number)])]
    ways = {f"filter {cutoff:g} Hz": lambda motion, cutoff=cutoff: filtered(motion, cutoff) for cutoff in CUTOFFS_HZ}
    ways |= {"cycle": of_cycle, "weight": lambda motion: np.ones(len(motion.times))}
    for joints, pairs in motions.items():
        for way, force in ways.items():
            errors = []
            for motion, one in pairs:
                rows, measured = on_plates(*one, motion.times)
                errors.append((force(motion) - measured)[rows])
            together = np.concatenate(errors)
            print(f"| {joints} | {way} | {100 * np.sqrt(np.mean(together**2)):.1f} | {len(pairs)} walks")


if __name__ == "__main__":
    main()
