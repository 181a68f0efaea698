"""The view from above of a camera that moves."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from pose_fakes import STANDING, run_info

from pose.results import MotionInfo, NpzWriter, WorldInfo, load_poses
from pose.structures.camera_rotations import to_matrix
from pose.structures.skeletons import H36M17
from pose.structures.types import CameraView, FrameResult, People, Placed, Poses3D
from pose.view.camera_plan import MAX_DIRECTIONS, cameras_section
from pose.world.camera_motion.verdict import ROTATING, CameraMotion
from pose.world.frame import BODIES, World

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
