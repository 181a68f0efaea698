"""World measures against slow definitions, and on motions whose answer is known."""

import numpy as np
import pytest

from benchmarks.world import steps as world


@pytest.fixture
def true(rng):
    body = rng.normal(size=(17, 3)) * [0.15, 0.5, 0.1]
    path = np.cumsum(rng.normal(size=(230, 1, 3)), axis=0) * 0.02
    return body + path + 0.01 * rng.normal(size=(230, 17, 3))


def turned(points, angle=0.7):
    c, s = np.cos(angle), np.sin(angle)
    return points @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


def test_alignment_removes_the_aligned_transform(true):
    similar, rigid = 1.3 * turned(true) + np.array([1, 2, 3]), turned(true) + np.array([1, 2, 3])
    for first in (world.ALIGNED_FRAMES, None):
        assert world.chunk_errors(similar, true, first=first).max() < 1e-6
        assert world.chunk_errors(rigid, true, first=first, scale=False).max() < 1e-6
        assert world.chunk_errors(similar, true, first=first, scale=False).mean() > 10


def test_each_chunk_is_aligned_by_itself_and_the_last_one_counts(true):
    pred = true.copy()
    pred[100:200] += 5.0
    pred[200:] += [0, 7.0, 0]
    errors = world.chunk_errors(pred, true)
    assert errors.shape == (230, 17)
    assert errors.max() < 1e-6


def test_alignment_uses_the_first_frames_only(true):
    """A drift after the second frame is seen by W-MPJPE as it is, and by WA-MPJPE less."""
    pred = true[:100] + np.linspace(0, 1, 100)[:, None, None] * [1.0, 0, 0]
    w = world.chunk_errors(pred, true[:100], scale=False)
    wa = world.chunk_errors(pred, true[:100], first=None, scale=False)
    assert w[-1].mean() > 800
    assert wa.mean() < w.mean()


def test_root_path_in_per_cent_of_its_length():
    path = np.stack([np.arange(101) / 100 * 10, np.zeros(101), np.zeros(101)], axis=1)
    assert world.root_path_errors(turned(path) + 4, path).max() < 1e-6
    off = path + np.where(np.arange(101) % 2, 0.1, -0.1)[:, None] * [0, 1, 0]
    assert world.root_path_errors(off, path).mean() == pytest.approx(1.0, rel=0.05)
    assert np.isnan(world.root_path_errors(path * 0, path * 0)).all()


def test_jitter_of_a_cubic_motion():
    t = np.arange(50) / 30
    points = (t**3)[:, None, None] * np.ones((1, 2, 3)) * [0, 2.0, 0]
    np.testing.assert_allclose(world.jitter(points, 30), 6 * 2.0 / 10, rtol=1e-6)


def test_foot_sliding_counts_only_true_contacts():
    true = np.zeros((10, 2, 3))
    true[5:, 1, 0] = np.arange(5) * 0.2  # the second foot walks off
    pred = np.zeros((10, 2, 3))
    pred[:, :, 2] = np.arange(10)[:, None] * 0.004
    slides = world.foot_slides(pred, true)
    assert len(slides) == 9 + 5
    assert slides == pytest.approx(4.0)


def test_floor_penetration_is_measured():
    heights = np.array([[0.02, -0.03], [0.05, 0.04], [0.0, 0.3]])
    np.testing.assert_allclose(world.penetrations(heights), [30, 0, 0])
    np.testing.assert_allclose(world.floats(heights), [0, 40, 0])


def test_gravity_angle_and_contact_f1_are_exact():
    assert world.angle_between([0, 1, 0], [0, 1, 0]) == pytest.approx(0, abs=1e-6)
    assert world.angle_between([0, 2, 0], [0, 0, -1]) == pytest.approx(90)
    pred, true = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert world.f1_score(world.f1_counts(pred, true)) == pytest.approx(0.5)
    assert np.isnan(world.f1_score(np.zeros(3, np.int64)))
