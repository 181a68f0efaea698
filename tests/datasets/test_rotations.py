"""Rotations against independent definitions."""

import numpy as np
import pytest
from pose_datasets import rotations, vectors


@pytest.mark.parametrize("angle", [0.0, 1e-5, 0.3, np.pi / 2, 3.0, np.pi, 5.0])
def test_rotation_vectors_turn_by_their_length_about_their_direction(rng, angle):
    axis = vectors.unit(rng.normal(size=(20, 3)))
    matrix = rotations.from_vector(axis * angle)
    np.testing.assert_allclose(matrix @ np.swapaxes(matrix, -1, -2), np.broadcast_to(np.eye(3), (20, 3, 3)), atol=1e-12)
    np.testing.assert_allclose(np.linalg.det(matrix), 1, atol=1e-12)
    np.testing.assert_allclose((matrix @ axis[..., None])[..., 0], axis, atol=1e-12)
    across = vectors.unit(vectors.perpendicular(rng.normal(size=(20, 3)), axis))
    turned = (matrix @ across[..., None])[..., 0]
    np.testing.assert_allclose(turned, np.cos(angle) * across + np.sin(angle) * np.cross(axis, across), atol=1e-12)


@pytest.mark.parametrize("axis", "xyz")
def test_turns_about_an_axis_are_rotation_vectors(axis):
    angles = np.linspace(-4, 4, 9)
    vector = angles[:, None] * np.eye(3)["xyz".index(axis)]
    np.testing.assert_allclose(rotations.about_axis(axis, angles), rotations.from_vector(vector), atol=1e-12)


@pytest.mark.parametrize("size", [2, 3])
def test_short_vectors(rng, size):
    a, b = rng.normal(size=(2, 4, 5, size))
    np.testing.assert_allclose(vectors.dot(a, b), (a * b).sum(axis=-1))
    np.testing.assert_allclose(vectors.norm(a), np.linalg.norm(a, axis=-1))
    if size == 3:
        np.testing.assert_allclose(vectors.cross(a, b), np.cross(a, b))
