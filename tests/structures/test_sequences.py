"""Sequences and curves: frames, mirrors, extrema, and the uncertainty of 2D keypoints."""

from itertools import pairwise

import numpy as np
import pytest
from benchmark_files import walker
from hypothesis import given
from hypothesis import strategies as st

from pose.structures.camera import Camera
from pose.structures.extrema import refined_time, turning_points
from pose.structures.keypoint_sigma import score_sigma, with_distance
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


SIGNALS = st.lists(st.floats(-10, 10), min_size=2, max_size=60).map(np.array)


@given(SIGNALS, st.floats(0.1, 5))
def test_turning_points_alternate_and_swing_enough(signal, swing):
    points = turning_points(signal, swing)
    for (first, kind), (second, other) in pairwise(points):
        assert first < second
        assert kind == -other
        assert abs(signal[first] - signal[second]) >= swing
    assert all(0 < index < len(signal) - 1 for index, _ in points)


@given(SIGNALS, st.floats(0.1, 5), st.floats(0.05, 1))
def test_extrema_at_the_ends_do_not_remove_inner_ones(signal, swing, share):
    inner = turning_points(signal, swing)
    every = turning_points(signal, swing, share * swing)
    assert [point for point in every if point in inner] == inner
    assert len(every) <= len(inner) + 2
    assert [kind for _, kind in every] == [(-1) ** i * every[0][1] for i in range(len(every))]


def test_parabola_vertex_is_interpolated_exactly():
    times = np.array([0.0, 0.1, 0.2, 0.3])
    signal = -((times - 0.13) ** 2)
    assert refined_time(signal, times, int(np.argmax(signal))) == pytest.approx(0.13)


XY = np.float32([[[0, 0], [30, 40], [100, 200], [0, 0]]])  # 200 px tall; the last one is not seen
SCORES = np.float32([[1, 0.9, 0.3, 0]])


def test_sigma_falls_with_the_score_and_grows_with_the_person():
    sigma = score_sigma(XY, SCORES)
    assert 0 < sigma[0, 0] < sigma[0, 1] < sigma[0, 2]
    np.testing.assert_allclose(score_sigma(3 * XY + 50, SCORES), 3 * sigma, rtol=1e-5)


def test_unseen_keypoints_have_no_sigma_and_no_influence():
    far = XY.copy()
    far[0, 3] = 1e5
    np.testing.assert_array_equal(score_sigma(far, SCORES), score_sigma(XY, SCORES))
    assert with_distance(score_sigma(XY, SCORES), np.full_like(SCORES, 9))[0, 3] == 0
    assert not score_sigma(XY, np.zeros_like(SCORES)).any()


def test_networks_that_disagree_add_their_variance():
    sigma = score_sigma(XY, SCORES)
    np.testing.assert_array_equal(with_distance(sigma, np.zeros_like(sigma)), sigma)
    near, far = (with_distance(sigma, np.full_like(sigma, px)) for px in (5, 10))
    assert (far[0, :3] ** 2 - sigma[0, :3] ** 2).tolist() == pytest.approx(
        (4 * (near[0, :3] ** 2 - sigma[0, :3] ** 2)).tolist(), rel=1e-3
    )
