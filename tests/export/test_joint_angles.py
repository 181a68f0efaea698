"""Angles of poses that a person can name, their uncertainty, and quaternions against matrices."""

import itertools

import numpy as np
import pytest
from export_fakes import wave
from hypothesis import given, settings
from hypothesis import strategies as st
from pose_datasets.rotations import about_axis, from_vector, intrinsic

from pose.body.joint_angles import NAMES, RADIUS_PER_STD, joint_angles
from pose.body.skeleton import joint_positions
from pose.structures import rotations
from pose.structures.skeletons import H36M17

UP = np.array([0.0, 1, 0])
SIGMA = np.full((1, 17), 20.0)
# Hanging arms, straight legs; x to the left, y up, z forward.
STANDING = {
    "pelvis": (0, 1, 0), "left_hip": (0.12, 1, 0), "right_hip": (-0.12, 1, 0), "left_knee": (0.12, 0.55, 0),
    "right_knee": (-0.12, 0.55, 0), "left_ankle": (0.12, 0.1, 0), "right_ankle": (-0.12, 0.1, 0), "spine": (0, 1.25, 0),
    "thorax": (0, 1.5, 0), "neck": (0, 1.6, 0), "head": (0, 1.75, 0), "left_shoulder": (0.17, 1.5, 0),
    "right_shoulder": (-0.17, 1.5, 0), "left_elbow": (0.17, 1.2, 0), "right_elbow": (-0.17, 1.2, 0),
    "left_wrist": (0.17, 0.95, 0), "right_wrist": (-0.17, 0.95, 0),
}  # fmt: skip


def pose(**moved):
    return np.array([[moved.get(name, STANDING[name]) for name in H36M17.names]], float)


def angles(points, up=UP):
    return dict(zip(NAMES, joint_angles(points, SIGMA.repeat(len(points), 0), up).degrees[0].tolist(), strict=True))


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ({}, dict.fromkeys(NAMES, 0)),
        (
            {"left_knee": (0.12, 1, 0.45), "left_ankle": (0.12, 0.55, 0.45)},
            {"left_hip_flexion": 90, "left_knee_flexion": 90},
        ),
        ({"right_knee": (-0.12, 0.55, 0), "right_ankle": (-0.12, 0.55, -0.45)}, {"right_knee_flexion": 90}),
        ({"right_knee": (-0.12, 1 - 0.45 * 0.8, -0.45 * 0.6)}, {"right_hip_flexion": -36.87}),
        ({"left_knee": (0.12 + 0.225, 1 - 0.45 * np.sqrt(0.75), 0)}, {"left_hip_abduction": 30}),
        ({"right_knee": (-0.12 - 0.225, 1 - 0.45 * np.sqrt(0.75), 0)}, {"right_hip_abduction": 30}),
        (
            {"left_elbow": (0.47, 1.5, 0), "left_wrist": (0.72, 1.5, 0)},
            {"left_shoulder_abduction": 90, "left_shoulder_elevation": 90},
        ),
        (
            {"right_elbow": (-0.17, 1.5, 0.3), "right_wrist": (-0.17, 1.5, 0.55)},
            {"right_shoulder_flexion": 90, "right_shoulder_elevation": 90},
        ),
        ({"left_elbow": (0.17, 1.2, 0), "left_wrist": (0.17, 1.2, 0.25)}, {"left_elbow_flexion": 90}),
        ({"head": (0, 1.5 + 0.2, 0.2)}, {"neck_flexion": 45}),
        ({"head": (0, 1.5 + 0.2, -0.2)}, {"neck_flexion": -45}),
    ],
)
def test_named_poses_have_the_documented_angles(moved, expected):
    assert {name: angles(pose(**moved))[name] for name in expected} == pytest.approx(expected, abs=0.01)


def test_trunk_lean_is_measured_from_the_vertical(body, rng):
    leaning = pose() @ about_axis("x", np.radians(25)).T
    assert angles(leaning)["trunk_lean"] == pytest.approx(25)
    points = joint_positions(body, wave(20, rng))
    turned = points @ from_vector(np.array([0.5, -1.2, 2.0])).T
    one, two = (joint_angles(p, SIGMA.repeat(20, 0), UP).degrees for p in (points, turned))
    others = [column for column, name in enumerate(NAMES) if name != "trunk_lean"]
    np.testing.assert_allclose(one[:, others], two[:, others], atol=1e-6)


