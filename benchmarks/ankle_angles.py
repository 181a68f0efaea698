"""Angles of the ankle from the lifted leg and a toe that is seen in 2D, against always the subject's mean angle.

    python benchmarks/ankle_angles.py --source ../shared/mocap/cmu

Virtual cameras look at the motion capture test subjects that are recorded with feet. The toe lies on its ray as far
from the ankle as the foot is long (here: exactly known); of the two places the one that is more to the front counts.
"Leg and image" is the most probable direction of `pose.world.foot_points`, here from ankle to toe and without a floor.
The angle is that between shank and foot. It is worth something if it errs less than the subject's own mean angle does.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from amc_trials import EVERY, amc_trials
from numpy.typing import NDArray
from pose_datasets import asf_amc
from pose_datasets.mapping import asf_points
from pose_datasets.mocap import TEST_SUBJECTS

from pose.body.skeleton import ORDER, pelvis_frame
from pose.lifting.load import load_lifter
from pose.structures.camera import Camera, project
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import H36M17
from pose.world.foot_points import FootShape, ImageFeet, foot_frames

F64 = NDArray[np.float64]

SIZE = (1000, 1000)
DISTANCE, HEIGHT = 4.0, 1.2  # m
VIEWS = 8  # around the person
SIDES = ("left", "right")
NOISE = 0.01  # of the person's height in the image: a detector's usual error


def trials(source: Path, subject: str) -> Iterator[tuple[F64, F64]]:
    """Joints (T, 17, 3) and balls of the feet (T, 2, 3) of every trial, m, y up."""
    path = source / f"{subject}.zip"
    if not path.is_file():
        return
    for name, skeleton, motion in amc_trials(path, subject):
        ends, _ = asf_amc.forward_kinematics(skeleton, motion)
        feet = ends[:, [skeleton.names.index(f"{side[0]}foot") for side in SIDES]]
        yield asf_points(skeleton, motion, name)[:, :17], feet


def seen_from(yaw: float, points: F64, centre: F64) -> F64:
    """(..., 3) m in the frame of a level camera that follows the person `centre` (T, 3)."""
    forward = np.array([np.sin(yaw), 0, np.cos(yaw)])
    axes = np.stack([np.cross([0.0, -1, 0], forward), [0.0, -1, 0], forward])
    place = np.stack([centre[:, 0], np.full(len(centre), HEIGHT), centre[:, 2]], axis=1) - DISTANCE * forward
    return (points - place[:, None]) @ axes.T


def foot(ankle: F64, ray: F64, length: float, front: F64) -> F64:
    """(T, 3) from the ankle to where its toe's ray is `length` away from it, to the `front`; else the nearest point."""
    along = (ankle * ray).sum(axis=-1)
    room = np.sqrt(np.maximum(along**2 - (ankle**2).sum(axis=-1) + length**2, 0))
    both = [(along + sign * room)[:, None] * ray - ankle for sign in (-1, 1)]
    nearer = (both[0] * front).sum(axis=-1) > (both[1] * front).sum(axis=-1)
    return np.where(nearer[:, None], both[0], both[1])


def angle(a: F64, b: F64) -> F64:
    return np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=-1), (a * b).sum(axis=-1)))


def guessed(joints: F64, pixels: F64, camera: Camera, lengths: list[float]) -> F64:
    """(T, 2) degrees, from joints (T, 17, 3) m in the camera's frame and both toes (T, 2, 2) px."""
    rays = np.concatenate([pixels, np.ones((*pixels.shape[:2], 1))], axis=-1) @ np.linalg.inv(camera.matrix).T
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    turned = joints * (1, -1, -1)  # file axes
    front = pelvis_frame(turned[:, ORDER])[2] * (1, -1, -1)
    found = []
    for number, side in enumerate(SIDES):
        knee, ankle = (joints[:, H36M17.index(f"{side}_{name}")] for name in ("knee", "ankle"))
        found.append(angle(ankle - knee, foot(ankle, rays[:, number], lengths[number], front)))
    return np.stack(found, axis=1)


