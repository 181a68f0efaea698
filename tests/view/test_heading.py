"""The arrow of a moving camera on the floor of the 3D inset."""

from dataclasses import replace

import numpy as np
import pytest
from pose_fakes import seen_result

from pose.structures.types import CameraView, Placed
from pose.view.heading import camera_heading, heading_arrow


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