def test_angle_deviations_equal_the_spread_under_noise(body, rng):
    """30 mm of sigma: a knee bent by 80 degrees scatters as it says. Not near 0, below which it cannot go."""
    points = joint_positions(body, wave(1, rng))
    sigma = rng.uniform(10, 40, (1, 17))
    noisy = points + rng.normal(size=(4000, 17, 3)) * (sigma / 1000 / RADIUS_PER_STD)[..., None]
    said = joint_angles(points, sigma, UP)
    spread = joint_angles(noisy, np.ones((4000, 17)), UP).degrees.std(axis=0)
    fair = (said.degrees[0] > 3 * said.deviations[0]) & (said.deviations[0] < 10)
    assert fair.sum() >= 6
    np.testing.assert_allclose(spread[fair], said.deviations[0, fair], rtol=0.1)
    inside = (np.linalg.norm(noisy - points, axis=-1) < sigma / 1000).mean()
    assert inside == pytest.approx(0.6827, abs=0.01)


def test_shoulder_flexion_is_undefined_for_a_lateral_arm():
    side = pose(left_elbow=(0.47, 1.5, 0.001), left_wrist=(0.72, 1.5, 0.001))
    found = joint_angles(side, SIGMA, UP)
    assert found.deviations[0, NAMES.index("left_shoulder_flexion")] == 180
    assert found.deviations[0, NAMES.index("left_shoulder_elevation")] < 10


ORDERS = ["".join(order) for order in itertools.permutations("xyz")]
ANGLES = st.floats(-7, 7)
NEAR_LOCK = st.sampled_from([-np.pi / 2, np.pi / 2]).flatmap(lambda a: st.floats(-1e-6, 1e-6).map(lambda d: a + d))


def random_turns(rng, *shape):
    return rotations.unit(rng.normal(size=(*shape, 4)))


def to_matrix(q):
    """(..., 4) -> (..., 3, 3)."""
    return np.stack([rotations.rotate(q, axis) for axis in np.eye(3)], axis=-1)


def test_matrices_and_quaternions_are_each_others_inverse(rng):
    q = random_turns(rng, 500)
    matrices = to_matrix(q)
    np.testing.assert_allclose(matrices @ np.swapaxes(matrices, 1, 2), np.tile(np.eye(3), (500, 1, 1)), atol=1e-12)
    np.testing.assert_allclose(np.abs(rotations.dot(rotations.from_matrix(matrices), q)), 1, atol=1e-12)
    half_turns = np.stack([np.diag(d) for d in ([1.0, -1, -1], [-1.0, 1, -1], [-1.0, -1, 1], [1.0, 1, 1])])
    np.testing.assert_allclose(to_matrix(rotations.from_matrix(half_turns)), half_turns, atol=1e-15)


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=60)
@given(data=st.data())
def test_euler_angles_round_trip_in_any_order_and_at_gimbal_lock(order, data):
    angles = np.array([data.draw(ANGLES), data.draw(st.one_of(ANGLES, NEAR_LOCK)), data.draw(ANGLES)])
    matrix = intrinsic(order, angles)
    back = rotations.euler(rotations.from_matrix(matrix), order)
    assert abs(back[1]) <= np.pi / 2
    np.testing.assert_allclose(intrinsic(order, back), matrix, atol=1e-6)


@pytest.mark.parametrize("order", ORDERS)
def test_unwrapped_angles_are_continuous_and_keep_the_rotation(order):
    """Through both poles of the middle angle and several whole turns of the outer ones."""
    time = np.linspace(0, 12, 3000)
    angles = np.stack([2 * time, 2.2 * np.sin(time), -1.3 * time], axis=1)
    q = rotations.from_matrix(intrinsic(order, angles))
    got = rotations.unwrapped_euler(q, order)
    np.testing.assert_allclose(intrinsic(order, got), intrinsic(order, angles), atol=1e-6)
    assert np.abs(np.diff(got, axis=0)).max() < 0.05
    assert np.ptp(got[:, 0]) > 20, "the outer angle goes on turning"


def test_the_shortest_turn_between_directions(rng):
    start, goal = rotations.unit(rng.normal(size=(2, 100, 3)))
    q = rotations.shortest_rotation(start, goal)
    np.testing.assert_allclose(rotations.rotate(q, start), goal, atol=1e-9)
    np.testing.assert_allclose(rotations.dot(q[:, 1:], start), 0, atol=1e-9)  # no twist about either


def test_opposite_directions_rotate_about_a_deterministic_axis(rng):
    start = rotations.unit(rng.normal(size=(20, 3)))
    q = rotations.shortest_rotation(start, -start)
    np.testing.assert_allclose(rotations.rotate(q, start), -start, atol=1e-9)
    np.testing.assert_array_equal(q, rotations.shortest_rotation(start, -start))


def test_slerp_takes_the_short_path_at_constant_speed(rng):
    a, b = random_turns(rng, 2, 100)
    whole = rotations.angle_between(a, b)
    for share in (0.0, 0.3, 1.0):
        middle = rotations.slerp(a, b, np.full(100, share))
        np.testing.assert_allclose(rotations.angle_between(a, middle), share * whole, atol=1e-7)
    np.testing.assert_allclose(rotations.slerp(a, a, np.full(100, 0.5)), a, atol=1e-12)
