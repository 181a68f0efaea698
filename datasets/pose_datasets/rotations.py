"""Rotation matrices, vectorised over leading axes. Frames are right-handed, and matrices multiply column vectors."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pose_datasets.vectors import dot

Array = NDArray[Any]  # floating point; results have the precision of the input


def about_axis(axis: str, radians: Array) -> Array:
    """Return matrices (..., 3, 3) that rotate by `radians` (...,) about "x", "y" or "z", by the right-hand rule."""
    c, s = np.cos(radians), np.sin(radians)
    i = "xyz".index(axis)
    j, k = (i + 1) % 3, (i + 2) % 3
    matrix = np.zeros((*np.shape(radians), 3, 3), np.result_type(radians))
    matrix[..., i, i] = 1
    matrix[..., j, j] = matrix[..., k, k] = c
    matrix[..., j, k] = -s
    matrix[..., k, j] = s
    return matrix


def intrinsic(order: str, radians: Array) -> Array:
    """Convert Euler angles (..., n) rad to rotation matrices R(order[0]) @ R(order[1]) @ ... of column vectors.

    The order "zxy" rotates about z, then about the new x axis, then about the new y axis, as the channels of a BVH
    file. Rotations about fixed axes in the opposite order give the same matrix: `axis XYZ` of an ASF file is "zyx"
    here.
    """
    matrix = about_axis(order[0], radians[..., 0])
    for i, axis in enumerate(order[1:], start=1):
        matrix = matrix @ about_axis(axis, radians[..., i])
    return matrix


def from_vector(vector: Array) -> Array:
    """Convert rotation vectors (..., 3) rad to matrices (..., 3, 3) by Rodrigues' formula."""
    square = dot(vector, vector)
    angle = np.sqrt(square)
    # sin(a)/a and (1 - cos(a))/a^2 by sinc, which is exact at zero.
    first = np.sinc(angle / np.pi)
    second = 0.5 * np.sinc(angle / (2 * np.pi)) ** 2
    matrix = second[..., None, None] * vector[..., :, None] * vector[..., None, :]
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        matrix[..., i, i] += 1 - second * square
        matrix[..., k, j] += first * vector[..., i]
        matrix[..., j, k] -= first * vector[..., i]
    return matrix
