"""Heels and toes of legs, images and floors: with exact 2D they come back where they were."""

from dataclasses import replace

import numpy as np
import pytest
from pose_apps.run import main
from pose_datasets.rotations import from_vector
from pose_fakes import STANDING, run_info

from pose.errors import UsageError
from pose.export.result import load
from pose.results import NpzWriter
from pose.structures.camera import Camera, project
from pose.structures.skeletons import COCO17
from pose.world.contacts import point_contacts
from pose.world.foot_points import (
    ANKLE_SD,
    DEFAULT_SHAPE,
    ImageFeet,
    ankle_flexions,
    foot_frames,
    lift_feet,
)

CAMERA = Camera.of((1000, 1000))
FOCAL = np.diag(CAMERA.matrix)[None, :2]
ANKLES, KNEES = [6, 3], [5, 2]
UP = np.array([[0.0, -1.0, 0.0]])


def pose(yaw):
    """(1, 17, 3) m of a person who stands 4 m away and is turned by `yaw`."""
    cos, sin = np.cos(yaw), np.sin(yaw)
    turn = np.array([[cos, 0, sin], [0, 1, 0], [-sin, 0, cos]])
    return (STANDING.astype(float) @ turn.T + (0.2, 0.3, 4))[None], turn


def true_feet(joints, turn, pitch=0.0):
    """(1, 2, 2, 3) m: the toes point forward (towards the camera without a turn), the foot turned up by `pitch`."""
    shank = np.linalg.norm(joints[0, KNEES] - joints[0, ANKLES], axis=1).mean()
    forward, down = turn @ (0, 0, -1), np.array([0.0, 1.0, 0.0])
    along = np.cos(pitch) * forward - np.sin(pitch) * down
    below = np.cos(pitch) * down + np.sin(pitch) * forward
    feet = [DEFAULT_SHAPE.forward_offsets[i] * along + DEFAULT_SHAPE.ankle_heights[i] * below for i in range(2)]
    return joints[:, ANKLES][:, :, None] + shank * np.array(feet)[None, None]


def seen_of(joints, feet):
    pixels = project(np.concatenate([joints[:, ANKLES][:, :, None], feet], axis=2), CAMERA.matrix)
    return ImageFeet(pixels, np.ones(pixels.shape[:3], np.float32), FOCAL)


@pytest.mark.parametrize("yaw", [0.0, 0.6, -1.2, 2.4])
def test_standing_foot_directions_are_recovered(yaw):
    joints, turn = pose(yaw)
    feet = true_feet(joints, turn)
    found = lift_feet(joints, seen_of(joints, feet), UP, np.ones((1, 2)))
    np.testing.assert_allclose(found, feet, atol=2e-3)


def test_feet_that_keypoints_show_backwards_follow_the_leg():
    """Networks place the toes of people seen from behind and above below their heels, as if they faced the camera."""
    joints, turn = pose(np.pi - 0.2)
    joints[..., 1] += 3  # below the camera
    backwards = lift_feet(joints, seen_of(joints, true_feet(joints, -turn)), UP, np.ones((1, 2)))
    assert np.isnan(backwards).all(), "not observed"
    frames = foot_frames(joints, seen_of(joints, true_feet(joints, -turn)), UP, np.ones((1, 2)))
    np.testing.assert_allclose(frames, foot_frames(joints, None, UP, np.ones((1, 2))), atol=1e-9)
    assert ((frames[0, :, 0] @ turn) @ (0, 0, -1) > 0.9).all()


@pytest.mark.parametrize("pitch", [-0.5, 0.4])
def test_swinging_foot_rotation_is_recovered_from_the_side(pitch):
    """The leg says that the foot is at a right angle to it, so the angle is a tenth too small."""
    joints, turn = pose(-np.pi / 2 + 0.3)
    feet = true_feet(joints, turn, pitch)
    found = lift_feet(joints, seen_of(joints, feet), UP, np.zeros((1, 2)))
    along = (found - feet)[:, :, 1] - (found - feet)[:, :, 0]
    assert np.linalg.norm(along, axis=-1).max() < 0.1 * abs(pitch)
    np.testing.assert_allclose(found, feet, atol=0.03)


def test_noisy_foot_points_fall_back_to_the_leg():
    joints, turn = pose(0.6)
    seen = seen_of(joints, true_feet(joints, turn, 0.4))
    without = replace(seen, scores=np.zeros_like(seen.scores))
    far = joints + np.array([0, 0, 200.0])
    seen_far = seen_of(far, true_feet(far, turn, 0.4))
    legs, near, nothing = (foot_frames(joints, one, None, None) for one in (None, seen, without))
    np.testing.assert_allclose(nothing, legs)
    assert np.abs(near - legs).max() > 0.3
    np.testing.assert_allclose(np.linalg.norm(foot_frames(far, seen_far, None, None), axis=-1), 1, atol=1e-6)


