"""Frames of a sequence; the mirrored image is the image of the mirrored person."""

import numpy as np
import pytest
from benchmark_files import walker

from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D, Sequence3D, mirror_lifted, mirror_observations, mirror_poses
from pose.structures.skeletons import COCO17, H36M17

LENS = np.array([[1100.0, 0, 510], [0, 1100, 505], [0, 0, 1]])
BODY = (walker(4)[..., [0, 2, 1]] * [1, -1, 1] + [0, 1, 5]).astype(np.float32)


def seen(body, lens):
    pixels = body @ lens.T
    return (pixels[..., :2] / pixels[..., 2:]).astype(np.float32)


@pytest.fixture
def observed():
    return Sequence2D(
        seen(BODY, LENS), np.ones((4, 17), np.float32), np.arange(4.0), Camera.of((1000, 1002), LENS), H36M17.name
    )


def test_mirrored_sequence_projects_the_mirrored_body(observed):
    picture = mirror_observations(observed)
    assert np.allclose(seen(mirror_poses(BODY), picture.camera.matrix), picture.keypoints, atol=1e-3)


def test_mirroring_handles_skeleton_and_assumed_camera(rng):
    pixels = rng.uniform(0, 640, (3, 17, 2)).astype(np.float32)
    scores = rng.uniform(size=(3, 17)).astype(np.float32)
    picture = mirror_observations(Sequence2D(pixels, scores, np.arange(3.0), Camera.of((640, 480)), COCO17.name))
    left, right = COCO17.index("left_wrist"), COCO17.index("right_wrist")
    assert not picture.camera.known
    np.testing.assert_array_equal(picture.camera.matrix, Camera.of((640, 480)).matrix)
    assert np.allclose(picture.keypoints[:, left], [639, 0] + pixels[:, right] * [-1, 1])
    assert np.array_equal(picture.scores[:, left], scores[:, right])


def test_mirrored_output_is_swapped_back(rng):
    answer = Sequence3D(*(rng.normal(size=s).astype(np.float32) for s in ((2, 17, 3), (2, 3), (2, 17))), np.arange(2.0))
    back = mirror_lifted(answer)
    left, right = H36M17.index("left_knee"), H36M17.index("right_knee")
    assert np.allclose(back.joints[:, left], answer.joints[:, right] * [-1, 1, 1])
    assert np.allclose(back.sigma[:, left], answer.sigma[:, right])
    assert np.allclose(back.root, answer.root * [-1, 1, 1])


def test_frames_of_a_sequence_are_a_sequence():
    times = np.arange(6) / 25
    whole = Sequence2D(np.arange(6 * 34, dtype=np.float32).reshape(6, 17, 2), np.ones((6, 17), np.float32), times,
                       Camera.of((640, 480), np.eye(3)), "h36m17")  # fmt: skip
    part = whole[2:5]
    assert len(part) == 3
    np.testing.assert_array_equal(part.keypoints, whole.keypoints[2:5])
    np.testing.assert_array_equal(part.times, times[2:5])
    assert (part.camera, part.skeleton) == (whole.camera, whole.skeleton)
    assert len(whole[4:]) == 2
