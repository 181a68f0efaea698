"""The 3D scene's geometry, and the player behind the window."""

import math
from dataclasses import replace

import numpy as np
import pytest
from pose_fakes import STANDING, run_info, seen_result

from pose.results import NpzWriter, WorldInfo, load_poses
from pose.structures.colours import SIDE_COLOURS
from pose.structures.skeletons import H36M17
from pose.structures.types import Placed
from pose.view.open3d_scene import shot_list
from pose.view.open3d_window import Player
from pose.view.scene import SceneData, body_mesh, grid_lines, mark_mesh, orbit_eye
from pose.world.frame import GIVEN, World


@pytest.fixture
def stage(tmp_path):
    with NpzWriter(tmp_path / "poses.npz", run_info(H36M17)) as writer:
        for i, time in enumerate([0.0, 0.1, 0.2, 0.5, 0.6]):
            writer.write(seen_result([(i / 2, 0, 4.0)] if i != 2 else [], index=i, time=time))
    return SceneData(load_poses(tmp_path / "poses.npz"))


def _stood():
    return (STANDING @ np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]], np.float32)).astype(np.float32)


def test_scene_places_people_on_the_floor(stage):
    ids, placed = stage.people(1)
    assert ids == [1]
    assert placed[0, 0, :2] == pytest.approx([0.5, 4.0], abs=0.05)
    assert placed[0, :, 2].min() == pytest.approx(0.08, abs=0.02)
    assert placed[0, H36M17.index("head"), 2] > 1.5
    assert stage.people(2)[0] == []
    assert stage.middle[:2] == pytest.approx([1.0, 4.0], abs=0.1)


@pytest.mark.parametrize("mark", ["doubtful", "partial"])
def test_unreliable_positions_do_not_stretch_the_scene(tmp_path, mark):
    """A phantom far behind two people, and a person who enters the view."""
    world = WorldInfo(World(np.eye(3), 0.0, GIVEN, 1.0))
    with NpzWriter(tmp_path / "poses.npz", replace(run_info(H36M17), world=world)) as writer:
        for i in range(10):
            seen = seen_result([(0, 0, 4.0), (1, 0, 4.0), (30, 0, 60.0)], index=i, time=i / 10)
            marks = {mark: np.array([False, False, True])}
            placed = replace(Placed.unknown(3), joints=seen.poses.joints + seen.poses.root[:, None], **marks)
            writer.write(replace(seen, placed=placed))
    assert SceneData(load_poses(tmp_path / "poses.npz")).radius < 2


def test_a_body_is_a_closed_surface_around_its_joints():
    joints = _stood()
    mesh = body_mesh(joints)
    assert mesh.triangles.max() == len(mesh.vertices) - 1
    assert np.linalg.norm(mesh.normals, axis=1) == pytest.approx(1, abs=1e-5)
    nearest = np.linalg.norm(mesh.vertices[:, None] - joints[None], axis=2).min(axis=1)
    assert nearest.max() < 0.1
    colours = {tuple(row) for row in np.rint(mesh.colours * 255).astype(int).tolist()}
    assert colours == set(SIDE_COLOURS.values())


def test_left_mesh_vertices_are_on_the_left():
    mesh = body_mesh(_stood())
    left = np.abs(mesh.colours * 255 - SIDE_COLOURS["left"]).max(axis=1) < 1
    right = np.abs(mesh.colours * 255 - SIDE_COLOURS["right"]).max(axis=1) < 1
    assert mesh.vertices[left, 0].mean() > 0.1  # who faces the camera has the left hand on its right
    assert mesh.vertices[right, 0].mean() < -0.1


def test_floor_mark_is_below_the_pelvis():
    joints = _stood() + np.array([2, 5, 1], np.float32)
    mesh = mark_mesh(joints, 3)
    assert np.ptp(mesh.vertices[:, 2]) == 0
    assert mesh.vertices[:, :2].mean(axis=0) == pytest.approx([2, 5], abs=1e-4)


def test_the_grid_has_a_line_every_metre():
    points, pairs = grid_lines(np.array([0.3, 4.2, 0.9], np.float32), 2.0)
    assert (points[:, 2] == 0).all()
    assert (points == np.rint(points)).all()
    lengths = np.linalg.norm(points[pairs[:, 0]] - points[pairs[:, 1]], axis=1)
    assert (lengths == lengths[0]).all()


@pytest.mark.parametrize("azimuth", [0.0, 1.0, -2.0])
def test_view_frames_the_scene_under_its_angle(azimuth):
    middle = np.array([1, 2, 0.9])
    eye = orbit_eye(middle, 2.0, azimuth, 0.3, math.radians(40))
    distance = np.linalg.norm(eye - middle)
    assert math.asin(2.0 / distance) == pytest.approx(math.radians(20))
    assert eye[2] > middle[2]


def test_player_follows_timestamps(stage):
    player = Player(stage)
    shown = []
    for now in np.arange(10.0, 10.61, 0.05):
        player.tick(float(now) + 1e-6)
        shown.append(player.position)
    assert shown == [0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 3, 3, 4]
    player.tick(10.8)
    assert player.position == 0  # from the start again


def test_the_player_pauses_steps_seeks_and_changes_speed(stage):
    player = Player(stage)
    player.tick(0.0)
    assert player.step(1)
    assert player.tick(5.0) is False
    assert player.position == 1
    assert player.step(-9)
    assert player.position == 0
    assert player.seek(99)
    assert player.position == 4
    player.change_speed(-1)
    assert player.speed == 0.5
    player.change_speed(-9)
    assert player.speed == 0.1
    player.change_speed(9)
    assert player.speed == 4.0


def test_the_video_keeps_the_time_stamps_or_resamples_them(stage):
    assert [round(time, 6) for _, time in shot_list(stage, None, 1.0)] == [0.0, 0.1, 0.2, 0.5, 0.6]
    assert [round(time, 6) for _, time in shot_list(stage, None, 2.0)] == [0.0, 0.05, 0.1, 0.25, 0.3]
    shots = shot_list(stage, 10.0, 1.0)
    assert [position for position, _ in shots] == [0, 1, 2, 2, 2, 3, 4]
    assert [time for _, time in shots] == pytest.approx(np.arange(7) / 10)
    assert len(shot_list(stage, 10.0, 2.0)) == 4
