"""Depth images as points in the 3D view, from a camera that moved."""

from types import SimpleNamespace

import numpy as np
import pytest
from depth_renderer import MATRIX, SIZE, camera_of, render

from pose.structures.camera import Camera
from pose.structures.types import CameraView
from pose.view.scene import DepthCloud
from pose.world.frame import World, rotation_of


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
