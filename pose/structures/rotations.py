"""Rotations, vectorised over leading axes: unit quaternions (w, x, y, z) and matrices.

Matrices act on column vectors. Axes are right-handed, and angles are in radians. `datasets/pose_datasets/rotations.py`
converts recorded Euler angles to matrices; this module converts rotations to Euler angles for export formats.
"""

import numpy as np

from pose.structures.types import F64

IDENTITY = np.array([1.0, 0.0, 0.0, 0.0])
_TINY = 1e-12
_GIMBAL_LOCK_COSINE = 1e-7  # cosine of the middle angle below which it counts as gimbal lock


def multiply(a: F64, b: F64) -> F64:
    """Multiply quaternions (..., 4), w first: rotation `b` followed by rotation `a`."""
    aw, ax, ay, az = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
    bw, bx, by, bz = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
    return _stacked(
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def _stacked(*columns: F64) -> F64:
    """Stack arrays along a new last axis, twice as fast as `numpy.stack` for few rows."""
    stacked = np.empty((*columns[0].shape, len(columns)))
    for at, column in enumerate(columns):
        stacked[..., at] = column
    return stacked


def inverse(q: F64) -> F64:
    """Return the inverse rotations of unit quaternions (w, x, y, z), (..., 4)."""
    result: F64 = q * np.array([1.0, -1.0, -1.0, -1.0])
    return result


def rotate(q: F64, vector: F64) -> F64:
    """Rotate vectors (..., 3) by unit quaternions (w, x, y, z), (..., 4)."""
    axis = q[..., 1:]
    t = 2 * cross(axis, vector)
    return vector + q[..., :1] * t + cross(axis, t)


def cross(a: F64, b: F64) -> F64:
    """Compute the cross product (..., 3), several times faster than `numpy.cross` on short axes."""
    ax, ay, az = a[..., 0], a[..., 1], a[..., 2]
    bx, by, bz = b[..., 0], b[..., 1], b[..., 2]
    return _stacked(ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)


def dot(a: F64, b: F64) -> F64:
    """Compute the dot product over the last axis."""
    result: F64 = np.einsum("...i,...i->...", a, b)
    return result


def unit(vector: F64) -> F64:
    """Normalise vectors (..., n); a zero vector stays zero."""
    return vector / np.maximum(np.sqrt(dot(vector, vector)), _TINY)[..., None]


def about(axis: F64, angle: F64) -> F64:
    """Return quaternions (..., 4), w first, of rotations by `angle` (...,) rad about unit vectors `axis` (..., 3)."""
    half = np.asarray(angle)[..., None] / 2
    return np.concatenate([np.cos(half), np.sin(half) * axis], axis=-1)


def shortest_rotation(start: F64, goal: F64) -> F64:
    """Return quaternions (..., 4), w first, of the shortest rotations from unit vectors `start` to `goal` (..., 3).

    For opposite directions, the rotation is 180 degrees about an axis that depends on `start` only.
    """
    start, goal = np.broadcast_arrays(start, goal)
    q = np.concatenate([1 + dot(start, goal)[..., None], cross(start, goal)], axis=-1)
    opposite = q[..., 0] < 1e-9
    if opposite.any():
        axis = np.eye(3)[np.abs(start[opposite]).argmin(axis=-1)]  # the axis least aligned with `start`
        q[opposite] = np.concatenate([np.zeros((len(axis), 1)), unit(cross(start[opposite], axis))], axis=-1)
    return unit(q)


def from_axes(x: F64, y: F64, z: F64) -> F64:
    """Return quaternions (..., 4), w first, that map the coordinate axes to `x`, `y` and `z`."""
    return from_matrix(np.stack([x, y, z], axis=-1))


def to_matrix(q: F64) -> F64:
    """Return the rotation matrices (..., 3, 3) of unit quaternions (w, x, y, z), (..., 4)."""
    return np.stack([rotate(q, axis) for axis in np.eye(3)], axis=-1)


def from_matrix(m: F64) -> F64:
    """Convert rotation matrices (..., 3, 3) to quaternions (w, x, y, z), (..., 4), with w >= 0.

    Each matrix is converted by the numerically most stable of four formulas (Shepperd, 1978).
    """
    d = np.einsum("...ii->...i", m)
    trace = d.sum(axis=-1)
    squares = np.stack([trace, *np.moveaxis(2 * d - trace[..., None], -1, 0)], axis=-1)
    best = squares.argmax(axis=-1)
    # Row k of this symmetric matrix is 4 q_k q: the quaternion times four times its component k.
    four = np.empty((*m.shape[:-2], 4, 4))
    four[..., range(4), range(4)] = 1 + squares
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        four[..., 0, i + 1] = four[..., i + 1, 0] = m[..., k, j] - m[..., j, k]
        four[..., j + 1, k + 1] = four[..., k + 1, j + 1] = m[..., k, j] + m[..., j, k]
    q = unit(np.take_along_axis(four, best[..., None, None], axis=-2)[..., 0, :])
    return np.where(q[..., :1] < 0, -q, q)


def angle_between(a: F64, b: F64) -> F64:
    """Return the angle (...,) of the rotation from quaternions `a` to quaternions `b` (..., 4), 0 to pi rad."""
    difference = multiply(inverse(a), b)
    return 2 * np.arctan2(np.sqrt(dot(difference[..., 1:], difference[..., 1:])), np.abs(difference[..., 0]))


def slerp(a: F64, b: F64, fraction: F64) -> F64:
    """Interpolate spherically between quaternions `a` and `b` (..., 4), at `fraction` 0 to 1 of the angle."""
    b = np.where(dot(a, b)[..., None] < 0, -b, b)
    cosine = np.clip(dot(a, b), -1, 1)
    angle = np.arccos(cosine)
    near = angle < 1e-4  # the limit of sin(fraction a) / sin(a) is fraction
    sine = np.where(near, 1, np.sin(angle))
    first = np.where(near, 1 - fraction, np.sin((1 - fraction) * angle) / sine)
    second = np.where(near, fraction, np.sin(fraction * angle) / sine)
    return unit(first[..., None] * a + second[..., None] * b)


def same_sign(q: F64, previous: F64 | None = None) -> F64:
    """Return quaternions (T, ..., 4) with signs chosen for continuity over time and with `previous` (..., 4)."""
    if not len(q):
        return q
    steps = dot(q[1:], q[:-1])
    first = np.ones((1, *q.shape[1:-1])) if previous is None else dot(q[0], previous)[None]
    signs = np.where(np.concatenate([first, steps]) < 0, -1.0, 1.0).cumprod(axis=0)
    result: F64 = q * signs[..., None]
    return result


def euler(q: F64, order: str) -> F64:
    """Return Euler angles (..., 3) in rad of (w, x, y, z); order "zxy" means R = Rz Rx Ry (intrinsic)."""
    # The middle angle is in -90 to 90 degrees; at these limits (gimbal lock) the last angle is 0.
    i, j, k = ("xyz".index(axis) for axis in order)
    sign = 1.0 if (j - i) % 3 == 1 else -1.0
    w = q[..., 0]
    a, b, c = (q[..., 1 + axis] for axis in (i, j, k))
    # The angles follow from entries of the rotation matrix. All entries are halved, which does not change the angles.
    middle = np.arcsin(np.clip(2 * (sign * a * c + w * b), -1, 1))
    ii, ij = 0.5 - b * b - c * c, a * b - sign * w * c
    angles = np.empty((*q.shape[:-1], 3))
    angles[..., 0] = np.arctan2(w * a - sign * b * c, 0.5 - a * a - b * b)
    angles[..., 1] = middle
    angles[..., 2] = np.arctan2(-sign * ij, ii)
    locked = ii * ii + ij * ij < (_GIMBAL_LOCK_COSINE / 2) ** 2
    if locked.any():
        turned = np.arctan2(sign * b * c + w * a, 0.5 - a * a - c * c)
        angles[..., 0], angles[..., 2] = np.where(locked, turned, angles[..., 0]), np.where(locked, 0, angles[..., 2])
    return angles


def unwrapped_euler(q: F64, order: str, previous: F64 | None = None) -> F64:
    """Return Euler angles (T, ..., 3) in rad of rotations (T, ..., 4) over time, without jumps between frames.

    Two triples describe each rotation, (a, b, c) and (a + pi, pi - b, c + pi), up to multiples of 2 pi per angle. The
    triple nearest to the previous frame is chosen, at first to `previous` (..., 3). The order "zxy" means R = Rz Rx Ry.
    """
    triples = euler(q, order)
    start = triples[:1] if previous is None else previous[None]
    came_from = np.concatenate([start, triples[:-1]])
    # `near` is the distance between two first triples, `across` that between a first and a second triple. The distance
    # between two second triples is `near` as well. |x + pi| = pi - |x| for wrapped angles.
    steps = np.abs(_wrapped(triples - came_from))
    outer = steps[..., 0] + steps[..., 2]
    near = outer + steps[..., 1]
    across = 3 * np.pi - outer - np.abs(_wrapped(triples[..., 1] + came_from[..., 1]))
    second = np.cumsum(across < near, axis=0) % 2 == 1
    triples[second] = triples[second] * (1, -1, 1) + np.pi
    return np.unwrap(np.concatenate([start, triples]), axis=0)[1:]


def _wrapped(angle: F64) -> F64:
    """Wrap angles to -pi to pi."""
    return angle - 2 * np.pi * np.round(angle / (2 * np.pi))
