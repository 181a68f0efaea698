"""Other bodies and poses: bone lengths are constant over time, mirrors undo themselves, hinges bend the right way."""

import numpy as np
import pytest
from motion import waving_clip
from pose_datasets import bodies, poses

LEFT_KNEE, RIGHT_ELBOW = [5, 6], [15, 16]


def batch(count=8, frames=60, rate=30):
    clip = waving_clip(seconds=frames / rate + 1)
    step = round(60 / rate)
    points = np.stack([clip.points[i : i + frames * step : step] for i in range(count)])
    return points, np.tile(np.arange(frames) / rate, (count, 1))


def lengths(bones):
    return np.linalg.norm(bones[..., 1:, :], axis=-1)


def test_mirroring_is_an_involution_that_keeps_side_labels():
    points, _ = batch()
    once = bodies.mirror(points)
    np.testing.assert_array_equal(bodies.mirror(once), points)
    # The mirrored person's left hip is still on the left of where the person faces.
    frame = bodies.pelvis_frame(bodies.to_bones(once))
    nose = once[..., 17, :] - once[..., 18, :]
    assert ((frame[..., 2] * nose).sum(axis=-1) > 0).all()
    np.testing.assert_allclose(bodies.mirror(bodies.to_bones(points)), bodies.to_bones(once), atol=1e-6)


def test_shoulders_span_the_widths_of_data_sets(rng):
    points = np.repeat(waving_clip(seconds=0.5).points[None, :10], 400, axis=0)
    bones = bodies.to_bones(points)
    bodies.widen_shoulders(rng, bones, bodies.BodyConfig(other_shoulders=1.0))
    changed = bodies.assemble(bones)
    legs = np.linalg.norm(bones[:, 0, [2, 3, 5, 6]], axis=-1).sum(axis=-1) / 2
    width = np.linalg.norm(changed[:, :, 11] - changed[:, :, 14], axis=-1)[:, 0] / legs
    assert width.min() == pytest.approx(0.28, abs=0.01)
    assert width.max() == pytest.approx(0.6, abs=0.01)
    np.testing.assert_allclose(bones[:, :, 12:14], bodies.to_bones(points)[:, :, 12:14], atol=1e-6)


def test_limbs_bend_over_their_whole_range_and_keep_their_length(rng):
    points, times = batch(count=60, frames=10)
    bones = bodies.to_bones(np.tile(points, (10, 1, 1, 1)))
    before = lengths(bones)
    poses.bend_over_whole_range(rng, bones, np.tile(times, (10, 1)), poses.PoseConfig(whole_range=1.0))
    np.testing.assert_allclose(lengths(bones), before, rtol=1e-4)
    for limb in (LEFT_KNEE, RIGHT_ELBOW):
        first, second = bones[..., limb[0], :], bones[..., limb[1], :]
        cosine = (first * second).sum(axis=-1) / np.linalg.norm(first, axis=-1) / np.linalg.norm(second, axis=-1)
        share, _ = np.histogram(np.degrees(np.arccos(np.clip(cosine, -1, 1))), [0, 30, 60, 90, 120, 151])
        assert (share / share.sum() > 0.13).all()


@pytest.mark.parametrize(
    ("config", "seed"),
    [
        (poses.PoseConfig(turned=1, folded=0, raised=0, straightened=0), 0),
        (poses.PoseConfig(turned=0, folded=1, raised=0, straightened=0), 1),
        (poses.PoseConfig(turned=0, folded=0, raised=1, straightened=0), 2),
        (poses.PoseConfig(turned=0, folded=0, raised=0, straightened=1), 3),
        (poses.PoseConfig(turned=1, folded=1, raised=1, straightened=1), 4),
    ],
    ids=["turned", "folded", "raised", "straightened", "all"],
)
def test_pose_augmentation_keeps_bones_and_smoothness(config, seed):
    points, times = batch(count=32)
    bones = bodies.to_bones(points)
    before = bones.copy()
    poses.vary_poses(np.random.default_rng(seed), bones, times, config)
    assert np.abs(bones - before).max() > 0.01
    np.testing.assert_allclose(lengths(bones), lengths(before), atol=1e-5)
    # Nothing that was added may jump: at most 60 degrees between frames at 30 a second, of a bone 0.5 m long.
    step = np.linalg.norm(np.diff(bones[..., 1:, :], axis=1), axis=-1)
    assert step.max() < 0.35


@pytest.mark.parametrize("angle", [-2.0, -0.4, 0.0, 0.5, 1.5, 4.0])
def test_knees_bend_backwards_only(angle):
    points, _ = batch()
    bones = bodies.to_bones(points)
    rows = np.arange(len(bones))
    poses.bend_knee(bones, rows, LEFT_KNEE, np.full((len(bones), 1), angle, np.float32))
    thigh, shin = bones[..., 5, :], bones[..., 6, :]
    cosine = (thigh * shin).sum(axis=-1) / np.linalg.norm(thigh, axis=-1) / np.linalg.norm(shin, axis=-1)
    bend = np.arccos(np.clip(cosine, -1, 1))
    assert bend.max() < np.radians(156)
    forward = bodies.pelvis_frame(bones)[..., 2]
    if angle >= 0.5:
        assert bend.min() > 0.4
        assert ((shin * forward).sum(axis=-1) < 0).all()
    if angle <= -0.4:
        assert bend.max() < 0.05


def test_swapped_legs_come_from_the_donor():
    points, _ = batch(16)
    bones, lower = bodies.to_bones(points[:8]), bodies.to_bones(points[8:] * 1.2)
    mixed = bodies.combine_with_legs(bones, lower)
    np.testing.assert_array_equal(mixed[..., :7, :], lower[..., :7, :])
    frame_before, frame_after = bodies.pelvis_frame(bones), bodies.pelvis_frame(lower)
    for joint in (8, 12, 16, 10):
        local_before = (np.swapaxes(frame_before, -1, -2) @ bones[..., joint, :, None])[..., 0]
        local_after = (np.swapaxes(frame_after, -1, -2) @ mixed[..., joint, :, None])[..., 0]
        np.testing.assert_allclose(local_after, 1.2 * local_before, atol=1e-4)


def test_tilts_are_rotations_that_cover_all_orientations(rng):
    times = np.tile(np.arange(20) / 30, (500, 1))
    tilt = poses.random_tilts(rng, times, poses.PoseConfig())
    np.testing.assert_allclose(np.linalg.det(tilt), 1, atol=1e-4)
    upright = tilt[:, 0, 1, 1]
    assert 0.6 < (upright > 0.95).mean() < 0.9
    assert (upright < -0.5).any()
    assert (np.abs(upright) < 0.3).mean() > 0.01
