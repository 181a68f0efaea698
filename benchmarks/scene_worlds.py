"""Gravity of scenes filmed by cameras of different tilt: one for all scenes, and one for each.

    python -m benchmarks.scene_worlds RESULT [RESULT ...]

RESULT: `poses.npz` of a camera that stands still, of `pose-run --no-world --camera fixed`. The second half of its
frames, after a cut and with other ids, is turned as a camera of another tilt and roll sees it. The truth is the gravity
of the clip without the cut. docs/studies/moving-camera.md.
"""

import argparse
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from benchmarks.moving_camera import matrices, turned
from pose.results import PoseTable, load_poses
from pose.structures.camera import Camera
from pose.structures.camera_rotations import to_matrix
from pose.structures.types import FrameResult
from pose.world.run import PlacedRun

F64 = NDArray[np.float64]

OTHERS = 1000  # added to the ids of the second scene
TURNS = ((0.0, 0.0), (5.0, 0.0), (15.0, 5.0), (25.0, 10.0))  # degrees, tilt and roll of the second camera


def clip(table: PoseTable, tilt: float, roll: float, cut: bool) -> tuple[list[FrameResult], F64]:
    """The results with a second scene, with or without its cut, and the rotation (3, 3) of its camera."""
    half = len(table) // 2
    vectors = np.zeros((len(table), 3))
    vectors[half:] = tilt, 0.0, roll
    results = turned(table, vectors, np.ones(len(table)))
    for at in range(half, len(table)):
        people = results[at].people
        people = replace(people, ids=people.ids + OTHERS, cut=cut and at == half)
        results[at] = replace(results[at], people=people)
    return results, to_matrix(np.radians(np.array([tilt, 0.0, roll])))


def errors(table: PoseTable, tilt: float, roll: float, cut: bool, true_up: F64) -> list[float]:
    """Degrees by which gravity is off in each half of a clip."""
    results, second = clip(table, tilt, roll, cut)
    assert table.camera is not None
    lens = Camera(matrices(table.camera, np.ones(1))[0], True, table.camera.size)
    with PlacedRun(results, table.skeleton, lens, join=False) as run:
        begin, ups = results[len(table) // 2].time, {}
        for scene in run.scenes:
            ups[scene.begin >= begin] = scene.ground.world.up
    found = [ups.get(late, run.world.up) for late in (False, True)]
    return [
        float(np.degrees(np.arccos(np.clip(turn @ up @ true_up, -1, 1))))
        for turn, up in zip((np.eye(3), second), found, strict=True)
    ]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+")
    options = parser.parse_args()
    print("| clip | tilt, roll of the second camera ° | gravity of all scenes together | gravity of each scene |")
    print("|---|---|---|---|")
    for path in options.results:
        table = load_poses(path)
        assert table.camera is not None
        lens = Camera(matrices(table.camera, np.ones(1))[0], True, table.camera.size)
        with PlacedRun(clip(table, 0, 0, cut=False)[0], table.skeleton, lens, join=False) as run:
            true_up = run.world.up
        for tilt, roll in TURNS:
            cells = (
                " and ".join(f"{off:.1f}" for off in errors(table, tilt, roll, cut, true_up)) for cut in (False, True)
            )
            print(f"| {path} | {tilt:g}, {roll:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
