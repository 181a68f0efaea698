"""Ground forces of walks against force plates, and the joint moments that follow: docs/studies/analysis.md.

    python -m benchmarks.forces --gait ../shared/mocap/gait --views 4
    python -m benchmarks.forces --gait ../shared/mocap/gait --views 2 --model Rajagopal2015.osim --only HC038A,HC044A

Reference: two plates and the weight of the static trial, raw and below 10 Hz, in body weights. Both feet: from the
first foot off after the first plate to the next strike after the second. `steps`: `pose.body.ground_forces`, fitted to
the people not held out. `acceleration`: second derivative of the centre of mass below 2.5 Hz (Winter 2009, table 4.1).
`weight`: a constant body weight. With `--model`, moments of OpenSim from lifted joints and estimated forces against
those from recorded joints and plates, N m per kg; sagittal plane, stance on a plate.
"""

import argparse
import csv
import io
import tempfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.analysis import Trial, _trial, exact, seen_again
from benchmarks.method_errors import HELD_OUT, filmed
from pose.body.ground_forces import GRAVITY, INTERVAL, GroundForces, ground_forces
from pose.body.segments import SIDES, Motion
from pose.body.tracks import open_selection
from pose.export import export, opensim
from pose.results import NpzWriter, RunInfo, WorldInfo
from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17
from pose.structures.smooth import zero_phase
from pose.structures.types import F64, Flags, FrameResult, People, Placed, Poses3D
from pose.world.frame import World

LIMBS = (("hip", "knee", 0.100, 0.433), ("knee", "ankle", 0.061, 0.606), ("shoulder", "elbow", 0.028, 0.436),
         ("elbow", "wrist", 0.022, 0.682))  # fmt: skip
TRUNK, HEAD = 0.497, 0.081
LOADED = 0.04  # body weights on a plate
PLATE_HZ = 10.0
MOMENTS = ("hip_flexion", "knee_angle", "ankle_angle")


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
    import ezc3d

    path = Path(tempfile.mkdtemp()) / "trial.c3d"
    for archive in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as opened:
            weight = np.nan
            for name in sorted((n for n in opened.namelist() if n.endswith(".c3d")), key=lambda n: "Static" not in n):
                path.write_bytes(opened.read(name))
                file = ezc3d.c3d(str(path), extract_forceplat_data=True)
                plates = file["data"]["platform"]
                if "Static" in name:
                    weight = float(np.mean(plates[0]["force"][2]))
                elif (trial := _trial(file, archive.stem, name)) is not None:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gait", type=Path, required=True)
    parser.add_argument("--views", type=int, default=4)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--only", default="", help="subjects, separated by commas")
    options = parser.parse_args()
    only = options.only.split(",")
    found = [pair for pair in trials(options.gait) if not options.only or pair[0].clip.subject in only]
    motions = [("exact", exact(trial.clip)[0], trial, plates) for trial, plates in found]
    for number in range(options.views):
        for trial, plates in found:
            motions += [("lifted", one.lifted, trial, plates) for one in filmed([seen_again(trial.clip, number)])]
    together: dict[tuple[str, str, str], list[F64]] = defaultdict(list)
    for joints, motion, trial, plates in motions:
        people = "held out" if trial.clip.subject in HELD_OUT else "fitted to"
        for name, errors in force_errors(motion, trial, plates, exact(trial.clip)[0]).items():
            together[name, joints, people].append(errors)
    print("| force | joints | people | RMS, % | inside the interval, % |\n|---|---|---|---|---|")
    for (name, joints, people), parts in together.items():
        errors = np.concatenate(parts)
        inside = f"{100 * np.mean(np.abs(errors) <= INTERVAL):.0f}" if "steps" in name else ""
        print(f"| {name} | {joints} | {people} | {100 * np.sqrt(np.mean(errors**2)):.1f} | {inside} |")
    if options.model:
        print(moments_table(motions, options.model))


