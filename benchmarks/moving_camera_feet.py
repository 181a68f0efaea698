"""How often standing feet tell a carried camera from one that turns: docs/studies/moving-camera.md.

    python benchmarks/moving_camera_feet.py --mocap clips.npz [--part test] [--every 3]

Motion capture seen by fixed virtual cameras with a detector's errors and an unknown field of view, as in
`benchmarks/world.py`. What a carried camera leaves when its apparent rotation is compensated is a constant velocity of
all people; it is added to the lifted path and to the 2D. 0 m/s is a camera that keeps its place. A world is kept where
`pose.world.footing` keeps it, for a background that is certain and for one that is not. The rules were chosen on
training subjects.
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pose_datasets.fixed_views import fixed_views
from pose_datasets.mocap import load_clips, split
from world import lifted, unknown_camera

from pose.world.camera_motion.decision import Decision
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import ROTATING, ZOOMING, CameraMotion
from pose.world.clean import Steps, clean
from pose.world.footing import check_with_feet
from pose.world.person import Person

F64 = NDArray[np.float64]

CERTAIN = CameraMotion(ROTATING, 1.0, zoom=1.0, focal_ratio=1.0, focal_sigma=0.0)
UNCERTAIN = CameraMotion(ZOOMING, 1.0, zoom=1.2)
SPEEDS = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)  # m/s


def drifting(person: Person, velocity: F64) -> Person:
    """The person with a constant velocity (3,) m/s more, in the camera's axes."""
    root = person.root + (person.times - person.times[0])[:, None] * velocity
    before, after = (person.joints + place[:, None] for place in (person.root, root))
    shift = after[..., :2] / after[..., 2:] - before[..., :2] / before[..., 2:]
    rays = person.rays + np.where(person.scores[..., None] > 0, shift, 0.0)
    return Person(person.joints, root, person.sigma, person.times, rays, person.scores)


def still(times: F64) -> CameraPath:
    count = len(times)
    return CameraPath(
        times, np.tile(np.eye(3), (count, 1, 1)), np.ones(count), np.full(count, 1e-3), np.zeros(count, np.int64)
    )


def kept(person: Person, motion: CameraMotion) -> bool:
    """Whether there is a world."""
    path = still(person.times)
    _, cleaned = clean({1: person}, person.times, Steps(camera_known=False, path=path))
    return not check_with_feet(Decision(motion, path, check_feet=True), [cleaned[1].foot_velocities]).problem


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mocap", type=Path, required=True, help="a file of pose-prepare")
    parser.add_argument("--part", choices=("train", "validation", "test"), default="test")
    parser.add_argument("--every", type=int, default=1, help="only each so-many-th piece")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each piece")
    options = parser.parse_args()
    views = fixed_views(split(load_clips(options.mocap), options.part), detector=True)[:: options.every]
    people = [one for _, _, one in lifted([unknown_camera(view) for view in views], "offline")]
    short = [np.searchsorted(one.times, one.times[0] + options.seconds) for one in people]
    people = [
        Person(o.joints[:n], o.root[:n], o.sigma[:n], o.times[:n], o.rays[:n], o.scores[:n])
        for o, n in zip(people, short, strict=True)
    ]
    print(f"{len(people)} pieces, {sum(map(len, people))} frames")
    print("| m/s | across, certain % | across, uncertain % | along, certain % | along, uncertain % |")
    print("|---|---|---|---|---|")
    for speed in SPEEDS:
        cells = [
            100 * float(np.mean([kept(drifting(one, speed * np.array(axis)), motion) for one in people]))
            for axis in ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
            for motion in (CERTAIN, UNCERTAIN)
        ]
        print(f"| {speed:g} | " + " | ".join(f"{cell:.0f}" for cell in cells) + " |", flush=True)


if __name__ == "__main__":
    main()
