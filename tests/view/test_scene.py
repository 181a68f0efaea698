"""The 3D scene, depth points, and a moving camera's plan and arrow; the player behind the window."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from depth_renderer import MATRIX, SIZE, camera_of, render
from pose_fakes import STANDING, run_info, seen_result

from pose.results import MotionInfo, NpzWriter, WorldInfo, load_poses
from pose.structures.camera import Camera
from pose.structures.camera_rotations import to_matrix
from pose.structures.colours import SIDE_COLOURS
from pose.structures.skeletons import H36M17
from pose.structures.types import CameraView, FrameResult, People, Placed, Poses3D
from pose.view.camera_plan import MAX_DIRECTIONS, cameras_section
from pose.view.heading import camera_heading, heading_arrow
from pose.view.open3d_scene import shot_list
from pose.view.open3d_window import Player
from pose.view.scene import DepthCloud, SceneData, body_mesh, grid_lines, mark_mesh, orbit_eye
from pose.world.camera_motion.verdict import ROTATING, CameraMotion
from pose.world.frame import BODIES, GIVEN, World, rotation_of


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


@pytest.mark.parametrize("beside", [False, True])
def test_points_of_a_room_are_on_its_floor_and_wall(beside):
    """The second image is taken 0.5 m to the right and turned; the depth camera may be beside the colour camera."""
    shift = np.eye(4)
    shift[0, 3] = 0.1 * beside
    first, centre = camera_of(-12.0, 1.5, 2.0)
    turn = np.array([[np.cos(0.2), 0, np.sin(0.2)], [0, 1, 0], [-np.sin(0.2), 0, np.cos(0.2)]])
    rotations, centres = [first, turn.T @ first], [centre, np.add(centre, [0.5, 0, 0])]
    depths = [
        render(np.full((1, 3), 9.0), rotation, place - rotation.T @ shift[:3, 3])
        for rotation, place in zip(rotations, centres, strict=True)
    ]
    images = SimpleNamespace(
        matrix=MATRIX, size=SIZE, extrinsics=shift if beside else None, at=round, read=lambda i: depths[i]
    )
    views = [CameraView(np.eye(3), 1, 0, np.zeros(3)), CameraView(first @ rotations[1].T, 1, 0, first @ [0.5, 0, 0])]
    world = World(rotation_of(first[:, 1]), -1.5, "given", 0.0)
    table = SimpleNamespace(
        world_info=SimpleNamespace(world=world), run=SimpleNamespace(camera=Camera(MATRIX, True, SIZE)),
        timestamps=np.array([0.0, 1.0]), view=views.__getitem__,
    )  # fmt: skip
    cloud = DepthCloud(images, table)
    for position in range(2):
        points, colours = cloud.at(position)
        floor, wall = np.abs(points[:, 2]) < 1e-3, np.abs(points[:, 1] - 5.0) < 1e-3
        assert (floor | wall).all()
        assert floor.sum() > 5000 < wall.sum()
        assert colours.shape == points.shape
        assert 0.3 < colours.min() < colours.max() <= 1


FRAMES = 30
WORLD = World(np.diag([1.0, -1.0, -1.0]), -1.2, BODIES, 1.0)


@pytest.fixture
def table(tmp_path):
    """Of a camera that pans by 40 degrees to its right, before a person who stands 3 m away."""
    turns = to_matrix(np.radians(np.linspace(0, 40, FRAMES))[:, None] * [0, 1.0, 0])
    info = replace(
        run_info(H36M17), world=WorldInfo(WORLD), motion=MotionInfo(CameraMotion(ROTATING, 1.0, 40.0, zoom=1.1), True)
    )
    unknown = np.full(1, np.nan, np.float32)
    with NpzWriter(tmp_path / "poses.npz", info) as writer:
        for frame, turn in enumerate(turns):
            root = np.array([[0.0, 0.3, 3.0]])
            seen = People(
                frame, frame / 30, np.array([1]), np.zeros((1, 4), np.float32), np.ones(1, np.float32),
                np.full((1, 17, 2), 50, np.float32), np.full((1, 17), 0.9, np.float32),
            )  # fmt: skip
            poses = Poses3D(STANDING[None], (root @ turn).astype(np.float32), np.full((1, 17), 30, np.float32))
            joints = WORLD.place(STANDING + root).astype(np.float32)[None]
            placed = Placed(joints, unknown, np.zeros((1, 2), np.float32), np.zeros(1, bool), unknown)
            writer.write(FrameResult(seen, poses, placed, CameraView(turn, 1.0, 0.1)))
    return load_poses(tmp_path / "poses.npz")


def drawing_of(table):
    page = "".join(cameras_section(table))
    return page, ElementTree.fromstring(re.search("<svg.*</svg>", page)[0])


def test_pan_directions_are_drawn_from_one_point(table):
    page, drawing = drawing_of(table)
    assert "pan 40.0" in page
    assert "zoom 10 %" in page
    (lines,) = (path.get("d") for path in drawing.findall("path") if path.get("d").count("l") > 2)
    steps = np.array([[float(value) for value in step.split()] for step in re.findall(r"l(\S+ \S+?)(?=M|$)", lines)])
    assert len(steps) == MAX_DIRECTIONS
    angles = np.degrees(np.arctan2(steps[:, 0], -steps[:, 1]))  # 0 is up, away from the camera
    np.testing.assert_allclose(angles, np.linspace(0, 40, MAX_DIRECTIONS), atol=1.5)
    assert {text.text for text in drawing.findall("text")} == {"camera", "person 1", "1 m"}


def test_translating_camera_path_is_dashed(table):
    moved = np.linspace(0, 2, FRAMES)[:, None] * np.array([1.0, 0, 0], np.float32)
    page, drawing = drawing_of(table.with_columns(camera_position=moved.astype(np.float32)))
    assert "dashed: path of the camera" in page
    assert any(path.get("stroke-dasharray") for path in drawing.findall("path"))


def test_static_camera_has_no_plan(table):
    assert not list(cameras_section(table.with_columns(camera_rotation=None, camera_zoom=None, camera_sigma=None)))


def turned(degrees, tilt=0.0):
    """A frame of a camera that was turned to the right, and tilted down: its axes in those of the world."""
    y, x = np.radians([degrees, tilt])
    yaw = np.array([[np.cos(y), 0, np.sin(y)], [0, 1, 0], [-np.sin(y), 0, np.cos(y)]])
    pitch = np.array([[1, 0, 0], [0, np.cos(x), np.sin(x)], [0, -np.sin(x), np.cos(x)]])
    to_world = np.diag([1.0, -1.0, -1.0]) @ yaw @ pitch  # y up, z towards the camera
    result = seen_result([(0, 0, 3.0), (1, 0, 4.0)])
    joints = ((result.poses.joints + result.poses.root[:, None]) @ to_world.T).astype(np.float32)
    nothing = np.zeros(2, np.float32)
    placed = Placed(joints, nothing, np.zeros((2, 2), np.float32), nothing > 0, nothing)
    return replace(result, placed=placed, view=CameraView(yaw @ pitch, 1.0, 0.1))


@pytest.mark.parametrize("tilt", [0, 25])
@pytest.mark.parametrize("degrees", [-50, 0, 30, 120])
def test_heading_equals_the_camera_heading(degrees, tilt):
    expected = np.sin(np.radians(degrees)), np.cos(np.radians(degrees))  # x right, y away from the camera
    assert camera_heading(turned(degrees, tilt)) == pytest.approx(expected, abs=1e-4)


def test_heading_arrow_lies_on_the_floor():
    middle = np.array([1.0, 2.0, 0.97], np.float32)
    arrow = heading_arrow(turned(30), middle, 2.0)
    shaft = arrow[0, 0] - arrow[0, 1]
    assert shaft[:2] / np.linalg.norm(shaft) == pytest.approx([0.5, np.cos(np.pi / 6)], abs=1e-4)
    assert not arrow[..., 2].any()
    assert np.linalg.norm(arrow[..., :2] - middle[:2], axis=-1).max() < 2.0


def test_static_or_downward_camera_has_no_arrow():
    moving = turned(30)
    straight_down = turned(0, 90)
    unknown = replace(moving, placed=replace(moving.placed, joints=np.full_like(moving.placed.joints, np.nan)))
    for result in (replace(moving, view=None), replace(moving, placed=None), straight_down, unknown):
        assert camera_heading(result) is None
        assert heading_arrow(result, np.zeros(3, np.float32), 1.0).shape == (0, 2, 3)