def moments_table(motions: list[tuple[str, Motion, Trial, Plates]], model: Path) -> str:
    """RMS errors of sagittal moments, N m per kg, as the rows of a table."""
    errors: dict[tuple[str, str], list[F64]] = defaultdict(list)
    sizes: dict[str, list[F64]] = defaultdict(list)
    truth: dict[str, tuple[F64, F64]] = {}
    for joints, motion, trial, plates in motions:
        if joints == "exact":
            forces = GroundForces(*_measured(plates, motion.times), np.ones(len(motion.times), bool))
            solved = solve(motion, forces, model, both_on_plates(trial, plates, motion.times))
            truth[trial.clip.name] = solved
            for at, name in enumerate(MOMENTS):
                sizes[name].append(np.ravel(solved[1][:, at]))
        estimated = ground_forces(motion, motion.times)
        rows = both_on_plates(trial, plates, motion.times) & estimated.known
        if not rows.any():
            continue
        times, values = solve(motion, estimated, model, rows)
        reference = truth[trial.clip.name]
        people = "held out" if trial.clip.subject in HELD_OUT else "fitted to"
        for at, name in enumerate(MOMENTS):
            for side in range(2):
                there = np.interp(times, reference[0], reference[1][:, at, side])
                errors[name, f"{joints}, {people}"].append(values[:, at, side] - there)
    lines = ["| moment | size | " + " | ".join(dict.fromkeys(key for _, key in errors)) + " |"]
    for name in MOMENTS:
        cells = [f"{np.sqrt(np.mean(np.concatenate(parts) ** 2)):.2f}" for (n, _), parts in errors.items() if n == name]
        size = np.sqrt(np.mean(np.concatenate(sizes[name]) ** 2))
        lines.append(f"| {name} | {size:.2f} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _measured(plates: Plates, times: F64) -> tuple[F64, F64]:
    forces, points = np.zeros((len(times), 2, 3)), np.zeros((len(times), 2, 3))
    for at, (force, foot) in enumerate(zip(plates.at(times, PLATE_HZ), plates.feet, strict=True)):
        on = force[:, 1] > LOADED
        forces[on, foot] = force[on]
        where = plates.points[at][plates.forces[at][:, 1] > LOADED]
        when = plates.times[plates.forces[at][:, 1] > LOADED]
        points[:, foot] = np.stack([np.interp(times, when, column) for column in where.T], axis=1)
    return forces, points


def solve(motion: Motion, forces: GroundForces, model: Path, rows: Flags) -> tuple[F64, F64]:
    """Times (T,) and sagittal moments (T, 3, left and right), N m per kg, of OpenSim's tools in the frames `rows`."""
    known = replace(forces, known=rows)
    given = mock.patch.object(opensim, "ground_forces", return_value=known)
    with tempfile.TemporaryDirectory() as scratch, given:
        selection = open_selection(saved(motion, Path(scratch) / "walk.npz"), space="world")
        selection.opensim_model = model
        (made,) = export(selection, ["opensim"], Path(scratch), "walk")
        with (made.path / "moments.csv").open(encoding="utf-8", newline="") as file:
            table = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    names = [[f"{name}_{side[0]}_moment_nm_per_kg" for side in SIDES] for name in MOMENTS]
    return np.array([row["time"] for row in table]), np.array(
        [[[row[n] for n in two] for two in names] for row in table]
    )


def saved(motion: Motion, path: Path) -> Path:
    """Write a motion as a result of one person whose world is that of the camera."""
    world = World(np.diag([1.0, -1.0, -1.0]), 0.0, "given", 1.0)
    info = RunInfo(
        source="walk", fps=30.0, camera=Camera.of((1280, 720)), skeleton=H36M17, models=(), settings={},
        world=WorldInfo(world),
    )  # fmt: skip
    with NpzWriter(path, info) as writer:
        for frame, (time, joints) in enumerate(zip(motion.times, motion.joints, strict=True)):
            camera = (joints * [1, -1, -1]).astype(np.float32)[None]
            seen = People(
                frame, float(time), np.array([1]), np.zeros((1, 4), np.float32), np.ones(1, np.float32),
                np.zeros((1, 17, 2), np.float32), np.ones((1, 17), np.float32),
            )  # fmt: skip
            nothing = np.full(1, np.nan, np.float32)
            placed = Placed(
                joints.astype(np.float32)[None], nothing, np.ones((1, 2), np.float32), np.zeros(1, bool), nothing
            )
            poses = Poses3D(camera - camera[:, :1], camera[:, 0], motion.sigma[frame].astype(np.float32)[None])
            writer.write(FrameResult(seen, poses, placed))
    return path


if __name__ == "__main__":
    main()