def test_unobserved_feet_are_level_or_square_to_the_shank():
    joints, _ = pose(0.6)
    bent = joints.copy()
    bent[:, KNEES] += (0.1, 0, -0.15)
    contacts = np.array([[1.0, 0.0]])
    frames = foot_frames(bent, None, UP, contacts)
    shank = bent[0, KNEES[1]] - bent[0, ANKLES[1]]
    assert abs(frames[0, 0, 0] @ UP[0]) < 0.03
    assert frames[0, 0, 1] @ UP[0] > 0.999
    assert abs(frames[0, 1, 0] @ shank) < 1e-6
    np.testing.assert_allclose((frames[:, :, 0] * frames[:, :, 1]).sum(axis=-1), 0, atol=1e-9)


@pytest.mark.parametrize("place", [(0, 0, 0.0), (0, 0, -2.0), (0, 0, 1e6)])
def test_degenerate_legs_give_finite_foot_directions(place):
    joints, turn = pose(0.6)
    seen = seen_of(joints, true_feet(joints, turn))
    for body in (joints - joints[:, :1] + place, np.zeros_like(joints) + place):
        assert np.isfinite(foot_frames(body, seen, UP, np.ones((1, 2)))).all()


@pytest.mark.parametrize("bend", [-0.4, 0.0, 0.5])
def test_ankle_flexion_equals_shank_lean_over_a_flat_foot(bend):
    joints, turn = pose(-np.pi / 2)
    feet = true_feet(joints, turn)
    axis = turn @ (1, 0, 0)
    knees = joints[:, ANKLES] + (joints[:, KNEES] - joints[:, ANKLES]) @ from_vector(bend * axis).T
    leaning = joints.copy()
    leaning[:, KNEES] = knees
    flexion = ankle_flexions(leaning, seen_of(joints, feet), UP, np.ones((1, 2)))
    np.testing.assert_allclose(flexion, np.degrees(bend), atol=3)
    without = replace(seen_of(joints, feet), scores=np.zeros((1, 2, 3), np.float32))
    assert np.isnan(ankle_flexions(leaning, without, UP, np.ones((1, 2)))).all()


def test_heel_and_toe_contacts_are_sequential():
    """A foot rolls: the heel is up from 1.2 s on, the toe until 0.6 s; the other foot is never seen."""
    times = np.arange(60) / 30
    feet = np.full((60, 2, 2, 3), np.nan)
    feet[:, 0] = (0, 0.03, 0)
    lifted = np.stack([np.clip(times - 1.2, 0, None), np.clip(0.6 - times, 0, None)], axis=1)
    feet[:, 0, :, 1] += 1.5 * lifted
    stands = point_contacts(feet, times)
    assert not stands[:, 1].any()
    np.testing.assert_allclose(times[stands[:, 0, 0]][[0, -1]], (0, 1.2), atol=0.05)
    np.testing.assert_allclose(times[stands[:, 0, 1]][[0, -1]], (0.6, times[-1]), atol=0.05)


def test_a_run_gives_feet_below_their_ankles_in_both_spaces(videos, at_hand, tmp_path):
    words = ["--end", "0.3", "--formats", "npz", "--quiet", "--out", str(tmp_path)]
    assert main([str(videos / "dance.mp4"), *words]) == 0
    result = load(tmp_path / "poses.npz")
    feet, ankles = result.feet(), result.joints()[:, :, ANKLES]
    assert feet.shape == (1, len(result.times), 2, 2, 3)
    assert (feet[..., 1] < ankles[..., None, 1]).all()
    assert (np.abs(feet[..., 1]) < 0.08).all()  # on the floor: the person stands
    assert (feet[..., 1, 2] > feet[..., 0, 2]).all()  # toes are nearer to the camera, which z points to
    stands = result.foot_contacts()
    assert stands.shape == feet.shape[:-1]
    assert stands.mean() > 0.9
    angles = result.angles()
    ankles = np.stack([angles["left_ankle_flexion"], angles["right_ankle_flexion"]])
    assert (np.abs(ankles) < 30).all()
    np.testing.assert_array_equal(angles.deviations[..., -2:], ANKLE_SD)
    away = [
        np.linalg.norm(result.feet(space) - result.joints(space)[:, :, ANKLES, None], axis=-1)
        for space in ("world", "camera")
    ]
    np.testing.assert_allclose(*away, rtol=0.05)


def test_feet_need_a_world_and_heels(tmp_path):
    with NpzWriter(tmp_path / "poses.npz", run_info(COCO17)):
        pass
    for method in ("feet", "foot_contacts"):
        with pytest.raises(UsageError, match="has no world"):
            getattr(load(tmp_path / "poses.npz"), method)()
