"""Network inputs from the last second of people, and conversion of outputs; NumPy, for training and inference.

Each person is described in their own frame: the origin is the pelvis in the last frame, and the camera axes are rotated
about the vertical so that hips and shoulders are along x. A forecast therefore turns with the person. The past is
interpolated at fixed ages, independent of frame rate and gaps; the time to the nearest real frame is a feature.

Axes: P person, T past frame, Q query, K age, F feature.
"""

from dataclasses import dataclass

import numpy as np

from pose.forecast.format import AGES, FEATURES, GAP_SCALE, PATHS, SPREAD_SCALE, SPREADS, VELOCITY_SCALE
from pose.forecast.types import Past
from pose.skeletons import H36M17
from pose.types import F32, F64, I64

_LEVEL = 1e-3  # m; minimum horizontal extent of hips and shoulders that defines a direction
_ACROSS = np.zeros(17, np.float32)  # weights of the joints in the vector from right to left
for _name, _weight in (("left_hip", 1), ("left_shoulder", 1), ("right_hip", -1), ("right_shoulder", -1)):
    _ACROSS[H36M17.index(_name)] = _weight
_EARLIEST, _LATEST = AGES[:, None] - 1e-6, AGES[:, None] + 1e-6  # tolerance for equal ages, s
_SPEEDS, _SPREADS = slice(PATHS, 2 * PATHS), slice(2 * PATHS, 2 * PATHS + SPREADS)
_GAP, _AWAY = _SPREADS.stop, slice(_SPREADS.stop + 1, FEATURES)


@dataclass(frozen=True, slots=True)
class ReferenceFrames:
    """The frames of reference of P people.

    Attributes:
        turn: (P, 3, 3) rotation from camera axes to the person's axes.
        joints: (P, 17, 3) m, joints relative to the pelvis in the last frame, camera axes.
        root: (P, 3) m, position of the pelvis in the last frame, camera frame.
        sigma: (P, 17) mm, sigma of the last frame.
        time: (P,) time of the last frame, s.
    """

    turn: F32
    joints: F32
    root: F32
    sigma: F32
    time: F64


def describe(past: Past) -> tuple[F32, ReferenceFrames]:
    """Return the network inputs (P, K, F), with the features of `pose.forecast.format`, and the frames of reference."""
    p, t = past.valid.shape
    last = np.arange(p), past.last()
    joints, root = past.joints[last], past.root[last]
    view = ReferenceFrames(own_axes(joints), joints, root, past.sigma[last], past.times[last])
    before, after, share, gap = _around(past, view.time)
    rows = np.empty((p, t, PATHS + SPREADS), np.float32)
    rows[..., :48] = past.joints.reshape(p, t, 51)[..., 3:]
    np.subtract(past.root, root[:, None], out=rows[..., 48:PATHS])
    np.log(np.maximum(past.sigma[..., 1:], 1), out=rows[..., PATHS:])
    people = last[0][:, None]
    older, rows = rows[people, before], rows[people, after]
    rows -= older
    rows *= share
    rows += older
    paths = rows[..., :PATHS].reshape(p, -1, 3) @ view.turn.mT
    tokens = np.empty((p, len(AGES), FEATURES), np.float32)
    paths = paths.reshape(p, -1, PATHS)
    tokens[..., :PATHS] = paths
    tokens[:, 0, _SPEEDS] = 0
    np.multiply(paths[:, 1:] - paths[:, :-1], VELOCITY_SCALE, out=tokens[:, 1:, _SPEEDS])
    np.multiply(rows[..., PATHS:], SPREAD_SCALE, out=tokens[..., _SPREADS])
    np.multiply(gap, GAP_SCALE, out=tokens[..., _GAP])
    distance = np.sqrt(np.square(root).sum(axis=1, keepdims=True))
    tokens[..., _AWAY] = (root / np.maximum(distance, 1e-6))[:, None] @ view.turn.mT
    return tokens, view


def own_axes(joints: F32) -> F32:
    """Return rotations (P, 3, 3) about y that align hips and shoulders of joints (P, 17, 3) with x, as seen from above.

    The rotation is the identity if these joints have no horizontal extent, for example for a person who lies on one
    side.
    """
    x, _, z = (_ACROSS @ joints).T
    length = np.hypot(x, z)
    level = length > _LEVEL
    x, z = np.where(level, (x, z), ((1,), (0,))) / np.where(level, length, 1)
    turn = np.zeros((len(joints), 3, 3), np.float32)
    turn[:, 1, 1] = 1
    turn[:, 0, 0] = turn[:, 2, 2] = x
    turn[:, 0, 2], turn[:, 2, 0] = z, -z
    return turn


def seconds_ahead(view: ReferenceFrames, times: F64) -> F64:
    """Return the seconds (P, Q) from the last frame to `times` (P, Q); 0 for times before the last frame."""
    return np.maximum(times - view.time[:, None], 0.0)


def restore(view: ReferenceFrames, paths: F32, ahead: F64) -> tuple[F32, F32]:
    """Convert displacements since the last frame to joints (P, Q, 17, 3) m and root (P, Q, 3) m.

    Args:
        view: Frames of reference of the people.
        paths: (P, Q, 51) displacements along the person's axes, m.
        ahead: (P, Q) times after the last frame, s. For 0 the result is the last frame.
    """
    moved = paths.reshape(*ahead.shape, 17, 3) @ view.turn[:, None]
    moved = np.where(ahead[..., None, None] > 0, moved, 0)
    joints = np.repeat(view.joints[:, None], ahead.shape[1], axis=1)
    joints[:, :, 1:] += moved[:, :, :16]
    return joints, view.root[:, None] + moved[:, :, 16]


def ways(view: ReferenceFrames, joints: F32, root: F32) -> F32:
    """Convert joints (P, Q, 17, 3) m and root (P, Q, 3) m to displacements (P, Q, 51) m; the inverse of `restore`."""
    moved = np.concatenate([(joints - view.joints[:, None])[:, :, 1:], (root - view.root[:, None])[:, :, None]], axis=2)
    return (moved @ np.swapaxes(view.turn, -1, -2)[:, None]).reshape(*root.shape[:2], PATHS).astype(np.float32)


def _around(past: Past, now: F64) -> tuple[I64, I64, F32, F32]:
    """Find the two frames around the time of each age.

    Args:
        past: The past of P people.
        now: (P,) s, times from which ages are counted back.

    Returns:
        The indices of the frame before and of the frame after, (P, K) each (both that of the first frame if none is
        earlier); the relative position between them, (P, K, 1), from 0 to 1; and the time (P, K) to the nearer one, s.
    """
    age = np.where(past.valid, past.times - now[:, None], np.nan)[:, None]
    earlier = age <= _LATEST  # (P, K, T), for valid frames
    after = np.argmax(age >= _EARLIEST, axis=-1)
    before = np.where(earlier.any(axis=-1), age.shape[-1] - 1 - np.argmax(earlier[..., ::-1], axis=-1), after)
    people = np.arange(len(age))[:, None]
    older, newer = age[people, 0, before], age[people, 0, after]
    span, since = newer - older, AGES - older
    share = since / np.where(span > 1e-9, span, np.inf)
    gap = np.minimum(np.abs(since), np.abs(newer - AGES))
    return before, after, share[..., None].astype(np.float32), gap.astype(np.float32)
