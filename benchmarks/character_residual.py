"""How far characters are from the joints that they are posed on: of results, and of the motion capture test subjects.

    python benchmarks/character_residual.py dance/poses.npz street/poses.npz --data motion.npz

Test subjects are seen by virtual cameras with a detector's errors and lifted by the offline network; --data is the
output of `pose-prepare mocap`. A character is fitted to each person or subject. Lifted joints of the network have no
constant bone lengths; those of results have.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pose_datasets.mocap import TEST_SUBJECTS, load_clips, split
from pose_datasets.synthesis import evaluation_batches

from pose.body.character.look import CharacterMotion, character_of
from pose.body.character.model import body_model
from pose.body.character.posing import joints_of, pose_character
from pose.body.character.rest import make_character
from pose.body.character.shape import fit_shape, lengths_of_body
from pose.body.skeleton import fit_body
from pose.body.tracks import open_recording
from pose.structures.skeletons import H36M17

F64 = NDArray[np.float64]
BATCHES = 4  # of a subject


def away(points: F64) -> tuple[F64, float]:
    """(T, 17) mm between joints (T, 17, 3) m in file axes and the character; processor ms a frame for its pose."""
    model, body = body_model(), fit_body([points])
    character = make_character(model, fit_shape(model, lengths_of_body(body)), body)
    begun = time.process_time()
    posed = pose_character(character, points)
    spent = 1000 * (time.process_time() - begun) / len(points)
    return 1000 * np.linalg.norm(joints_of(character, posed) - points, axis=-1), spent


def of_results(path: Path) -> list[tuple[F64, float]]:
    """As exports pose them: heads and feet with their points in the image."""
    recording, found = open_recording(path), []
    for person in np.unique(recording.table.id):
        track = recording.track(int(person), recording.timeline)
        if track is not None:
            motion = CharacterMotion(track, character_of(track), recording.space)
            begun = time.process_time()
            frames = sum(len(span.times) for span, _ in motion.spans())
            spent = 1000 * (time.process_time() - begun) / frames
            found.append((1000 * np.concatenate(motion.distances), spent))
    return found


def of_subject(clips: list, network: object) -> list[tuple[F64, float]]:
    """Each clip before each camera is a person of its own: the network does not know how tall they are."""
    from pose.training.measure import lift_batch

    found = []
    for batch, _ in zip(evaluation_batches(clips, condition="detector"), range(BATCHES), strict=False):
        joints = lift_batch(network, batch).joints.numpy().astype(np.float64) * (1, -1, -1)
        found += [away(body[valid]) for body, valid in zip(joints, batch.valid, strict=True) if valid.any()]
    return found


def print_residuals(name: str, found: list[tuple[F64, float]]) -> None:
    distances, spent = np.concatenate([one for one, _ in found]), np.mean([ms for _, ms in found])
    joints = np.median(distances, axis=0)
    worst = ", ".join(f"{H36M17.names[at]} {joints[at]:.0f}" for at in np.argsort(-joints)[:4])
    print(
        f"| {name} | {len(found)} | {len(distances)} | {np.median(distances):.1f} | {np.percentile(distances, 95):.0f} "
        f"| {worst} | {spent:.2f} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="*")
    parser.add_argument("--data", type=Path)
    args = parser.parse_args()
    print("| of | people | frames | median mm | 95 % | medians of the farthest joints | ms a frame |")
    print("|---|---|---|---|---|---|---|")
    for path in args.results:
        print_residuals(path.parent.name, of_results(path))
    if args.data is not None:
        from pose.lifting.torch_lifter import TorchLifter

        network, clips = TorchLifter.load("offline").network, split(load_clips(args.data), "test")
        for subject in TEST_SUBJECTS:
            if own := [clip for clip in clips if clip.subject == subject]:
                print_residuals(subject, of_subject(own, network))


if __name__ == "__main__":
    main()
