"""Geometry of arms and legs as chains of two bones."""

import numpy as np

from pose.structures.types import F64

_SOFT_DEGREES = 6.0  # degrees of flexion below which the transition to straight limbs is smooth
_PLANE_M = 0.01  # m; distance of the middle joint from the chord below which the typical bending direction contributes


def reach(near: float, far: float, degrees: float) -> float:
    """Return the distance between the ends of two connected bones at a flexion in degrees; 0 is straight."""
    return float(np.sqrt(near**2 + far**2 + 2 * near * far * np.cos(np.radians(degrees))))


def place_middle(
    points: F64, joints: tuple[int, int, int], lengths: tuple[float, float], typical_bend: F64 | None = None
) -> None:
    """Give the two bones of a limb the required lengths by moving the middle joint. `points` is changed in place.

    The limb, with indices of near end, middle joint and far end, stays in its plane. The near end is kept. The far end
    is kept if it is within reach, with a smooth transition below 6 degrees of flexion. `typical_bend` (T, 3) is the
    typical direction from the line between both ends to the middle joint, which determines the plane of nearly straight
    limbs.
    """
    start, middle, end = joints
    near, far = lengths
    chord = points[:, end] - points[:, start]
    distance = np.linalg.norm(chord, axis=-1, keepdims=True)
    along = chord / np.maximum(distance, 1e-9)
    soft = reach(near, far, _SOFT_DEGREES)
    room = near + far - soft
    within = np.where(distance > soft, soft - room * np.expm1(-np.maximum(distance - soft, 0) / room), distance)
    within = np.maximum(within, abs(near - far) + 1e-6)
    bend = _perpendicular(points[:, middle] - points[:, start], along)
    if typical_bend is not None:
        unclear = _PLANE_M * np.exp(-((np.linalg.norm(bend, axis=-1, keepdims=True) / (2 * _PLANE_M)) ** 2))
        bend = bend + unclear * _unit(_perpendicular(typical_bend, along))
    x = (within**2 + near**2 - far**2) / (2 * within)
    points[:, middle] = points[:, start] + x * along + np.sqrt(np.maximum(near**2 - x**2, 0)) * _unit(bend)
    points[:, end] = points[:, start] + within * along


def _perpendicular(vector: F64, direction: F64) -> F64:
    """Return the component of vectors (T, 3) perpendicular to the unit vectors `direction` (T, 3)."""
    across: F64 = vector - (vector * direction).sum(axis=-1, keepdims=True) * direction
    return across


def _unit(vector: F64) -> F64:
    result: F64 = vector / np.maximum(np.linalg.norm(vector, axis=-1, keepdims=True), 1e-8)
    return result
