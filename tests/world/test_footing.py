"""Feet that stand support a compensated camera; feet that slide contradict it."""

from dataclasses import replace

import numpy as np
import pytest
from walker import ANKLES, filmed, standing, walking

from pose.structures.camera import Camera, project
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.world.camera_motion.decision import Decision
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import ROTATING, UNKNOWN, ZOOMING, CameraMotion
from pose.world.clean import Steps
from pose.world.footing import check_with_feet, find_rest_densities, lower_foot_velocities
from pose.world.run import PlacedRun

CERTAIN = CameraMotion(ROTATING, 1.0, zoom=1.0, focal_ratio=1.0, focal_sigma=0.01)
UNCERTAIN = CameraMotion(ZOOMING, 1.0, zoom=1.2)


def path_of(times):
    count = len(times)
    return CameraPath(
        times, np.tile(np.eye(3), (count, 1, 1)), np.ones(count), np.full(count, 0.001), np.zeros(count, np.int64)
    )


def run_of(world, drift=(0.0, 0.0, 0.0), feet=1.0):
    """The footing of a person that a rotation does not explain: everything moves by `drift` m/s."""
    lifted, seen, _ = filmed(world, pitch=-6, turn=60, distance=6)
    times, results = lifted.times, []
    for t, time in enumerate(times.tolist()):
        root = (lifted.root[t] + time * np.array(drift)).astype(np.float32)
        pixels = project(lifted.joints[t] + root, seen.camera.matrix)[None].astype(np.float32)
        ones = np.ones((1, 17), np.float32)
        scores = ones.copy()
        scores[:, ANKLES] = feet
        box = np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1)
        people = People(t, time, np.array([1]), box, ones[:, 0], pixels, scores)
        results.append(FrameResult(people, Poses3D(lifted.joints[t][None], root[None], 30 * ones)))
    with PlacedRun(results, H36M17, Camera.of(seen.camera.size, seen.camera.matrix), Steps(path=path_of(times))) as run:
        return run.foot_velocities


def decided(motion, footing):
    return check_with_feet(Decision(motion, path_of(np.arange(3.0)), check_feet=True), footing)


@pytest.mark.parametrize("world", [standing(), walking(4.0)], ids=["standing", "walking"])
def test_standing_feet_support_the_camera_motion(world):
    footing = run_of(world)
    assert find_rest_densities(footing).at_rest.min() > 0.8
    for motion in (CERTAIN, UNCERTAIN):
        found = decided(motion, footing).motion
        assert found.kind == motion.kind
        assert found.drift < 0.05


@pytest.mark.parametrize("drift", [(0.4, 0, 0), (0, 0, 0.8)])
@pytest.mark.parametrize("world", [standing(), walking(4.0)], ids=["standing", "walking"])
def test_sliding_feet_end_the_world(world, drift):
    found = decided(CERTAIN, run_of(world, drift))
    assert (found.motion.kind, found.path) == (UNKNOWN, None)
    assert "standing feet slide" in found.problem


def test_a_constant_slow_drift_ends_the_world():
    """Each window alone would support the camera."""
    rng = np.random.default_rng(0)
    times = np.arange(0, 30, 1 / 30)
    velocities = rng.normal((0.17, 0), 0.12, (len(times), 2))
    samples = np.column_stack([times, velocities, np.full(len(times), 1 / 30)])
    assert (find_rest_densities([samples]).at_rest > 0.35).all()
    found = decided(CERTAIN, [samples])
    assert found.motion.kind == UNKNOWN
    assert "standing feet" in found.problem
    slower = samples - [0, 0.09, 0, 0]
    assert decided(CERTAIN, [slower]).path is not None


def test_without_feet_the_background_must_be_certain():
    assert decided(CERTAIN, []).path is not None
    found = decided(UNCERTAIN, [np.zeros((0, 6))])
    assert found.motion.kind == UNKNOWN
    assert "no feet stand" in found.problem


@pytest.mark.parametrize(
    ("change", "certain"),
    [({}, True), ({"focal_ratio": 0.8}, False), ({"focal_sigma": 0.3}, False), ({"zoom": 1.1}, False),
     ({"focal_ratio": float("nan")}, False), ({"kind": "shaking", "focal_ratio": float("nan")}, True)],
)  # fmt: skip
def test_reliable_backgrounds_are_recognised(change, certain):
    assert replace(CERTAIN, **change).excludes_translation is certain


def test_few_frames_give_no_verdict():
    assert lower_foot_velocities(np.zeros((2, 17, 3)), np.array([0.0, 0.1]), np.ones((2, 2), bool)).shape == (0, 6)
    assert len(find_rest_densities([]).at_rest) == 0


def test_feet_out_of_view_support_no_camera():
    footing = run_of(standing(), feet=0.0)
    assert sum(map(len, footing)) == 0
    assert decided(UNCERTAIN, footing).motion.kind == UNKNOWN
    assert decided(CERTAIN, footing).motion.kind == ROTATING
