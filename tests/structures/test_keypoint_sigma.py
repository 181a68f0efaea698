"""Uncertainty of 2D keypoints from scores and from the distance between networks."""

import numpy as np
import pytest

from pose.structures.keypoint_sigma import score_sigma, with_distance

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
