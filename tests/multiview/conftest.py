"""What the tests of results of several cameras share."""

import numpy as np
import pytest
import scenes

from benchmarks.cameras.virtual import film_scene
from pose.multiview.calibration_files import camera_json
from pose.multiview.motions import find_motions, find_world, fused_times, on_time_line, stature_of
from pose.multiview.results import MultiviewResults
from pose.multiview.rig import find_rig
from pose.results import RunInfo, WorldInfo
from pose.structures.camera import Camera
from pose.structures.skeletons import COCO17
from pose.structures.types import FrameResult, Poses3D

NAMES = ["left", "right"]


@pytest.fixture(scope="module")
def scene():
    """Two cameras, the first of which begins later, and one person: what `pose-run` has before it writes files."""
    points = scenes.person(1, seconds=4.0)
    views = scenes.cameras(people=[points], seed=2, seconds=4.0, offset=2.0, rates=(30.0,))
    views = [views[1], views[0]]  # the late one first
    tracks = [scenes.track(view, i, points, noise_px=1.0) for i, view in enumerate(views)]
    rig = find_rig(tracks, scenes.told(views), NAMES)
    line = fused_times(rig.cameras, [(track.times[0], track.times[-1]) for track in tracks], 30.0)
    rig = on_time_line(rig, line)
    motions = find_motions(rig, line)
    world = find_world(motions, line)
    first = [
        FrameResult(
            people, Poses3D(np.zeros((n, 17, 3), np.float32), np.ones((n, 3), np.float32), np.ones((n, 17), np.float32))
        )
        for people in film_scene(np.random.default_rng(0), [points], scenes.RATE, views[0], None)
        for n in [len(people)]
    ]
    cameras = [camera_json(*each) for each in zip(NAMES, rig.cameras, rig.accuracy, strict=True)]
    info = RunInfo(
        source="left.mp4, right.mp4", fps=line.fps, camera=Camera(rig.cameras[0].matrix, True, rig.cameras[0].size),
        skeleton=COCO17, world=WorldInfo(world, {1: (stature_of(motions[0]), 0.0)}), cameras=tuple(cameras),
    )  # fmt: skip
    results = MultiviewResults(rig, motions, line, world, [first], info)
    return views, points, rig, line, motions, results, info
