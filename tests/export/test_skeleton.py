"""Rotations from joints: exact where the joints show everything, and bones constant always."""

import numpy as np
import pytest
from export_fakes import wave

from pose.body import skeleton
from pose.body.skeleton import NAMES, SkeletonMotion, fit_body, joint_positions, residual, solve
from pose.structures import rotations
from pose.structures.rotations import unit
from pose.structures.skeletons import H36M17

MIRROR = np.array([-1.0, 1, 1])


def joint(points, name):
    return points[..., H36M17.index(name), :]


def test_the_twist_of_an_arm_that_passes_straight_is_continuous(body):
    """Its plane is another one after it: the upper arm flipped by 58 degrees in one frame."""
    times = np.arange(60) / 30
    bend = np.radians(np.abs(np.linspace(-180, 180, 60)) + 1)
    quaternions = np.tile(rotations.IDENTITY, (60, 17, 1))
    turned = np.where(np.arange(60) < 30, 0.0, np.radians(100))
    quaternions[:, NAMES.index("left_shoulder")] = rotations.about(np.array([1.0, 0, 0]), turned)
    quaternions[:, NAMES.index("left_elbow")] = rotations.about(np.array([0.0, -1, 0]), np.minimum(bend, 1.5))
    points = joint_positions(body, SkeletonMotion(np.zeros((60, 3)), quaternions))
    motion, jumpy = solve(points, body, times), solve(points, body)
    steps = []
    for one in (motion, jumpy):
        arm = one.quaternions[:, NAMES.index("left_shoulder")]
        steps.append(np.degrees(2 * np.arccos(np.clip(np.abs((arm[1:] * arm[:-1]).sum(axis=1)), 0, 1))).max())
    assert steps[0] < 20 < 50 < steps[1]
    np.testing.assert_allclose(joint_positions(body, motion), points, atol=1e-6, err_msg="no joint moves")


@pytest.mark.parametrize("seed", range(6))
def test_the_twist_of_any_limb_is_continuous_and_does_not_wind_up(body, seed):
    """Arms that swing through straight between random planes, with noise: no flip, no turn around the own axis."""
    rng = np.random.default_rng(seed)
    times = np.arange(150) / 30
    bend = np.radians(30 * (1 + np.cos(2 * np.pi * times / 2.5)))
    plane = np.repeat(rng.uniform(-np.pi, np.pi, 3), (38, 75, 37))  # another one whenever the arm is straight
    lower = np.stack([np.cos(bend), np.sin(bend) * np.cos(plane), np.sin(bend) * np.sin(plane)], axis=1)
    lower += rng.normal(0, 0.03, lower.shape)
    upper = np.tile([1.0, 0.0, 0.0], (150, 1))
    still = np.tile(rotations.IDENTITY, (150, 1))
    turned = skeleton.hinged(still, upper, unit(lower), np.array([0.0, 0.0, 1.0]), times)
    assert np.degrees(rotations.angle_between(turned[1:], turned[:-1])).max() < 18
    clear = bend > np.radians(40)
    expected = np.cross(upper, lower)[clear]
    seen = rotations.rotate(turned[clear], np.array([0.0, 0.0, 1.0]))
    assert np.degrees(np.arccos((unit(expected) * seen).sum(axis=1))).max() < 15, "the hinge bends where it is bent"


def test_bone_lengths_are_estimated_from_joints(body, rng):
    found = fit_body([joint_positions(body, wave(80, rng)), joint_positions(body, wave(50, rng))])
    np.testing.assert_allclose(found.offsets, body.offsets, atol=1e-9)


def test_rotations_reproduce_the_joints(body, rng):
    motion = wave(300, rng)
    points = joint_positions(body, motion)
    solved = solve(points, body)
    assert residual(points, body, solved).max() < 1e-6
    bent = [NAMES.index(name) for name in ("left_hip", "right_hip", "left_shoulder", "right_shoulder", "left_knee")]
    # A bend of more than 15 degrees shows the twist, so the very turns come back.
    assert np.degrees(rotations.angle_between(solved.quaternions, motion.quaternions))[:, bent].max() < 1e-3


def test_forward_kinematics_has_constant_bones_whatever_the_joints(body, rng):
    points = joint_positions(body, wave(100, rng)) + rng.normal(0, 0.1, (100, 17, 3))
    placed = joint_positions(body, solve(points, body))
    for parent, child in (
        ("left_hip", "left_knee"),
        ("right_elbow", "right_wrist"),
        ("pelvis", "spine"),
        ("neck", "head"),
    ):
        assert np.ptp(np.linalg.norm(joint(placed, parent) - joint(placed, child), axis=-1)) < 1e-9


def test_mirrored_person_gives_mirrored_rotations(body, rng):
    points = joint_positions(body, wave(60, rng)) + rng.normal(0, 0.02, (60, 17, 3))
    mirrored = points[:, list(H36M17.flip_order)] * MIRROR
    placed = joint_positions(body, solve(mirrored, body))[:, list(H36M17.flip_order)] * MIRROR
    np.testing.assert_allclose(placed, joint_positions(body, solve(points, body)), atol=1e-9)


@pytest.mark.parametrize("limb", ["hip", "shoulder"])
def test_limb_twist_grows_smoothly_with_bending(body, limb):
    """The thigh (or upper arm) is twisted by 40 degrees while the knee bends from 0 to 60 degrees."""
    bends = np.radians(np.linspace(0, 60, 241))
    hinge, axis, middle = ((1, 0, 0), (0, -1, 0), "knee") if limb == "hip" else ((0, -1, 0), (1, 0, 0), "elbow")
    turns = np.tile(rotations.IDENTITY, (len(bends), 17, 1))
    turns[:, NAMES.index(f"left_{limb}")] = rotations.about(np.array(axis, float), np.full(len(bends), np.radians(40)))
    turns[:, NAMES.index(f"left_{middle}")] = rotations.about(np.array(hinge, float), bends)
    points = joint_positions(body, skeleton.SkeletonMotion(np.zeros((len(bends), 3)), turns))
    found = solve(points, body).quaternions[:, NAMES.index(f"left_{limb}")]
    twist = np.degrees(rotations.angle_between(found, np.tile(rotations.IDENTITY, (len(bends), 1))))
    assert twist[0] < 1e-6
    np.testing.assert_allclose(twist[np.degrees(bends) > 15], 40, atol=1e-6)
    assert np.abs(np.diff(twist)).max() < 1.5, "a step of a quarter of a degree twists by no more"


def test_degenerate_bones_give_finite_rotations(body):
    standing = joint_positions(body, skeleton.SkeletonMotion(np.zeros((1, 3)), np.tile(rotations.IDENTITY, (1, 17, 1))))
    upside = standing.copy()
    upside[:, H36M17.index("left_knee")] = joint(standing, "left_hip") + np.array([0, 0.43, 0])
    for points in (upside, np.zeros((1, 17, 3))):
        motion = solve(points, body)
        np.testing.assert_allclose(np.linalg.norm(motion.quaternions, axis=-1), 1, atol=1e-9)
    leg = solve(upside, body)
    np.testing.assert_allclose(joint(joint_positions(body, leg), "left_knee"), joint(upside, "left_knee"), atol=1e-9)
