"""How often standing feet tell a carried camera from one that turns, live: docs/studies/moving-camera.md.

    python benchmarks/live_feet.py --mocap clips.npz [--part test] [--every 3]

As `benchmarks/moving_camera_feet.py`, with the streaming lifter and past frames only. The background says that the
camera turns. Printed is the share of the pieces that keep their world to the end, and the time until it ends.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pose_datasets.fixed_views import FixedView, fixed_views
from pose_datasets.mocap import load_clips, split
from world import unknown_camera
from world_live import lifted

from pose.lifting.load import load_lifter
from pose.live.camera import WatchedWorld
from pose.structures.camera_rotations import to_matrix
from pose.structures.skeletons import get_skeleton
from pose.structures.types import NO_LINK, Background, FrameResult
from pose.world.camera_motion.watch import CameraWatch
from pose.world.clean import Steps

F64 = NDArray[np.float64]

SPEEDS = (0.0, 0.1, 0.2, 0.5, 1.0)  # m/s
PAN_DEGREES, PAN_S = 6.0, 6.0  # to and fro
# shift, parallax, lens and its sigma
CERTAIN, UNCERTAIN, UNTESTED = (0.0, 0.0, 1.0, 0.02), (0.0, 0.0, 1.3, 0.02), (0.0,)


def kept(view: FixedView, results: list[FrameResult], velocity: F64, test: tuple[float, ...]) -> float:
    """Seconds until the world ends; infinite if it does not."""
    watch = CameraWatch()
    world, skeleton = WatchedWorld(view.seen.camera, Steps(camera_known=False), watch), get_skeleton(view.seen.skeleton)
    begin, lens = results[0].time, view.seen.camera.matrix
    for number, result in enumerate(results):
        seconds = result.time - begin
        angle = np.radians(PAN_DEGREES) * np.sin(2 * np.pi * seconds / PAN_S)
        turn, links = to_matrix(np.array([0.0, angle, 0.0])), np.full((2, 6), NO_LINK, np.float64)
        links[0] = [0, 0, angle, 0, 0, 1e-3]
        background = Background(links, 50, 1.0, *(test if number % 15 == 14 else UNTESTED))
        carried = seconds * velocity
        root = result.poses.root + carried
        shift = root[0] / root[0, 2] - result.poses.root[0] / result.poses.root[0, 2]
        rays = np.concatenate([result.people.keypoints, np.ones((1, result.people.keypoints.shape[1], 1))], axis=2)
        seen = (rays @ np.linalg.inv(lens).T + shift) @ turn @ lens.T
        people = replace(
            result.people, keypoints=(seen[..., :2] / seen[..., 2:]).astype(np.float32), background=background
        )
        joints = (result.poses.joints @ turn).astype(np.float32)
        poses = replace(result.poses, joints=joints, root=(root @ turn).astype(np.float32))
        if world.place(FrameResult(people, poses), skeleton)[1] is None:
            return float(seconds)
    return float("inf")


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", type=Path, required=True, help="a file of pose-prepare")
    parser.add_argument("--part", choices=("train", "validation", "test"), default="test")
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th piece")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each piece")
    parser.add_argument("--least", type=float, default=9.0, help="s, no shorter pieces")
    parser.add_argument("--lifter", default="stream", help="a streaming lifter")
    options = parser.parse_args()
    views = fixed_views(split(load_clips(options.mocap), options.part), detector=True)
    views = [view for view in views if np.ptp(view.seen.times) >= options.least][:: options.every]
    network = load_lifter(options.lifter, "cpu")
    pieces = []
    for view in map(unknown_camera, views):
        results = lifted(view, network)
        pieces.append((view, [one for one in results if one.time <= results[0].time + options.seconds]))
    print(f"{len(pieces)} pieces, {sum(len(results) for _, results in pieces)} frames")
    print(
        "| m/s | "
        + " | ".join(
            f"{way}, {name}: kept %, ends after s" for way in ("across", "along") for name in ("certain", "uncertain")
        )
        + " |"
    )
    print("|---|---|---|---|---|")
    for speed in SPEEDS:
        cells = []
        for axis in ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0)):
            for test in (CERTAIN, UNCERTAIN):
                ends = np.array([kept(view, results, speed * np.array(axis), test) for view, results in pieces])
                over = ends[np.isfinite(ends)]
                after = f"{np.median(over):.1f}" if len(over) else "-"
                cells.append(f"{100 * np.isinf(ends).mean():.0f}, {after}")
        print(f"| {speed:g} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
