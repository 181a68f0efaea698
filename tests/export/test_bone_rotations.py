"""Quaternions against the matrices of the motion capture readers."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pose_datasets.rotations import intrinsic

from pose.structures import rotations

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
