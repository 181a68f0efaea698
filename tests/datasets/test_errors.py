"""Detector errors: each kind has the size and frequency it is configured to have, and scores tell about it."""

from dataclasses import replace

import numpy as np
import pytest
import yaml
from motion import waving_clip
from pose_datasets import errors
from pose_datasets.training import (
    _FRACTIONS,
    _NETWORK_SCORES,
    _SIMULATED_SCORES,
    CHANGES,
    NETWORKS,
    apply_dialect,
    level,
)

from pose.utils.presets import presets_folder

NONE = errors.ErrorConfig(
    jitter=0, drift=0, bias=0, spread=0, speed=0, outlier_rate=0, swap_rate=0, drop_rate=0, frame_drop_rate=0
)
SIZE = np.array([1280, 720], np.float32)


def scene(count=200, frames=60):
    """A person about 340 px tall in the middle of the image."""
    clip = waving_clip(speed=0.2)
    points = np.tile(clip.points[: frames * 2 : 2, :17], (count, 1, 1, 1))
    pixels = points[..., :2] * [200, -200] + [640, 500]
    times = np.tile(np.arange(frames) / 30, (count, 1))
    return pixels.astype(np.float32), times, np.tile(SIZE, (count, 1)), np.full(points.shape[:3], -1, np.float32)


def detect(rng, **config):
    pixels, times, size, depth = scene()
    keypoints, scores = errors.add_errors(rng, pixels, times, size, depth, replace(NONE, **config))
    return (keypoints - pixels) / errors.person_size(pixels)[..., None], scores


def test_left_right_swaps_affect_whole_limbs_in_bursts(rng):
    pixels, times, size, depth = scene(400)
    keypoints, _ = errors.add_errors(rng, pixels, times, size, depth, replace(NONE, swap_rate=0.05))
    swapped = (keypoints[:, :, [1, 2, 3]] == pixels[:, :, [4, 5, 6]]).all(axis=(2, 3))
    changed = (keypoints != pixels).any(axis=-1)
    np.testing.assert_array_equal(swapped, changed[:, :, 1:7].any(axis=-1))
    assert 0.015 < swapped.mean() < 0.08
    assert not changed[:, :, [0, 7, 8, 9, 10]].any()
    arms = changed[:, :, 11]
    assert (arms & ~swapped).sum() > 0  # arms and legs separately
    starts = (swapped[:, 1:] & ~swapped[:, :-1]).sum()
    assert swapped.sum() / starts > 1.7  # frames a burst


def test_dropped_joints_come_in_bursts_with_score_zero_exactly(rng):
    error, scores = detect(rng, drop_rate=0.05)
    gone = scores == 0
    assert 0.01 < gone.mean() < 0.1
    assert ((scores == 0) | (scores >= 0.02)).all()
    starts = (gone[:, 1:] & ~gone[:, :-1]).sum()
    assert gone.sum() / starts > 2
    assert np.abs(error[~gone]).max() == 0


def test_occluded_limbs_are_missing_whole_for_a_time(rng):
    _, scores = detect(rng, limb_drop_rate=0.05)
    gone = scores == 0
    for upper, lower in ((2, 3), (5, 6), (12, 13), (15, 16)):
        np.testing.assert_array_equal(gone[..., upper], gone[..., lower])
    assert not gone[..., [0, 1, 4, 7, 8, 9, 10, 11, 14]].any()
    assert 0.01 < gone[..., 12].mean() < 0.1
    starts = (gone[:, 1:] & ~gone[:, :-1]).sum()
    assert gone.sum() / starts > 8  # frames a gap, in windows of 60
    assert (gone[..., 12] != gone[..., 15]).any()


def test_scores_outside_the_image_are_low(rng):
    pixels, times, size, depth = scene()
    pixels[..., 0] += 620  # half of the person is beyond the right border
    keypoints, scores = errors.add_errors(rng, pixels, times, size, depth, NONE)
    outside = pixels[..., 0] > SIZE[0] - 1
    assert 0.2 < outside.mean() < 0.8
    assert scores[outside].max() <= 0.4
    silent = (scores[outside] == 0).mean()
    assert 0.45 < silent < 0.75
    invented = outside & (scores > 0)
    assert (np.abs(keypoints[invented][:, 0] - SIZE[0]) < 60).all()


@pytest.mark.parametrize("rate", [0.002, 0.02, 0.2])
def test_bursts_cover_the_configured_share_of_time(rng, rate):
    times = np.tile(np.arange(100) / 30, (2000, 1))
    share = errors.bursts(rng, times, 3, rate, 0.15).mean()
    assert share == pytest.approx(rate, rel=0.25)


