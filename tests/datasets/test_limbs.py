"""Calibrated limbs: straight at the straightest, ends where they were, bones constant, straight limbs stay straight."""

from itertools import pairwise

import numpy as np
import pytest
from motion import STANDING
from pose_datasets import limbs, mocap
from pose_datasets.limbs import ARMS, LEGS
from pose_datasets.ui_prmd import load_ui_prmd

from pose.structures.two_bones import place_middle

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
