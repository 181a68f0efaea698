"""Errors of real networks, added to exact 2D of simulated cameras."""

import numpy as np
import pytest

from benchmarks.cameras.networks import Library, Series
from pose.structures.skeletons import H36M17


def test_errors_keep_their_size_relative_to_the_person_and_their_joints_when_mirrored():
    wrist = H36M17.index("left_wrist")
    errors = np.zeros((60, 17, 2), np.float32)
    errors[:, wrist, 0] = 0.1
    scores = np.ones((60, 17), np.float32)
    scores[:, wrist] = 0.5
    library = Library([Series(np.arange(60) / 60, errors, scores)])
    exact = np.random.default_rng(0).uniform(0, 100, (1, 90, 17, 2)).astype(np.float32)
    exact[..., 0, :], exact[..., 1, :] = 0, 200  # the box has sides of 200 px
    kinds = set()
    for seed in range(20):
        pixels, found = library.add(np.random.default_rng(seed), exact, np.arange(90) / 30)
        (joint,) = np.flatnonzero(np.abs(pixels - exact).max(axis=(0, 1, 3)) > 1)
        sign = 1 if joint == wrist else -1
        assert joint in (wrist, H36M17.flip_order[wrist])
        assert (pixels - exact)[0, :, joint] == pytest.approx(np.tile([sign * 20, 0], (90, 1)), abs=1e-3)
        assert np.unique(found[0, :, joint]).tolist() == [0.5]
        kinds.add(sign)
    assert kinds == {1, -1}
