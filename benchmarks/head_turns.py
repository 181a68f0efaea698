"""Where the heads of characters face, against the face network: with joints alone, and with nose, eyes and ears.

    python benchmarks/head_turns.py dance/poses.npz [...]

Results of `pose-run --face`. The face network sees the same images but is another network, and is not used for the
heads measured here. Jitter is the median second difference of the direction.
"""

import argparse
from pathlib import Path

import numpy as np

from pose.body.character.heads import SMOOTH_S, SeenHeads, from_vectors, head_corrections, lifted_heads
from pose.body.gaze import directions_of
from pose.body.skeleton import ORDER
from pose.body.smoothing import smoothed
from pose.body.soles import focal_lengths
from pose.body.space import CAMERA_SPACE
from pose.results import load_poses
from pose.structures import rotations
from pose.structures.face_points import Faces


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    print("| clip | faces | from | off the face, median | mean | yaw, sd | pitch, mean | jitter |\n" + "|---" * 8 + "|")
    for path in parser.parse_args().results:
        table = load_poses(path)
        for person in np.unique(table.id):
            rows = np.flatnonzero(table.id == person)
            faces = Faces(table.face_keypoints[rows], table.face_scores[rows])
            if faces.detected.sum() < 20:
                continue
            goal = CAMERA_SPACE.to_file(directions_of(faces, table.camera.matrix))[faces.detected]
            places = CAMERA_SPACE.to_file((table.joints3d[rows] + table.root[rows][:, None]).astype(np.float64))
            points = table.keypoints[rows], table.scores[rows], focal_lengths(table, rows)
            turns = head_corrections(places, SeenHeads.of(table.skeleton, *points))
            for kind, used in (("joints", 0 * turns), ("and points", smoothed(turns, table.time[rows], SMOOTH_S))):
                head = rotations.multiply(lifted_heads(places[:, ORDER]), from_vectors(used))
                way = rotations.rotate(head, np.array([0.0, 0, 1]))
                shake = np.degrees(np.median(np.linalg.norm(np.diff(way, 2, axis=0), axis=1)))
                off = np.degrees(np.arccos(np.clip((way[faces.detected] * goal).sum(axis=1), -1, 1)))
                yaw, pitch = (one - two for one, two in zip(angles(way[faces.detected]), angles(goal), strict=True))
                print(
                    f"| {path.parent.name}, {person} | {faces.detected.sum()} | {kind} | {np.median(off):.1f} | "
                    f"{off.mean():.1f} | {np.std((yaw + 180) % 360 - 180):.1f} | {pitch.mean():+.1f} | {shake:.2f} |"
                )


def angles(way: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Yaw and pitch (T,) in degrees of directions (T, 3)."""
    return np.degrees(np.arctan2(way[:, 0], way[:, 2])), np.degrees(np.arcsin(np.clip(way[:, 1], -1, 1)))


if __name__ == "__main__":
    main()
