"""Extraction of the 2D keypoints of one person from a result, for `pose-lift` and `pose-eval sequence`."""

from pathlib import Path

import numpy as np

from pose.errors import UsageError
from pose.results import load_poses
from pose.structures.types import Array
from pose.utils.archives import write_arrays
from pose.utils.written_files import writing


def extract_person(poses: Path, person: int | None, out: Path) -> tuple[int, int]:
    """Write one person's 2D keypoints for `pose-lift`; return the id (default: most frames) and frame count."""
    # The file has all frames of the result. Frames without that person have scores of 0.
    table = load_poses(poses)
    if table.camera is None:
        raise UsageError(f"{poses}: contains no 2D keypoints; give the poses.npz of pose-run")
    ids, counts = np.unique(table.id, return_counts=True)
    if not len(ids):
        raise UsageError(f"{poses}: contains no person")
    chosen = int(ids[counts.argmax()]) if person is None else person
    if chosen not in ids:
        raise UsageError(f"--person: {chosen} is not in {poses}; it has {', '.join(map(str, ids))}")
    rows = table.id == chosen
    places = np.searchsorted(table.frames, table.frame_index[rows])
    joints = len(table.skeleton)
    keypoints = np.zeros((len(table), joints, 2), np.float32)
    scores = np.zeros((len(table), joints), np.float32)
    keypoints[places], scores[places] = table.keypoints[rows], table.scores[rows]
    arrays: dict[str, Array] = {
        "keypoints": keypoints,
        "scores": scores,
        "timestamps": table.timestamps,
        "image_size": np.array(table.camera.size),
        "skeleton": np.array(table.skeleton.name),
    }
    if table.camera.known:
        arrays["intrinsics"] = table.camera.matrix
    with writing([out]):
        write_arrays(out, arrays, compressed=True)
    return chosen, int(rows.sum())
