"""A camera that measures its own path, such as that of a phone, beside rendered depth images."""

from dataclasses import replace

import numpy as np
import pytest
from depth_renderer import MATRIX, SIZE, Rendered, camera_of, disturb, render
from walker import walking

from pose.structures.camera import Camera, project
from pose.structures.camera_rotations import to_matrix
from pose.structures.odometry import Odometry
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.verdict import TRANSLATING
from pose.world.carried import RunData
from pose.world.clean import Steps
from pose.world.measured import measure
from pose.world.placing import place_run

FRAMES = 24
TIMES = np.arange(FRAMES) / 15
CAMERA = Camera(MATRIX, True, SIZE)
SIZE_ERROR = 1.12  # of the lifted person, whose image is the same


class Images:
    """Depth images of all frames, and the path of the device."""

    matrix, size, extrinsics = MATRIX, SIZE, None

    def __init__(self, images, odometry):
        self.images, self.odometry = images, odometry

    def read(self, index):
        return self.images[index]

    def at(self, time):
        return int(np.abs(TIMES - time).argmin())


@pytest.fixture(scope="module")
def recording():
    """A walker, before a camera carried sideways, that turns: joints in the room, cameras, images, odometry."""
    walk = walking(FRAMES / 15)[::2] * 0.95
    rendered = Rendered.of(walk - [0, 0, 1.0])
    first, centre = camera_of(-8.0, 1.3, 3.6)
    turns = to_matrix(np.radians(np.stack([2 * np.sin(3 * TIMES), -14 * TIMES, np.sin(5 * TIMES)], axis=1)))
    centres = centre + np.stack([0.9 * TIMES, 0.1 * np.sin(2 * TIMES), -0.2 * TIMES], axis=1)
    rotations = np.swapaxes(turns, 1, 2) @ first
    rng = np.random.default_rng(2)
    images = [
        disturb(render(one, *camera), "time of flight", rng)
        for one, *camera in zip(rendered.surfaces, rotations, centres, strict=True)
    ]
    heading = to_matrix(np.array([0, 2.0, 0]))  # of the device's world
    device = Odometry(TIMES, heading @ np.swapaxes(rotations, 1, 2), centres @ heading.T, np.array([0.0, 1.0, 0.0]))
    return rendered.joints, rotations, centres, Images(images, device)


def results(joints, rotations, centres):
    found = []
    for at, time in enumerate(TIMES):
        pose = SIZE_ERROR * (joints[at] - centres[at]) @ rotations[at].T
        pixels = project(pose, MATRIX).astype(np.float32)
        people = People(
            at, float(time), np.array([1]), np.concatenate([pixels.min(axis=0), pixels.max(axis=0)])[None],
            np.ones(1, np.float32), pixels[None], np.ones((1, 17), np.float32),
        )  # fmt: skip
        sigma = np.full((1, 17), 30, np.float32)
        poses = Poses3D((pose - pose[0])[None].astype(np.float32), pose[:1].astype(np.float32), sigma)
        found.append(FrameResult(people, poses))
    return found


def placed(found, images, steps=None):
    log = MotionLog()
    for result in found:
        log.add(result.people)
    measured = measure(found, images, CAMERA, TIMES)
    steps = replace(steps or Steps(feet=False), measured=measured.people, up=measured.up, path=measured.path)
    return measured, *place_run(RunData(found, H36M17, CAMERA), log, "auto", steps, join=False)


def test_path_of_the_device_gives_distances_sizes_and_the_room(recording):
    joints, rotations, centres, images = recording
    found = results(joints, rotations, centres)
    measured, run, decision = placed(found, images)
    with run:
        assert "camera path and vertical from the device" in measured.line
        assert decision.motion.kind == TRANSLATING
        length = np.linalg.norm(np.diff(centres, axis=0), axis=1).sum()
        assert decision.motion.distance == pytest.approx(length, rel=0.01)
        frames = list(run)
        distance = np.linalg.norm([frame.poses.root[0] for frame in frames], axis=1)
        np.testing.assert_allclose(distance, np.linalg.norm(joints[:, 0] - centres, axis=1), rtol=0.02)
        assert measured.people[1].scale * SIZE_ERROR == pytest.approx(1, abs=0.03)
        # The room has the heading of the first image, and its vertical.
        level = rotations[0] * [1, 0, 1]
        ahead = np.cross(rotations[0, 0] * [1, 0, 1], [0, 1, 0])
        axes = np.stack([level[0] / np.linalg.norm(level[0]), [0, 1, 0], ahead / np.linalg.norm(ahead)])
        walked = np.array([frame.placed.joints[0, 0] for frame in frames])
        true = joints[:, 0] @ axes.T
        np.testing.assert_allclose(walked - walked.mean(axis=0), true - true.mean(axis=0), atol=0.06)
        assert walked[:, 1].mean() == pytest.approx(true[:, 1].mean(), abs=0.04)
        np.testing.assert_allclose(frames[-1].view.position, rotations[0] @ (centres[-1] - centres[0]), atol=0.02)


def test_path_whose_vertical_contradicts_the_floor_is_ignored(recording):
    """The axes of a device that was held upright, when its images were turned and its poses not."""
    joints, rotations, centres, images = recording
    quarter = to_matrix(np.array([0, 0, np.pi / 2]))
    wrong = replace(images.odometry, rotations=images.odometry.rotations @ quarter)
    measured = measure(results(joints, rotations, centres), Images(images.images, wrong), CAMERA, TIMES)
    assert measured.path is None
    assert "contradicts the vertical of the device" in measured.line


def test_odometry_interpolates_and_ends_are_held():
    turns = to_matrix(np.radians([[0, 0, 0], [0, 40.0, 0]]))
    path = Odometry(np.array([1.0, 2.0]), turns, np.array([[0.0, 0, 0], [1, 2, 3]]))
    found, places = path.at(np.array([0.0, 1.25, 9.0]))
    np.testing.assert_allclose(found, to_matrix(np.radians([[0, 0, 0], [0, 10.0, 0], [0, 40, 0]])), atol=1e-9)
    np.testing.assert_allclose(places, [[0, 0, 0], [0.25, 0.5, 0.75], [1, 2, 3]])
