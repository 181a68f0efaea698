"""Conversion between rotation matrices and rotation vectors (axis times angle in radians)."""

import math

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F64

_SMALL = 1e-9


def to_matrix(vectors: NDArray[np.floating]) -> F64:
    """Return the rotation matrices (..., 3, 3) from rotation vectors (..., 3), with Rodrigues' formula."""
    vectors = np.asarray(vectors, np.float64)
    if vectors.ndim == 1:
        import cv2  # a slow import, not needed for help and for reading results

        return np.asarray(cv2.Rodrigues(vectors)[0])
    angle = np.linalg.norm(vectors, axis=-1)[..., None, None]
    cross = np.zeros((*vectors.shape[:-1], 3, 3))
    x, y, z = vectors[..., 0], vectors[..., 1], vectors[..., 2]
    cross[..., 0, 1], cross[..., 0, 2], cross[..., 1, 2] = -z, y, -x
    cross[..., 1, 0], cross[..., 2, 0], cross[..., 2, 1] = z, -y, x
    safe = np.maximum(angle, _SMALL)
    sine = np.where(angle > _SMALL, np.sin(safe) / safe, 1.0)
    rest = np.where(angle > 1e-6, (1 - np.cos(safe)) / safe**2, 0.5)
    return np.asarray(np.eye(3) + sine * cross + rest * (cross @ cross))


def to_vector(matrices: NDArray[np.floating]) -> F64:
    """Return the rotation vectors (..., 3), of length up to pi, from rotation matrices (..., 3, 3)."""
    matrices = np.asarray(matrices, np.float64)
    if matrices.ndim == 2 and (vector := _vector(np.asarray(matrices, np.float64))) is not None:
        return vector
    skew = np.stack(
        [
            matrices[..., 2, 1] - matrices[..., 1, 2],
            matrices[..., 0, 2] - matrices[..., 2, 0],
            matrices[..., 1, 0] - matrices[..., 0, 1],
        ],
        axis=-1,
    )
    sine = np.linalg.norm(skew, axis=-1) / 2
    cosine = (np.trace(matrices, axis1=-2, axis2=-1) - 1) / 2
    angle = np.arctan2(sine, cosine)
    vectors = skew * np.where(sine > 1e-7, angle / np.maximum(2 * sine, _SMALL), 0.5)[..., None]
    flipped = (sine <= 1e-7) & (cosine < 0)  # at 180 degrees the axis is the eigenvector with eigenvalue 1
    if flipped.any():
        outer = (matrices[flipped] + np.eye(3)) / 2
        best = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
        axis = outer[np.arange(len(best)), best]
        vectors[flipped] = np.pi * axis / np.linalg.norm(axis, axis=-1, keepdims=True)
    return np.asarray(vectors)


def _vector(matrix: F64) -> F64 | None:
    """Return the rotation vector of one matrix (3, 3), fast because without NumPy calls; None for half a turn."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()
    x, y, z = h - f, c - g, d - b
    sine, cosine = math.sqrt(x * x + y * y + z * z) / 2, (a + e + i - 1) / 2
    if sine <= 1e-7 and cosine < 0:
        return None
    share = math.atan2(sine, cosine) / (2 * sine) if sine > 1e-7 else 0.5
    return np.array([share * x, share * y, share * z])
