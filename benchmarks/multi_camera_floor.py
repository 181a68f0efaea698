"""What a common floor could correct in the calibration of two cameras, on the scenes of benchmarks/multi_camera.py.

    python benchmarks/multi_camera_floor.py motion.npz --scenes 4

Feet that stand have ankles at one height. Printed for cameras found from the people and for exact cameras: the standard
deviation of these heights, and the angle between the vertical of the people and the plane through these ankles. Where
both cameras give the same, the deviation is of the 2D and a floor in the calibration has nothing to correct.
"""

import argparse
from pathlib import Path

import multi_camera as base
import numpy as np
from pose_datasets import mocap
from pose_datasets.several_cameras import given_camera

from pose.multiview.calibrate import Known
from pose.multiview.motions import contacts_of, find_motions, find_world, fused_times, on_time_line
from pose.multiview.rig import find_rig
from pose.multiview.types import ViewCamera
from pose.world.gravity import ANKLES

CONTACT = 0.5  # probability


def floor_of(scene, cameras, known):
    """Standard deviation of the heights of standing ankles, mm, and the tilt of the plane through them, degrees."""
    rig = find_rig(scene.tracks, cameras, ["cam1", "cam2"], known)
    line = fused_times(rig.cameras, [(0.0, float(view.times[-1])) for view in scene.views], 30.0)
    motions = find_motions(on_time_line(rig, line), line)
    world = find_world(motions, line)
    standing = contacts_of(motions[0], world, line) > CONTACT
    ankles = world.place(motions[0].joints[:, ANKLES].astype(float))[standing]
    plane = np.c_[ankles[:, [0, 2]], np.ones(len(ankles))]
    slope = np.linalg.lstsq(plane, ankles[:, 1], rcond=None)[0][:2]
    return 1000 * ankles[:, 1].std(), np.degrees(np.arctan(np.hypot(*slope)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("motion", type=Path)
    parser.add_argument("--scenes", type=int, default=4)
    options = parser.parse_args()
    together = base.recordings(mocap.split(mocap.load_clips(options.motion), "test"), 1, 8.0)
    for number in range(options.scenes):
        scene = base.scene_of(together, np.random.default_rng((2, 1, number)), 2, 8.0)
        told = [ViewCamera.of(given_camera(view)) for view in scene.views]
        found = floor_of(scene, told, None)
        exact = floor_of(scene, base.exact(scene.views), Known(poses=True, clocks=True))
        print(
            f"scene {number}: found {found[0]:.0f} mm, {found[1]:.1f} degrees; exact {exact[0]:.0f} mm, {exact[1]:.1f}"
        )


if __name__ == "__main__":
    main()
