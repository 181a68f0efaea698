"""Other bodies and calibrated limbs: bones constant over time, mirrors undo themselves, straight limbs straight."""

from itertools import pairwise

import numpy as np
import pytest
from motion import STANDING, waving_clip
from pose_datasets import bodies, limbs, mocap, poses
from pose_datasets.limbs import ARMS, LEGS
from pose_datasets.ui_prmd import load_ui_prmd

from pose.structures.two_bones import place_middle

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


LEFT_LEG, RIGHT_LEG = LEGS.joints


def body(knees: np.ndarray, elbows: np.ndarray | float = 20.0) -> np.ndarray:
    """(T, 19, 3): the standing body with both knees and elbows flexed by so many degrees (T,)."""
    points = np.tile(STANDING, (len(knees), 1, 1))
    down, ahead = np.array([0, -1.0, 0]), np.array([0, 0, 1.0])
    for limb, bends, sign, sizes in ((LEGS, knees, -1, (0.42, 0.41)), (ARMS, elbows, 1, (0.29, 0.26))):
        half = np.radians(np.broadcast_to(bends, len(knees)))[:, None] / 2
        for start, middle, end in limb.joints:
            points[:, middle] = points[:, start] + sizes[0] * (down * np.cos(half) - sign * ahead * np.sin(half))
            points[:, end] = points[:, middle] + sizes[1] * (down * np.cos(half) + sign * ahead * np.sin(half))
    return points


def gait(least: float, frames: int = 600) -> np.ndarray:
    """Knee flexion that is least in a tenth of the frames and goes up to 60 degrees."""
    phase = np.linspace(0, 12 * np.pi, frames)
    return least + 60 * np.clip(np.sin(phase) * 0.55 + 0.45, 0, 1)


def too_long(points: np.ndarray, joints: tuple[int, int, int], factor: float) -> np.ndarray:
    """The same ends with bones that are longer, as a fitted skeleton has them."""
    points = points.copy()
    near, far = (np.linalg.norm(points[0, b] - points[0, a]) for a, b in pairwise(joints))
    place_middle(points, joints, (factor * near, factor * far), np.tile([0, 0, 1.0], (len(points), 1)))
    return points


def bones(points: np.ndarray, joints: tuple[int, int, int]) -> np.ndarray:
    return np.linalg.norm(np.diff(points[:, joints], axis=1), axis=-1)


@pytest.mark.parametrize("factors", [(1.01, 1.01), (1.015, 1.0), (1.0, 1.006)])
def test_knees_bent_by_wrong_bone_lengths_are_restored(factors):
    true = body(gait(3.0))
    recorded = true
    for joints, factor in zip(LEGS.joints, factors, strict=True):
        recorded = too_long(recorded, joints, factor)
    worst = max(np.percentile(limbs.flexion(recorded, joints), 5) for joints in LEGS.joints)
    assert worst > 11
    (moved,) = limbs.calibrate([recorded])
    for joints in LEGS.joints:
        difference = limbs.flexion(moved, joints) - limbs.flexion(true, joints)
        assert np.abs(difference).max() < 3.5  # soft below 6 degrees, so not exact there
        assert np.percentile(limbs.flexion(moved, joints), 5) < 5
        np.testing.assert_allclose(moved[:, [joints[0], joints[2]]], recorded[:, [joints[0], joints[2]]], atol=6e-4)
        assert np.ptp(bones(moved, joints), axis=0).max() < 1e-9
        # In the plane in which it was bent, and forwards.
        np.testing.assert_allclose(moved[:, joints[1], 0], recorded[:, joints[1], 0], atol=1e-6)
        assert (moved[:, joints[1], 2] > moved[:, joints[0], 2]).all()


def test_never_straight_legs_get_the_prior_length():
    crouching = body(gait(45.0))
    lengths = limbs.calibrated_lengths([crouching], LEGS)
    assert np.sum(lengths[0]) == pytest.approx(0.83 * LEGS.prior_factor, rel=2e-3)
    (moved,) = limbs.calibrate([crouching])
    assert limbs.flexion(moved, LEFT_LEG).min() > 35


def test_single_outlier_does_not_lengthen_a_limb():
    recorded = body(gait(14.0))
    jump = recorded.copy()
    jump[100:104, 3, 1] -= 0.04  # an ankle lost for four frames
    good, bad = (limbs.calibrated_lengths([clip], LEGS) for clip in (recorded, jump))
    np.testing.assert_allclose(good, bad, rtol=1e-3)
    assert bones(limbs.calibrate([jump])[0], RIGHT_LEG).std(axis=0).max() < 1e-9


def test_real_subjects_stand_straight_on_both_sides(cmu):
    """A walker whose right knee never came below 10 degrees, one with sides 20 degrees apart, and a figure of Daz."""
    for subject, worst in (("35", 5.0), ("131", 5.0), ("12", 5.0)):
        clips = read(cmu, subject)
        before = [np.concatenate([limbs.flexion(c, joints) for c in clips]) for joints in LEGS.joints]
        moved = limbs.calibrate(clips)
        after = [np.concatenate([limbs.flexion(c, joints) for c in moved]) for joints in LEGS.joints]
        assert max(np.percentile(f, 2) for f in before) > 12
        assert max(np.percentile(f, 2) for f in after) < worst
        assert all(np.ptp(bones(c, joints), axis=0).max() < 1e-6 for c in moved for joints in LEGS.joints + ARMS.joints)


def read(cmu, subject: str) -> list[np.ndarray]:
    return [points[::4] for _, _, points, _ in mocap.read_subject(cmu / f"{subject}.zip")]


def test_marker_subjects_have_straight_standing_legs(shared):
    """UI-PRMD, whose joints come from markers: nothing to calibrate, within half a per cent of a limb's length."""
    clips = [clip.points.astype(np.float64) for clip in load_ui_prmd(shared / "mocap" / "ui-prmd" / "s02.zip")]
    for limb in (LEGS, ARMS):
        for (near, far), joints in zip(limbs.calibrated_lengths(clips, limb), limb.joints, strict=True):
            measured = np.median(np.concatenate([bones(clip, joints) for clip in clips]), axis=0)
            assert near + far == pytest.approx(measured.sum(), rel=0.005)
