"""Kinect recordings beside markers: alignment, the split by people, and simulated errors."""

import numpy as np
import pytest
from pose_datasets.kinect import Pair, align, load_pairs, pairs_of, save_pairs
from pose_datasets.mocap import Clip
from pose_datasets.sensor_training import SensorErrorConfig, definitions, mirrored, pairs_of_part, spoil

from pose.errors import PoseError


def clip(seconds=4.0, seed=0, name="uiprmd-s01_m01_e01"):
    rng = np.random.default_rng(seed)
    times = np.arange(int(60 * seconds)) / 60
    waves = rng.uniform(0.5, 3, (19, 3)), rng.uniform(0, 6, (19, 3))
    points = rng.uniform(-0.5, 0.5, (19, 3)) + 0.2 * np.sin(waves[0] * times[:, None, None] * 2 + waves[1])
    points[:, 0] = 0
    return Clip("uiprmd-s01", name, points.astype(np.float32), times)


def turned(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def as_kinect(source, offset, angle, rate=1.0):
    """Return joints (T, 17, 3) as a camera sees them from `offset` s on, turned by `angle`."""
    at = (offset + np.arange(80) * rate / 30) * 60
    first = at.astype(int)
    share = (at - first)[:, None, None]
    points = source.points[:, :17].astype(float)
    return (points[first] * (1 - share) + points[first + 1] * share) @ turned(angle) + [0, 0, -2.5]


@pytest.mark.parametrize(("offset", "angle"), [(0.3, 0.0), (0.51, 0.4), (0.17, -2.5)])
def test_alignment_finds_offset_and_heading(offset, angle):
    source = clip()
    noisy = as_kinect(source, offset, angle) + np.random.default_rng(2).normal(0, 0.01, (80, 17, 3))
    found = align(noisy, source.points[:, :17].astype(float), source.times)
    assert found.offset == pytest.approx(offset, abs=1 / 120)
    assert np.cos(found.turn - angle) == pytest.approx(1, abs=1e-3)
    assert found.correlation > 0.95


def test_other_performances_are_no_pairs(tmp_path):
    source = clip()
    other = clip(seed=9, name="uiprmd-s01_m01_e02")
    slow = clip(seed=5, name="uiprmd-s01_m01_e03")
    recordings = [
        ("uiprmd-s01", source.name, as_kinect(source, 0.3, 0.2)),
        ("uiprmd-s01", other.name, as_kinect(source, 0.3, 0.2)),
        ("uiprmd-s01", slow.name, as_kinect(slow, 0.3, 0.2, rate=1.05)),
    ]
    pairs = pairs_of(iter(recordings), [source, other, slow], lambda line: None)
    assert [pair.name for pair in pairs] == [source.name]
    assert np.abs(pairs[0].sensor - pairs[0].truth).max() < 0.01
    save_pairs(pairs, tmp_path / "pairs.npz")
    np.testing.assert_array_equal(load_pairs(tmp_path / "pairs.npz")[0].truth, pairs[0].truth)


def test_file_of_pairs_is_checked(tmp_path):
    np.savez(tmp_path / "pairs.npz", length=np.array([3]))
    with pytest.raises(PoseError, match="not a file of pairs"):
        load_pairs(tmp_path / "pairs.npz")


def test_people_of_the_parts_are_different_and_offsets_come_from_training():
    pairs = []
    for number in (1, 2, 4, 5, 6, 7, 9, 10):
        truth = np.random.default_rng(number).normal(size=(20, 17, 3)).astype(np.float32)
        off = (1.0 if number in (7, 9, 10) else 0.1) * np.array([0, 1, 0]) * (np.arange(17)[:, None] > 0)
        pairs.append(Pair(f"uiprmd-s{number:02d}", f"{number}", (truth + off).astype(np.float32), truth))
    parts = {part: {pair.subject for pair in pairs_of_part(pairs, part)} for part in ("train", "validation", "test")}
    assert parts["test"] == {"uiprmd-s09", "uiprmd-s10"}
    assert parts["validation"] == {"uiprmd-s07"}
    assert parts["train"] == {pair.subject for pair in pairs} - parts["test"] - parts["validation"]
    mean, _ = definitions(pairs_of_part(pairs, "train"))
    np.testing.assert_allclose(mean[1:], np.tile([0, 0.1, 0], (16, 1)), atol=1e-6)


def test_simulated_errors_have_the_sizes_of_their_settings():
    rng = np.random.default_rng(0)
    truth, times = np.zeros((200, 60, 17, 3)), np.tile(np.arange(60) / 30, (200, 1))
    none = SensorErrorConfig(slow=0, jitter=0, outliers=0, swaps=0, gaps=0)
    joints, scores = spoil(rng, truth, times, none, np.full((200, 1, 17, 3), 0.02))
    np.testing.assert_allclose(joints, 0.02)
    assert (scores == 1).all()
    slow, _ = spoil(rng, truth, times, SensorErrorConfig(slow=0.02, jitter=0, outliers=0, swaps=0, gaps=0), 0 * joints)
    # After one time constant of 1 s, the correlation of a slow offset is 1 / e.
    a, b = slow[:, 0, 1:].ravel(), slow[:, 30, 1:].ravel()
    assert np.corrcoef(a, b)[0, 1] == pytest.approx(np.exp(-1), abs=0.05)
    _, scores = spoil(rng, truth, times, SensorErrorConfig(gaps=0.2), 0 * joints)
    assert 0.02 < (scores == 0).mean() < 0.1


def test_mirror_image_twice_is_the_motion():
    joints = np.random.default_rng(0).normal(size=(4, 17, 3))
    np.testing.assert_array_equal(mirrored(mirrored(joints)), joints)
