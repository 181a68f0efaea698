"""People before a camera that turns and zooms stand in the world of the camera that does neither."""

from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest
from walker import LENS, SIZE, filmed, walking

from pose.body.tracks import Selection
from pose.results import MotionInfo, NpzWriter, RunInfo, WorldInfo, load_poses
from pose.structures.camera import Camera, project
from pose.structures.camera_rotations import to_matrix
from pose.structures.refine import lengths_of
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import ROTATING, CameraMotion
from pose.world.clean import Steps
from pose.world.height import stature
from pose.world.run import PlacedRun

CAMERA = Camera.of(SIZE, LENS)
FRAMES = 120


def results_of(lifted, seen, turns=None, zooms=None):
    """What a camera turned and zoomed so would have given, without error; lifted with the first frame's lens."""
    results = []
    for t in range(len(lifted)):
        joints, root = lifted.joints[t].astype(np.float64), lifted.root[t].astype(np.float64)
        turn = np.eye(3) if turns is None else turns[t]
        zoom = 1.0 if zooms is None else zooms[t]
        joints, root = joints @ turn, root @ turn  # into the turned camera's axes
        lens = LENS.copy()
        lens[[0, 1], [0, 1]] *= zoom
        pixels = project(joints + root, lens)[None].astype(np.float32)
        near = (root * [1, 1, 1 / zoom])[None]
        box = np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1)
        ones = np.ones((1, 17), np.float32)
        people = People(t, t / 30, np.array([1]), box, ones[:, 0], pixels, ones)
        results.append(
            FrameResult(people, Poses3D(joints[None].astype(np.float32), near.astype(np.float32), 30 * ones))
        )
    return results


@pytest.fixture
def walk():
    return filmed(walking(FRAMES / 30), pitch=-6, turn=60, distance=7)[:2]


@pytest.fixture
def turns():
    t = np.arange(FRAMES) / 30
    vectors = np.stack([3 * np.sin(3 * t), 14 * np.sin(1.5 * t), 2 * np.sin(2 * t)], axis=1)
    return to_matrix(np.radians(vectors))


def placed(results, path=None, height=None):
    steps = Steps(path=path, heights={} if height is None else {None: height})
    with ExitStack() as stack:
        run = stack.enter_context(PlacedRun(results, H36M17, CAMERA, steps=steps))
        return list(run), run.world


def path_of(turns=None, zooms=None):
    return CameraPath(
        np.arange(FRAMES) / 30,
        np.tile(np.eye(3), (FRAMES, 1, 1)) if turns is None else turns,
        np.ones(FRAMES) if zooms is None else zooms,
        np.full(FRAMES, 0.001),
        np.zeros(FRAMES, np.int64),
    )


def joints_of(results):
    return np.array([result.placed.joints[0] for result in results], np.float64)


def test_rotating_camera_gives_the_world_of_a_static_one(walk, turns):
    still, world = placed(results_of(*walk))
    moving, found = placed(results_of(*walk, turns), path_of(turns))
    assert np.degrees(np.arccos(min(1, world.up @ found.up))) < 0.1
    off = np.linalg.norm(joints_of(moving) - joints_of(still), axis=-1)
    assert np.median(off) < 0.01
    assert off.max() < 0.04


@pytest.mark.parametrize("degrees", [75, 150])
def test_a_wide_pan_keeps_the_distance(walk, degrees):
    """The person ends far from the first view: there the depth along that view says nothing of the distance."""
    pan = np.radians(degrees) * np.linspace(0, 1, FRAMES)
    turns = to_matrix(np.stack([0 * pan, -pan, 0 * pan], axis=1))
    lifted, seen = walk
    roots = np.einsum("tij,tj->ti", turns, lifted.root)
    joints = np.einsum("tij,tkj->tki", turns, lifted.joints)
    orbiting = replace(lifted, joints=joints.astype(np.float32), root=roots.astype(np.float32))
    results = results_of(orbiting, seen, turns)
    height = stature(lengths_of(lifted.joints, lifted.sigma))
    moving, _ = placed(results, path_of(turns), height)
    pairs = zip(results, moving, strict=True)
    off = [np.linalg.norm(after.poses.root - before.poses.root) for before, after in pairs]
    assert np.median(off) < 0.05
    assert max(off) < 0.2


def test_zoom_does_not_change_distances(walk):
    zooms = np.linspace(1, 1.6, FRAMES)
    still, _ = placed(results_of(*walk))
    moving, _ = placed(results_of(*walk, zooms=zooms), path_of(zooms=zooms))
    off = np.linalg.norm(joints_of(moving) - joints_of(still), axis=-1)
    assert np.median(off) < 0.01
    assert off.max() < 0.05


def test_joints_and_root_stay_in_the_frame_of_their_image(walk, turns):
    """They are seen where the people are seen."""
    results = results_of(*walk, turns)
    moving, _ = placed(results, path_of(turns))
    for before, after in zip(results, moving, strict=True):
        pixels = project(after.poses.joints[0].astype(np.float64) + after.poses.root[0], LENS)
        assert np.abs(pixels - before.people.keypoints[0]).mean() < 8
        np.testing.assert_allclose(after.view.rotation, turns[before.index], atol=1e-9)


def test_files_and_exports_contain_the_static_world(walk, turns, tmp_path):
    results, world = placed(results_of(*walk, turns), path_of(turns))
    info = RunInfo(
        source="walk", fps=30.0, camera=CAMERA, skeleton=H36M17, world=WorldInfo(world),
        motion=MotionInfo(CameraMotion(ROTATING, 1.0), compensated=True),
    )  # fmt: skip
    with NpzWriter(tmp_path / "poses.npz", info) as writer:
        for result in results:
            writer.write(result)
    table = load_poses(tmp_path / "poses.npz")
    np.testing.assert_allclose(table.camera_rotation, turns, atol=1e-6)
    assert (table.run.motion.motion.kind, table.run.motion.compensated) == (ROTATING, True)
    # The documented formula, but for what raised people onto the floor.
    camera = table.joints3d + table.root[:, None]
    world_points = np.einsum("ij,tjk,tnk->tni", world.rotation, table.camera_rotation, camera) - [0, world.floor, 0]
    assert np.abs(world_points[..., [0, 2]] - table.placed.joints[..., [0, 2]]).max() < 1e-3
    recording = Selection(table, "walk")
    (span,) = recording.track(1, recording.timeline).spans()
    exported = recording.space.to_file(span.joints)
    assert np.abs(exported[..., [0, 2]] - table.placed.joints[..., [0, 2]]).max() < 1e-3
    camera_frame = Selection(table, "walk", space="camera")
    (span,) = camera_frame.track(1, camera_frame.timeline).spans()
    np.testing.assert_allclose(span.joints, camera, atol=1e-6)


def test_a_result_without_a_world_is_not_exported_into_one(walk, tmp_path):
    from pose.errors import UsageError

    info = RunInfo(
        source="walk", fps=30.0, camera=CAMERA, skeleton=H36M17, motion=MotionInfo(CameraMotion("unknown", 0.4))
    )
    with NpzWriter(tmp_path / "poses.npz", info) as writer:
        for result in results_of(*walk):
            writer.write(result)
    table = load_poses(tmp_path / "poses.npz")
    assert Selection(table, "walk").space.name == "camera"
    with pytest.raises(UsageError, match="camera's motion is unknown"):
        Selection(table, "walk", space="world")
