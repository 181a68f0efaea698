"""Depth images beside the video: sizes, distances and the vertical, on rendered characters in a room."""

import numpy as np
import pytest
from depth_renderer import MATRIX, SIZE, Rendered, camera_of, disturb, render
from walker import standing

from pose.structures.camera import Camera
from pose.structures.rotations import about, rotate
from pose.structures.skeletons import H36M17
from pose.structures.types import FrameResult, People, Poses3D
from pose.world.measured import MeasuredPerson, floor_normal, measure

FRAMES = 8
TIMES = np.arange(FRAMES) / 30


class Images:
    """Depth images of all frames."""

    matrix, size, times, odometry = MATRIX, SIZE, TIMES, None

    def __init__(self, images, extrinsics=None):
        self.images, self.extrinsics = images, extrinsics

    def read(self, index):
        return self.images[index]

    def at(self, time):
        index = int(np.abs(TIMES - time).argmin())
        return index if abs(TIMES[index] - time) < 0.05 else None


def rotation_matrix(vector):
    angle = np.linalg.norm(vector)
    return rotate(about(vector / angle, angle), np.eye(3)).T


@pytest.fixture(scope="module")
def scene():
    """A standing character: joints (T, 17, 3) m in camera axes, true depth images, and the rotation of the camera."""
    rendered = Rendered.of(standing(FRAMES / 30))
    rotation, centre = camera_of(-10.0, 1.4, 3.0)
    depths = [render(surface, rotation, centre) for surface in rendered.surfaces]
    return (rendered.joints - centre) @ rotation.T, depths, rotation


def results(joints, scale):
    """Yield results whose pose is `scale` times the true one, which projects onto the same pixels."""
    for at, time in enumerate(TIMES):
        pose = scale * joints[at]
        people = People(
            index=at, time=float(time), ids=np.array([4]), boxes=np.zeros((1, 4), np.float32),
            box_scores=np.ones(1, np.float32), keypoints=np.zeros((1, 17, 2), np.float32),
            scores=np.ones((1, 17), np.float32),
        )  # fmt: skip
        sigma = np.full((1, 17), 30, np.float32)
        yield FrameResult(
            people, Poses3D((pose - pose[0])[None].astype(np.float32), pose[:1].astype(np.float32), sigma)
        )


@pytest.mark.parametrize("family", ["structured light", "time of flight"])
@pytest.mark.parametrize("scale", [0.75, 1.3])
def test_size_and_distance_of_a_wrongly_lifted_person_are_measured(family, scale, scene):
    joints, depths, rotation = scene
    rng = np.random.default_rng(1)
    images = Images([disturb(depth, family, rng) for depth in depths])
    found = measure(results(joints, scale), images, Camera(MATRIX, True, SIZE))
    person = found.people[4]
    assert person.scale * scale == pytest.approx(1, abs=0.03)
    np.testing.assert_allclose(person.depth, joints[:, 0, 2], rtol=0.03)
    assert np.degrees(np.arccos(found.up @ rotation[:, 1])) < 1.0
    assert (person.sigma > 0.005).all()


@pytest.mark.parametrize("scale", [0.8, 1.25])
def test_depth_camera_beside_the_colour_camera(scale, scene):
    joints, depths, rotation = scene
    turn, shift = rotation_matrix(np.array([0.02, 0.1, -0.03])), np.array([0.25, 0.02, 0.03])
    # The images are those of the depth camera; the colour camera is elsewhere.
    extrinsics = np.vstack([np.column_stack([turn, shift]), [0, 0, 0, 1]])
    in_colour = (joints - shift) @ turn
    images = Images([depth.astype(np.float32) for depth in depths], extrinsics)
    found = measure(results(in_colour, scale), images, Camera(MATRIX, True, SIZE))
    assert found.people[4].scale * scale == pytest.approx(1, abs=0.02)
    assert np.degrees(np.arccos(found.up @ turn.T @ rotation[:, 1])) < 1.0
    legs = [H36M17.index(name) for name in ("left_knee", "right_ankle", "left_wrist")]
    assert found.people[4].joints[:, legs].mean(axis=0).tolist() == [1, 1, 0]
    ignored = measure(results(in_colour, scale), Images(images.images), Camera(MATRIX, True, SIZE)).people
    assert 4 not in ignored or abs(ignored[4].scale * scale - 1) > 0.04


def test_a_limb_in_front_does_not_move_the_person(scene):
    joints, depths, _ = scene
    covered = [depth.copy() for depth in depths]
    for depth in covered:
        depth[90:150, 140:160] = 1.0  # another person's arm over half the trunk
    camera = Camera(MATRIX, True, SIZE)
    expected = measure(results(joints, 1.0), Images([d.astype(np.float32) for d in depths]), camera).people[4]
    found = measure(results(joints, 1.0), Images([d.astype(np.float32) for d in covered]), camera).people[4]
    assert found.scale == pytest.approx(expected.scale, abs=0.02)


def test_images_without_depth_measure_nobody(scene):
    joints, depths, _ = scene
    empty = Images([np.zeros_like(depth, np.float32) for depth in depths])
    found = measure(results(joints, 1.0), empty, Camera(MATRIX, True, SIZE))
    assert found.people == {}
    assert found.up is None


def test_wall_is_no_floor():
    assert floor_normal(np.full((240, 320), 2.0, np.float32), MATRIX) is None


def test_fused_distance_is_the_mean_by_precision():
    person = MeasuredPerson(
        1.0, 0.01, 0.0, np.array([0.0, 1.0]), np.array([2.0, 2.0]), np.array([0.1, 0.1]), np.ones((2, 17), bool)
    )
    depth, variance = person.fused(np.array([0.0, 0.5]), np.array([3.0, 3.0]), np.array([0.01, 0.01]))
    np.testing.assert_allclose(depth, [2.5, 3.0])
    np.testing.assert_allclose(variance, [0.005, 0.01])
