"""Faces, heads and wrists of people that two calibrated cameras see: how well the views agree.

    python benchmarks/two_views.py CALIBRATION.json view-a/poses.npz view-b/poses.npz

Results of `pose-run --hands --face` of each view alone; the clips start together. There is no reference for the head or
the wrist: agreement of two views bounds errors that differ between them, not those that they share. Directions are
compared in the frame of the calibration. Wrists of a person and frame with scores above 0.5 are triangulated, and the
error is the mean distance of both views from the reprojection.
"""

import argparse
import json
from pathlib import Path

import cv2
import numpy as np

from pose.body.character.heads import SMOOTH_S, SeenHeads, from_vectors, head_corrections, lifted_heads
from pose.body.gaze import directions_of
from pose.body.skeleton import ORDER
from pose.body.smoothing import smoothed
from pose.body.soles import focal_lengths
from pose.body.space import CAMERA_SPACE
from pose.results import PoseTable, load_poses
from pose.structures import rotations
from pose.structures.face_points import Faces

MIN_SCORE = 0.5
SLOW_S = 0.3  # of the correction that changes slowly
WRISTS = ("left_wrist", "right_wrist")
Rows = dict[int, int]


def heads(table: PoseTable, rows: np.ndarray, camera: dict) -> dict[str, np.ndarray]:
    """Directions (n, 3) of a person's head in the camera frame."""
    faces = Faces(table.face_keypoints[rows], table.face_scores[rows])
    places = CAMERA_SPACE.to_file((table.joints3d[rows] + table.root[rows][:, None]).astype(np.float64))
    seen = SeenHeads.of(table.skeleton, table.keypoints[rows], table.scores[rows], focal_lengths(table, rows))
    turns = smoothed(head_corrections(places, seen), table.time[rows], SMOOTH_S)
    found = {"face network": directions_of(faces, np.array(camera["K"]))}
    for kind, used in (("joints alone", 0 * turns), ("joints, nose, eyes, ears", turns)):
        head = rotations.multiply(lifted_heads(places[:, ORDER]), from_vectors(used))
        found[kind] = rotations.rotate(head, np.array([0.0, 0, 1])) * (1, -1, -1)
    return found


def wrists(table: PoseTable, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Wrists (n, 2, 2) px of a person; NaN where body or hand is not seen."""
    at = [table.skeleton.index(name) for name in WRISTS]
    body, hand = table.keypoints[rows][:, at].astype(float), table.hand_keypoints[rows][:, :, 0].astype(float)
    known = (table.scores[rows][:, at] > MIN_SCORE) & (table.hand_scores[rows].max(axis=2) > 0)
    gap = np.where(known[..., None], hand - body, 0)
    times = table.time[rows]
    near = np.exp(-(((times[:, None] - times) / SLOW_S) ** 2) / 2)
    slow = np.einsum("st,tic->sic", near, gap) / np.maximum(near @ known, 1e-9)[..., None]
    found = {"body": body, "hand": hand, "mean of both": (body + hand) / 2, "body, corrected slowly": body + slow}
    return {kind: np.where(known[..., None], points, np.nan) for kind, points in found.items()}


def reprojection(pixels: list[np.ndarray], cameras: list[dict]) -> np.ndarray:
    """(n,) px, mean over two views of the distance of points (n, 2) px from the triangulated point's image."""
    flat, matrices = [], []
    for points, camera in zip(pixels, cameras, strict=True):
        matrix, distortion = np.array(camera["K"]), np.array(camera["distortion_k1_k2_p1_p2"])
        flat.append(cv2.undistortPoints(points[:, None], matrix, distortion, P=matrix)[:, 0])
        matrices.append(matrix @ np.column_stack([camera["R"], camera["t"]]))
    there = cv2.triangulatePoints(*matrices, *(points.T for points in flat))
    errors = []
    for points, matrix in zip(flat, matrices, strict=True):
        x, y, z = matrix @ there
        errors.append(np.hypot(x / z - points[:, 0], y / z - points[:, 1]))
    return np.mean(errors, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("calibration", type=Path)
    parser.add_argument("results", type=Path, nargs=2)
    args = parser.parse_args()
    known = json.loads(args.calibration.read_text())["cameras"]
    cameras = [known[path.parent.name] for path in args.results]
    tables = [load_poses(path) for path in args.results]
    for person in np.intersect1d(tables[0].id, tables[1].id):
        frames = np.intersect1d(*(table.frame_index[table.id == person] for table in tables))
        rows = [np.flatnonzero((t.id == person) & np.isin(t.frame_index, frames)) for t in tables]
        print(f"person {person}, {len(frames)} frames")
        both = [heads(*case) for case in zip(tables, rows, cameras, strict=True)]
        for kind in both[0]:
            ways = [one[kind] @ np.array(camera["R"]) for one, camera in zip(both, cameras, strict=True)]
            seen = np.isfinite(ways[0]).all(axis=1) & np.isfinite(ways[1]).all(axis=1)
            if seen.any():
                off = np.degrees(np.arccos(np.clip((ways[0] * ways[1]).sum(axis=1)[seen], -1, 1)))
                print(f"| {kind} | {seen.sum()} | {np.median(off):.1f} | {np.percentile(off, 90):.1f} degrees |")
        points = [wrists(*case) for case in zip(tables, rows, strict=True)]
        for kind in points[0]:
            pair = [one[kind].reshape(-1, 2) for one in points]
            seen = np.isfinite(pair[0]).all(axis=1) & np.isfinite(pair[1]).all(axis=1)
            if seen.any():
                error = reprojection([one[seen] for one in pair], cameras)
                print(f"| wrist: {kind} | {seen.sum()} | {np.median(error):.1f} | {np.percentile(error, 90):.1f} px |")


if __name__ == "__main__":
    main()