def probable(joints: F64, pixels: F64, camera: Camera, lengths: list[float]) -> F64:
    """(T, 2) degrees, as `guessed`, from pixels (T, 19, 2) of joints and toes."""
    ankles, knees = (joints[:, [H36M17.index(f"{side}_{name}") for side in SIDES]] for name in ("ankle", "knee"))
    seen = pixels[:, [H36M17.index(f"{side}_ankle") for side in SIDES]]
    points = np.stack([seen, seen, pixels[:, 17:]], axis=2)
    shank = float(np.median(np.linalg.norm(knees - ankles, axis=-1)))
    shape = FootShape(ankle_heights=(0, 0), forward_offsets=(0, float(np.mean(lengths)) / shank))
    feet = ImageFeet(points, np.ones(points.shape[:3], np.float32), np.diag(camera.matrix)[None, :2])
    return angle(ankles - knees, foot_frames(joints, feet, None, None, shape)[:, :, 0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True, help="the motion capture database: a ZIP file a subject")
    source = parser.parse_args().source
    rng, lifter, camera = np.random.default_rng(0), load_lifter("offline"), Camera.of(SIZE)
    errors: dict[str, list[F64]] = {}
    for subject in TEST_SUBJECTS:
        own: dict[str, list[F64]] = {"truth": []}
        for joints, feet in trials(source, subject):
            shanks = [
                joints[:, H36M17.index(f"{side}_ankle")] - joints[:, H36M17.index(f"{side}_knee")] for side in SIDES
            ]
            bones = [feet[:, n] - joints[:, H36M17.index(f"{side}_ankle")] for n, side in enumerate(SIDES)]
            lengths = [float(np.median(np.linalg.norm(bone, axis=-1))) for bone in bones]
            truth = np.stack([angle(a, b) for a, b in zip(shanks, bones, strict=True)], axis=1)
            for view in range(VIEWS):
                everything = seen_from(2 * np.pi * view / VIEWS, np.concatenate([joints, feet], axis=1), joints[:, 0])
                pixels = project(everything, camera.matrix)
                height = np.ptp(pixels[..., 1], axis=1)[:, None, None]
                noisy = pixels + rng.normal(0, 1, pixels.shape) * NOISE * height
                own["truth"].append(truth)
                exact = guessed(everything[:, :17], pixels[:, 17:], camera, lengths)
                own.setdefault("exact 3D of the leg, exact 2D of the toe", []).append(exact)
                for title, flat in (("lifted, exact 2D", pixels), ("lifted, 2D with errors", noisy)):
                    scores, times = np.ones((len(flat), 17), np.float32), np.arange(len(flat)) * EVERY / 120
                    person = Sequence2D(flat[:, :17].astype(np.float32), scores, times, camera, "h36m17")
                    answer = lifter.lift(person)
                    lifted = (answer.joints + answer.root[:, None]).astype(np.float64)
                    own.setdefault(title, []).append(guessed(lifted, flat[:, 17:], camera, lengths))
                    made = probable(lifted, flat, camera, lengths)
                    own.setdefault(f"{title}: leg and image", []).append(made)
        if not own["truth"]:
            continue
        joined = {title: np.concatenate(parts) for title, parts in own.items()}
        truth = joined.pop("truth")
        joined["the subject's mean angle, always"] = np.broadcast_to(truth.mean(axis=0), truth.shape)
        for title, said in joined.items():
            errors.setdefault(title, []).append((said - truth).ravel())
    print("| angle of the ankle | bias | mean error | 68 % | 95 % |\n|---|---|---|---|---|")
    for title, parts in errors.items():
        error = np.concatenate(parts)
        size = np.abs(error)
        most, nearly = np.percentile(size, [68, 95])
        print(f"| {title} | {error.mean():+.1f} | {size.mean():.1f} | {most:.1f} | {nearly:.1f} |")
    print(f"\n{len(error):,} angles")


if __name__ == "__main__":
    main()
