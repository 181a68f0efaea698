"""Operations on vectors of two or three components on the last axis, in large batches.

NumPy's reductions over such a short axis are ten times slower than explicit sums of the components.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]  # floating point; results have the precision of the input


def dot(a: Array, b: Array) -> Array:
    """Compute the dot products of vectors on the last axis, which has two or three components."""
    product = a * b
    total: Array = product[..., 0] + product[..., 1]
    for i in range(2, product.shape[-1]):
        total += product[..., i]
    return total


def cross(a: Array, b: Array) -> Array:
    """Compute the cross products of vectors (..., 3)."""
    (ax, ay, az), (bx, by, bz) = ((v[..., 0], v[..., 1], v[..., 2]) for v in (a, b))
    return np.stack([ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx], axis=-1)


def norm(vector: Array) -> Array:
    """Compute the lengths (...,) of vectors on the last axis, which has two or three components."""
    return np.sqrt(dot(vector, vector))


def unit(vector: Array) -> Array:
    """Normalise vectors on the last axis to unit length. Zero vectors stay zero."""
    return vector / np.maximum(norm(vector), 1e-8)[..., None]


def perpendicular(vector: Array, direction: Array) -> Array:
    """Return the component of vectors (..., n) perpendicular to the unit vectors `direction` (..., n)."""
    result: Array = vector - dot(vector, direction)[..., None] * direction
    return result
