"""Postures and flexed limbs: bones kept, smooth, within what joints allow, and what their names say."""

import numpy as np
import pytest
from motion import waving_clip
from pose_datasets import bodies, poses, postures
from pose_datasets.limbs import ARMS, LEGS, flexion
from pose_datasets.poses import PoseConfig
from pose_datasets.postures import POSTURES, PostureConfig


def batch(count=64, frames=40, rate=30):
    clip = waving_clip(seconds=frames / rate + 4)
    points = np.stack([clip.points[i % 60 :][: frames * 2 : 2] for i in range(count)])
    return bodies.to_bones(points), np.tile(np.arange(frames) / rate, (count, 1))


def lengths(bones):
    return np.linalg.norm(bones[..., 1:, :], axis=-1)


def bent(bones, limb):
    points = bodies.assemble(bones)
    return np.stack([flexion(points[b], limb) for b in range(len(points))])


@pytest.mark.parametrize("part", ["held", "leaning", "reaching"])
def test_postures_keep_bones_and_stay_smooth(part):
    bones, times = batch(256)
    before = bones.copy()
    rng = np.random.default_rng(5)
    config = PostureConfig(**{"held": 0, "leaning": 0, "reaching": 0, part: 1})
    postures.take_postures(rng, bones, times, config)
    assert np.abs(bones - before).max() > 0.1
    np.testing.assert_allclose(lengths(bones), lengths(before), atol=1e-5)
    assert np.linalg.norm(np.diff(bones[..., 1:, :], axis=1), axis=-1).max() < 0.2
    assert bones.dtype == np.float32
    for leg in LEGS.joints:
        assert bent(bones, leg).max() < 175
    for arm in ARMS.joints:
        assert bent(bones, arm).max() < 151


@pytest.mark.parametrize("name", POSTURES)
def test_synthesised_posture_has_its_joint_angles(name, monkeypatch):
    index = list(POSTURES).index(name)
    for ranges in ("_LEG_RANGES", "_TRUNK_RANGES"):
        monkeypatch.setattr(postures, ranges, getattr(postures, ranges)[[index] * len(POSTURES)])
    bones, times = batch(64)
    postures.take_postures(np.random.default_rng(1), bones, times, PostureConfig(held=1, leaning=0, reaching=0))
    knees = np.stack([bent(bones, leg).mean(axis=1) for leg in LEGS.joints])
    legs = POSTURES[name].first, POSTURES[name].second
    low, high = (np.array([f(leg.knee) for leg in legs]) for f in (min, max))
    # Sway of 4 degrees, at most 10.
    straight_way = (knees > low[:, None] - 11).all(axis=0) & (knees < high[:, None] + 11).all(axis=0)
    other_way = (knees > low[::-1, None] - 11).all(axis=0) & (knees < high[::-1, None] + 11).all(axis=0)
    assert (straight_way | other_way).all()
    # Knees bend backwards: the shank's part across the thigh points away from where the body faces.
    frame = bodies.pelvis_frame(bones)
    hinge = np.cross(bones[..., 5, :], bones[..., 6, :])
    facing = (hinge * frame[..., 0]).sum(axis=-1) / np.maximum(np.linalg.norm(hinge, axis=-1), 1e-9)
    sharp = bent(bones, LEGS.joints[0]) > 20
    assert (facing[sharp] > 0).all()


def bent_to(count: int, degrees: np.ndarray):
    """Bodies whose limbs are flexed by `degrees` (T,), knees backwards and elbows forwards."""
    bones, times = batch(count, len(degrees))
    rows = np.arange(count)
    for limbs, bend in ((bodies.LEGS, poses.bend_knee), (bodies.ARMS, poses.bend_elbow)):
        for limb in limbs:
            bend(bones, rows, limb, np.full((count, 1), -4, np.float32))
            bend(bones, rows, limb, np.radians(degrees)[None].astype(np.float32) * np.ones((count, 1), np.float32))
    return bones, times


def test_limbs_are_straightened_most_where_they_are_nearly_straight():
    degrees = np.linspace(18, 110, 60)
    bones, times = bent_to(64, degrees)
    before = bones.copy()
    poses.flex_limbs(np.random.default_rng(0), bones, times, PoseConfig(straight=1, bent=0))
    np.testing.assert_allclose(lengths(bones), lengths(before), atol=1e-5)
    for limb in LEGS.joints + ARMS.joints:
        was, now = bent(before, limb), bent(bones, limb)
        less = was - now
        assert less.min() > -0.05
        touched = less.max(axis=1) > 3
        assert 0.6 < touched.mean() < 1
        assert (less[touched] > 10).any()
        assert less[was > 105].max() < 8
        assert (np.diff(now, axis=1) > -0.1).all()  # what was bent more is bent more
        # From end to end the direction stays, and so does the plane.
        chord = before[..., limb[1], :] + before[..., limb[2], :]
        moved = bones[..., limb[1], :] + bones[..., limb[2], :]
        cosine = (chord * moved).sum(-1) / np.linalg.norm(chord, axis=-1) / np.linalg.norm(moved, axis=-1)
        assert cosine.min() > 1 - 1e-5


def test_limbs_are_bent_beyond_what_was_recorded_but_not_beyond_the_joint():
    bones, times = bent_to(128, np.linspace(3, 120, 60))
    before = bones.copy()
    poses.flex_limbs(np.random.default_rng(0), bones, times, PoseConfig(straight=0, bent=1))
    np.testing.assert_allclose(lengths(bones), lengths(before), atol=1e-5)
    for limb in LEGS.joints + ARMS.joints:
        was, now = bent(before, limb), bent(bones, limb)
        assert now.max() < 150.1
        assert (now - was).min() > -0.05
        assert (now - was)[was < 8].max() < 4
        assert np.percentile((now - was)[was > 60], 80) > 15
    assert np.linalg.norm(np.diff(bones[..., 1:, :], axis=1), axis=-1).max() < 0.1