def test_default_errors_equal_those_measured_on_real_clips(rng):
    """The figures of docs/studies/detector-errors.md, by the same statistics, at 30 frames a second."""
    pixels, times, size, depth = scene(400, 120)
    keypoints, scores = errors.add_errors(rng, pixels, times, size, depth, errors.ErrorConfig())
    error = (keypoints - pixels) / errors.person_size(pixels)[..., None]
    seen = scores >= 0.3
    length = np.linalg.norm(error, axis=-1)
    assert 0.014 < np.median(length[seen]) < 0.027
    assert 0.0115 < np.median(np.abs(error[seen])) / 0.6745 < 0.023
    jitter = np.diff(error, n=2, axis=1)[seen[:, 2:] & seen[:, :-2]] / np.sqrt(6)
    assert 0.0055 < np.median(np.abs(jitter)) / 0.6745 < 0.0095
    assert 0.008 < (length[seen] > 0.1).mean() < 0.04
    assert 0.03 < (~seen).mean() < 0.13
    clipped = np.where(seen[..., None], error, 0).clip(-0.1, 0.1)
    for lag, kept in ((1, 0.70), (4, 0.50), (15, 0.28), (30, 0.18)):
        now, before = clipped[:, lag:], clipped[:, :-lag]
        assert (now * before).mean() / (clipped**2).mean() == pytest.approx(kept, abs=0.13)


def test_errors_of_the_long_recipe_last_as_long_as_those_of_real_networks(rng):
    recipe = yaml.safe_load((presets_folder() / "train" / "offline_long.yaml").read_text(encoding="utf-8"))
    config = errors.ErrorConfig(**recipe["data"]["synthesis"]["film"]["errors"])
    times = np.tile(np.arange(75) / 30, (400, 1))
    still = np.full((400, 75, 17), 0.2, np.float32)  # sizes/s
    noise = errors._draw_errors(rng, times, still, np.zeros((400, 75, 17), np.float32), replace(config, outlier_rate=0))
    measured = {1: 0.69, 2: 0.62, 4: 0.50, 8: 0.39, 15: 0.29, 30: 0.19, 60: 0.135}  # docs/studies/detector-errors.md
    for lag, correlation in measured.items():
        found = (noise[:, lag:] * noise[:, :-lag]).mean() / (noise**2).mean()
        assert found == pytest.approx(correlation, abs=0.06), lag


def test_derived_joints_follow_their_sources(rng):
    from pose.structures.skeletons import COCO17, to_h36m17

    coco, seen = rng.normal(300, 50, (2, 5, 17, 2)).astype(np.float32), rng.random((2, 5, 17)).astype(np.float32)
    seen[seen < 0.2] = 0
    coco[seen == 0] = 0
    expected, expected_scores = to_h36m17(coco, seen, COCO17)
    keypoints, scores = expected.copy(), expected_scores.copy()
    keypoints[..., [0, 7, 8], :], scores[..., [0, 7, 8]] = -1, 1
    errors.rederive(keypoints, scores)
    np.testing.assert_array_equal(scores, expected_scores)
    known = scores > 0
    np.testing.assert_allclose(keypoints[known], expected[known], atol=1e-4)


@pytest.mark.parametrize("name", [*CHANGES, *NETWORKS])
def test_score_mapping_keeps_zeros_and_stays_in_range(name, rng):
    scores = rng.uniform(0.02, 1, (3, 40, 17)).astype(np.float32)
    scores[rng.random(scores.shape) < 0.2] = 0
    said = apply_dialect({**CHANGES, **NETWORKS}[name], scores)
    assert said.dtype == np.float32
    assert ((said == 0) == (scores == 0)).all()
    assert said.max() <= 1


@pytest.mark.parametrize("name", _NETWORK_SCORES)
def test_score_mapping_matches_the_network_and_keeps_order(name, rng):
    ours = np.interp(rng.random(20000), _FRACTIONS, _SIMULATED_SCORES).astype(np.float32)  # distributed as ours are
    said = apply_dialect(NETWORKS[name], ours)
    np.testing.assert_allclose(np.quantile(said, _FRACTIONS[1:-1]), _NETWORK_SCORES[name][1:-1], atol=0.03)
    assert (np.diff(said[np.argsort(ours)]) >= -1e-6).all()


def test_constant_score_level_is_one_number():
    assert apply_dialect(level(0.7), np.float32([0, 0.2, 1])).tolist() == pytest.approx([0, 0.7, 0.7])
