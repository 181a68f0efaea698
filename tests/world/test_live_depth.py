"""Live depth images: a bag of a RealSense camera through Open3D, and what they change in a live world."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from depth_renderer import MATRIX, SIZE, Rendered, camera_of, disturb, render
from realsense_bag import write_realsense_bag
from walker import standing

from pose.errors import PoseError
from pose.live.camera import WatchedWorld
from pose.live.depth_camera import DepthCamera
from pose.structures.camera import Camera, project
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.world.clean import Steps
from pose.world.height import stature
from tests.mutations import damaged, quick_and_long, try_mutations

COUNT, LIFTED = 24, 1.2


@pytest.fixture(scope="module")
def scene():
    """A standing character: joints (17, 3) m in camera axes, depth images with noise, the camera, the height."""
    rendered = Rendered.of(standing(0.2))
    rotation, centre = camera_of(-10.0, 1.4, 3.0)
    rng = np.random.default_rng(0)
    true = render(rendered.surfaces[0], rotation, centre)
    images = [disturb(true, "structured light", rng) for _ in range(COUNT)]
    bones = [np.linalg.norm(rendered.joints[0, b] - rendered.joints[0, a]) for a, b in H36M17.edges]
    return (rendered.joints[0] - centre) @ rotation.T, images, rotation, stature(np.array(bones))


def lifted(joints, index):
    """The result of a frame whose person is lifted too large and too far away, with the same image."""
    pose, pixels = LIFTED * joints, project(joints, MATRIX).astype(np.float32)
    people = People(
        index, index / 30, np.array([3]), np.zeros((1, 4), np.float32), np.ones(1, np.float32), pixels[None],
        np.ones((1, 17), np.float32),
    )  # fmt: skip
    sigma = np.full((1, 17), 30, np.float32)
    return FrameResult(people, Poses3D((pose - pose[0])[None].astype(np.float32), pose[:1].astype(np.float32), sigma))


class Images:
    matrix, size, extrinsics, odometry = MATRIX, SIZE, None, None

    def __init__(self, images):
        self.images = images

    def read(self, index):
        return self.images[index]

    def at(self, time):
        return round(30 * time) if round(30 * time) < len(self.images) else None


def test_live_world_takes_size_distance_and_vertical_from_depth(scene):
    joints, images, rotation, height = scene
    world = WatchedWorld(Camera(MATRIX, True, SIZE), Steps(), None, Images(images))
    for index in range(COUNT):
        placed, info = world.place(lifted(joints, index), H36M17)
    assert np.linalg.norm(placed.poses.root[0]) == pytest.approx(np.linalg.norm(joints[0]), rel=0.02)
    assert info.heights[3][0] == pytest.approx(height, rel=0.03)
    assert np.degrees(np.arccos(info.world.up @ rotation[:, 1])) < 1.0
    seen = placed.placed.measured_by[0]
    assert (seen[H36M17.index("left_hip")], seen[H36M17.index("left_wrist")]) == (3, 1)
    # Where depth images end, the size stays.
    late, info = world.place(lifted(joints, COUNT + 1), H36M17)
    assert info.heights[3][0] == pytest.approx(height, rel=0.03)
    assert late.placed.measured_by.max() == 0 or late.placed.measured_by.max() == 1


def test_bag_is_played_as_a_camera_with_depth(scene, tmp_path):
    pytest.importorskip("open3d", reason="the extra [depth]")
    joints, images, _, height = scene
    colours = [np.full((SIZE[1], SIZE[0], 3), 10 * at, np.uint8) for at in range(COUNT)]
    camera = DepthCamera(str(write_realsense_bag(tmp_path / "a.bag", colours, images, MATRIX)))
    np.testing.assert_allclose(camera.colour_camera.matrix, MATRIX)
    assert (camera.size, camera.fps) == (SIZE, 30)
    world = WatchedWorld(camera.colour_camera, Steps(), None, camera)
    begin, count = time.monotonic(), 0
    for captured in camera.frames(threading.Event()):
        shown = round(captured.frame.image.mean() / 10)
        depth = camera.read(camera.at(captured.frame.time))
        # On a busy machine, Open3D leaves frames out and pairs neighbours.
        assert any(np.abs(depth - image).max() < 0.001 for image in images[max(0, shown - 3) : shown + 4])
        seen = lifted(joints, captured.frame.index)
        seen = replace(seen, people=replace(seen.people, time=captured.frame.time))  # as the live loop does
        _, info = world.place(seen, H36M17)
        count += 1
    assert count > 5
    assert time.monotonic() - begin >= captured.frame.time - 0.01  # not faster than it was recorded
    assert info.heights[3][0] == pytest.approx(height, rel=0.03)
    camera.close()


def test_missing_cameras_and_other_bags_are_refused(tmp_path):
    pytest.importorskip("open3d", reason="the extra [depth]")
    (tmp_path / "a.bag").write_bytes(b"#ROSBAG V2.0\n")
    for spec, message in ((str(tmp_path / "a.bag"), "not a readable bag"), ("realsense", "sees no RealSense")):
        with pytest.raises(PoseError, match=message) as error:
            DepthCamera(spec)
        assert "\n" not in str(error.value)


@quick_and_long(2, 60)
def test_damaged_bags_are_played_or_refused_in_one_line(examples, tmp_path):
    pytest.importorskip("open3d", reason="the extra [depth]")
    refused = []
    small = [np.zeros((12, 16, 3), np.uint8)] * 3, [np.full((12, 16), 2.0)] * 3
    content = write_realsense_bag(tmp_path / "whole.bag", *small, np.diag([20.0, 20, 1])).read_bytes()

    def check(data):
        (tmp_path / "a.bag").write_bytes(damaged(data, content))
        try:
            for captured in DepthCamera(str(tmp_path / "a.bag")).frames(threading.Event()):
                assert captured.frame.image.shape == (12, 16, 3)
        except PoseError as error:
            refused.append(str(error))

    try_mutations(check, examples)
    assert not any("\n" in one for one in refused)
