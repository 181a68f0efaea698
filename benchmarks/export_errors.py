"""How far exported rotations and joint angles are from the recorded ones, on the motion capture test subjects.

    pose-prepare mocap --source ../shared/mocap/cmu --out motion.npz
    python benchmarks/export_errors.py --source ../shared/mocap/cmu --data motion.npz --table angles.csv

Rotations: those of BVH, GLB and MOT, made of the exact joints, against the recorded skeleton's own. The two rest poses
and the meanings of "straight" differ by a constant, so each bone's mean rotation is taken out first, per subject.
Angles: of the lifter's answer, seen by virtual cameras (exact 2D; a detector's errors), against those of the exact
joints. --table writes the pairs for `poseaudit paired`.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from amc_trials import amc_trials
from numpy.typing import NDArray
from pose_datasets import asf_amc
from pose_datasets.mapping import asf_points
from pose_datasets.mocap import TEST_SUBJECTS, load_clips, split
from pose_datasets.synthesis import evaluation_batches

from pose.body.joint_angles import NAMES as ANGLES
from pose.body.joint_angles import joint_angles
from pose.body.skeleton import NAMES, fit_body, forward_kinematics, residual, solve
from pose.structures import rotations

F64 = NDArray[np.float64]

# Our bone, by the joint that turns it, and the recorded one.
BONES = {
    "pelvis": "root", "thorax": "thorax", "left_hip": "lfemur", "left_knee": "ltibia", "right_hip": "rfemur",
    "right_knee": "rtibia", "left_shoulder": "lhumerus", "left_elbow": "lradius", "right_shoulder": "rhumerus",
    "right_elbow": "rradius", "neck": "head",
}  # fmt: skip
LIMBS = {
    "left_hip": "left_knee",
    "right_hip": "right_knee",
    "left_shoulder": "left_elbow",
    "right_shoulder": "right_elbow",
}
CONDITIONS = {"gt": "exact 2D", "detector": "a detector's errors"}
UP = np.array([0.0, 1, 0])


def recorded(source: Path, subject: str) -> Iterator[tuple[F64, dict[str, F64]]]:
    """Joints (T, 17, 3) m and true turns (T, 4) of the bones, trial after trial."""
    for name, skeleton, motion in amc_trials(source / f"{subject}.zip", subject):
        _, turns = asf_amc.forward_kinematics(skeleton, motion)
        at = {bone: skeleton.names.index(theirs) for bone, theirs in BONES.items()}
        points = asf_points(skeleton, motion, name)[:, :17]
        yield points, {bone: rotations.from_matrix(turns[:, place]) for bone, place in at.items()}


def rotation_errors(source: Path) -> tuple[dict[str, F64], dict[str, F64], float]:
    """Degrees by bone; the twist alone of thighs and upper arms, where bent by more than 15 degrees; residual mm."""
    whole: dict[str, list[F64]] = {bone: [] for bone in BONES}
    bent: dict[str, list[F64]] = {bone: [] for bone in LIMBS}
    distances = []
    for subject in TEST_SUBJECTS:
        trials = list(recorded(source, subject)) if (source / f"{subject}.zip").is_file() else []
        if not trials:
            continue
        body = fit_body(points for points, _ in trials)
        ours: dict[str, list[F64]] = {bone: [] for bone in BONES}
        for points, _ in trials:
            motion = solve(points, body)
            distances.append(residual(points, body, motion))
            turns = forward_kinematics(body, motion)[1]
            for bone in BONES:
                ours[bone].append(turns[:, NAMES.index(bone)])
        angles = joint_angles(np.concatenate([points for points, _ in trials]), np.ones((1, 17)), UP).degrees
        for bone in BONES:
            error = _without_mean(np.concatenate(ours[bone]), np.concatenate([truth[bone] for _, truth in trials]))
            whole[bone].append(error)
            if bone in LIMBS:
                bend = angles[:, ANGLES.index(f"{LIMBS[bone]}_flexion")]
                bent[bone].append(error[bend > 30])
    joined = {bone: np.concatenate(parts) for bone, parts in whole.items()}
    return joined, {bone: np.concatenate(p) for bone, p in bent.items()}, 1000 * float(np.concatenate(distances).mean())


def _without_mean(ours: F64, truth: F64) -> F64:
    """(T,) degrees between two turns after the constant one between their rest poses is taken out."""
    between = rotations.multiply(rotations.inverse(ours), truth)
    _, vectors = np.linalg.eigh(np.einsum("ti,tj->ij", between, between))
    mean = vectors[:, -1]  # the mean turn: the largest eigenvector of the outer products (Markley et al., 2007)
    return np.degrees(rotations.angle_between(np.broadcast_to(mean, between.shape), between))


def angle_errors(clips: list, table: Path | None) -> dict[str, tuple[F64, F64]]:
    """(N, 16) errors in degrees, and their deviations, for each condition."""
    from pose.lifting.torch_lifter import TorchLifter
    from pose.training.measure import lift_batch

    network = TorchLifter.load("offline").network
    found, rows = {}, []
    for condition in CONDITIONS:
        errors, deviations = [], []
        for subject in TEST_SUBJECTS:
            own = [clip for clip in clips if clip.subject == subject]
            for number, batch in enumerate(evaluation_batches(own, condition=condition) if own else []):
                lifted = lift_batch(network, batch)
                truth, answer = batch.joints[batch.valid], lifted.joints.numpy()[batch.valid]
                said = joint_angles(answer.astype(float), lifted.sigma.numpy()[batch.valid].astype(float), -UP)
                exact = joint_angles(truth.astype(float), np.ones(truth.shape[:2]), -UP).degrees
                errors.append((said.degrees - exact + 180) % 360 - 180)
                deviations.append(said.deviations)
                rows += [
                    (condition, name, subject, number, frame, exact[frame, column], said.degrees[frame, column])
                    for column, name in enumerate(ANGLES)
                    for frame in range(0, len(exact), 15)
                ]
        found[condition] = np.concatenate(errors), np.concatenate(deviations)
    if table is not None:
        for condition in CONDITIONS:
            with table.with_stem(f"{table.stem}-{condition}").open("w", newline="", encoding="utf-8") as file:
                writer = csv.writer(file)
                writer.writerow(("measure", "subject", "trial", "frame", "ref", "pred", "unit"))
                writer.writerows(
                    (*row[1:5], *(f"{v:.3f}" for v in row[5:]), "deg") for row in rows if row[0] == condition
                )
    return found


def _figures(errors: F64) -> str:
    size = np.abs(errors)
    return f"{size.mean():.1f} | {np.median(size):.1f} | {np.percentile(size, 95):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="the motion capture database: a ZIP file a subject")
    parser.add_argument("--data", type=Path, required=True, help="the same, prepared by pose-prepare mocap")
    parser.add_argument("--table", type=Path, help="write the angles here, as CSV for poseaudit, one file a condition")
    options = parser.parse_args()
    whole, bent, distance = rotation_errors(options.source)
    frames = len(whole["pelvis"])
    print(f"Rotations from exact joints, {frames:,} frames of the test subjects that are recorded with rotations")
    print(f"Joints lie {distance:.1f} mm from the bones on average\n")
    print("| rotation of | mean | median | 95 % |\n|---|---|---|---|")
    for bone, errors in whole.items():
        print(f"| `{bone}` | {_figures(errors)} |")
    for bone, errors in bent.items():
        print(f"| `{bone}`, limb bent by more than 30 degrees | {_figures(errors)} |")
    clips = split(load_clips(options.data), "test")
    found = angle_errors(clips, options.table)
    for condition, (errors, deviations) in found.items():
        print(f"\nAngles of the lifter's answer, {CONDITIONS[condition]}, {len(errors):,} frames\n")
        print("| angle | bias | mean | median | 95 % | within one sd |\n|---|---|---|---|---|---|")
        for column, name in enumerate(ANGLES):
            inside = 100 * np.mean(np.abs(errors[:, column]) <= deviations[:, column])
            print(f"| `{name}` | {errors[:, column].mean():+.1f} | {_figures(errors[:, column])} | {inside:.0f} % |")


if __name__ == "__main__":
    main()
