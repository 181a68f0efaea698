"""Network inputs from the last second of people, and conversion of outputs; NumPy, for training and inference.

Each person is described in their own frame: the origin is the pelvis in the last frame, and the camera axes are rotated
about the vertical so that hips and shoulders are along x. A forecast therefore turns with the person. The past is
interpolated at fixed ages, independent of frame rate and gaps; the time to the nearest real frame is a feature.

Axes: P person, T past frame, Q query, K age, F feature.
"""

from dataclasses import dataclass

import numpy as np

from pose.lifting.forecast.config import (
    AGES,
    COORDINATES,
    FEATURES,
    GAP_SCALE,
    SIGMA_FEATURES,
    SIGMA_SCALE,
    VELOCITY_SCALE,
)
from pose.lifting.forecast.types import Past
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64, I64

_MIN_EXTENT_M = 1e-3  # minimum horizontal extent of hips and shoulders that defines a direction
_LATERAL_WEIGHTS = np.zeros(17, np.float32)  # weights of the joints in the vector from right to left
for _name, _weight in (("left_hip", 1), ("left_shoulder", 1), ("right_hip", -1), ("right_shoulder", -1)):
    _LATERAL_WEIGHTS[H36M17.index(_name)] = _weight
_EARLIEST, _LATEST = AGES[:, None] - 1e-6, AGES[:, None] + 1e-6  # tolerance for equal ages, s
_SPEEDS, _SIGMAS = slice(COORDINATES, 2 * COORDINATES), slice(2 * COORDINATES, 2 * COORDINATES + SIGMA_FEATURES)
_GAP, _DIRECTION = _SIGMAS.stop, slice(_SIGMAS.stop + 1, FEATURES)


@dataclass(frozen=True, slots=True)
class ReferenceFrames:
    """The frames of reference of P people."""

    rotation: F32  # (P, 3, 3) rotation from camera axes to the person's axes
    joints: F32  # (P, 17, 3) m, joints relative to the pelvis in the last frame, camera axes
    root: F32  # (P, 3) m, position of the pelvis in the last frame, camera frame
    sigma: F32  # (P, 17) mm, sigma of the last frame
    time: F64  # (P,) time of the last frame, s


def describe(past: Past) -> tuple[F32, ReferenceFrames]:
    """Return the network inputs (P, K, F) for K ages and the frames of reference of P people.

    The F features are x, y, z displacements of 17 points, velocities, log sigma, gap, and direction from the camera.
    """
    p, t = past.valid.shape
    last = np.arange(p), past.last()
    joints, root = past.joints[last], past.root[last]
    reference = ReferenceFrames(heading_rotations(joints), joints, root, past.sigma[last], past.times[last])
    before, after, fraction, gap = _bracketing_frames(past, reference.time)
    rows = np.empty((p, t, COORDINATES + SIGMA_FEATURES), np.float32)
    rows[..., :48] = past.joints.reshape(p, t, 51)[..., 3:]
    np.subtract(past.root, root[:, None], out=rows[..., 48:COORDINATES])
    np.log(np.maximum(past.sigma[..., 1:], 1), out=rows[..., COORDINATES:])
    people = last[0][:, None]
    older, rows = rows[people, before], rows[people, after]
    rows -= older
    rows *= fraction
    rows += older
    displacements = rows[..., :COORDINATES].reshape(p, -1, 3) @ reference.rotation.mT
    tokens = np.empty((p, len(AGES), FEATURES), np.float32)
    displacements = displacements.reshape(p, -1, COORDINATES)
    tokens[..., :COORDINATES] = displacements
    tokens[:, 0, _SPEEDS] = 0
    np.multiply(displacements[:, 1:] - displacements[:, :-1], VELOCITY_SCALE, out=tokens[:, 1:, _SPEEDS])
    np.multiply(rows[..., COORDINATES:], SIGMA_SCALE, out=tokens[..., _SIGMAS])
    np.multiply(gap, GAP_SCALE, out=tokens[..., _GAP])
    distance = np.sqrt(np.square(root).sum(axis=1, keepdims=True))
    tokens[..., _DIRECTION] = (root / np.maximum(distance, 1e-6))[:, None] @ reference.rotation.mT
    return tokens, reference


def heading_rotations(joints: F32) -> F32:
    """Return rotations (P, 3, 3) about y from camera axes to axes with x along hips and shoulders, to the left."""
    # The rotation is the identity if these joints have no horizontal extent, for example for a person who lies on one
    # side.
    x, _, z = (_LATERAL_WEIGHTS @ joints).T
    length = np.hypot(x, z)
    level = length > _MIN_EXTENT_M
    x, z = np.where(level, (x, z), ((1,), (0,))) / np.where(level, length, 1)
    rotation = np.zeros((len(joints), 3, 3), np.float32)
    rotation[:, 1, 1] = 1
    rotation[:, 0, 0] = rotation[:, 2, 2] = x
    rotation[:, 0, 2], rotation[:, 2, 0] = z, -z
    return rotation


def seconds_ahead(reference: ReferenceFrames, times: F64) -> F64:
    """Return the seconds (P, Q) from `reference.time` to `times` (P, Q) s; 0 for times before the last frame."""
    return np.maximum(times - reference.time[:, None], 0.0)


def restore(reference: ReferenceFrames, displacements: F32, ahead: F64) -> tuple[F32, F32]:
    """Convert displacements (P, Q, 51) m to joints (P, Q, 17, 3) about the pelvis and root (P, Q, 3), camera frame."""
    moved = displacements.reshape(*ahead.shape, 17, 3) @ reference.rotation[:, None]
    moved = np.where(ahead[..., None, None] > 0, moved, 0)
    joints = np.repeat(reference.joints[:, None], ahead.shape[1], axis=1)
    joints[:, :, 1:] += moved[:, :, :16]
    return joints, reference.root[:, None] + moved[:, :, 16]


def displacements(reference: ReferenceFrames, joints: F32, root: F32) -> F32:
    """Convert poses to displacements (P, Q, 51) m since the last frame, the inverse of `restore`."""
    moved = np.concatenate(
        [(joints - reference.joints[:, None])[:, :, 1:], (root - reference.root[:, None])[:, :, None]], axis=2
    )
    return (
        (moved @ np.swapaxes(reference.rotation, -1, -2)[:, None])
        .reshape(*root.shape[:2], COORDINATES)
        .astype(np.float32)
    )


def _bracketing_frames(past: Past, now: F64) -> tuple[I64, I64, F32, F32]:
    """Find indices of the frames before and after each age, relative position (P, K, 1), and s to the nearer one."""
    age = np.where(past.valid, past.times - now[:, None], np.nan)[:, None]
    earlier = age <= _LATEST  # (P, K, T), for valid frames
    after = np.argmax(age >= _EARLIEST, axis=-1)
    before = np.where(earlier.any(axis=-1), age.shape[-1] - 1 - np.argmax(earlier[..., ::-1], axis=-1), after)
    people = np.arange(len(age))[:, None]
    older, newer = age[people, 0, before], age[people, 0, after]
    span, since = newer - older, AGES - older
    fraction = since / np.where(span > 1e-9, span, np.inf)
    gap = np.minimum(np.abs(since), np.abs(newer - AGES))
    return before, after, fraction[..., None].astype(np.float32), gap.astype(np.float32)
