"""From the last second of people to what networks see of it, and back: NumPy, in training and at run time alike.

Every person is described from their own point of view: the pelvis of the last frame is the origin, and the camera's
upright axis is turned until hips and shoulders point along x. So who walks to the left and who walks to the right are
the same walk, and a forecast turns with the person. The past is read at fixed ages, between the frames that are there,
so that its pace and its gaps do not matter; how far each age is from a real frame is told beside it.

Axes: P person, T past frame, Q query, K age, F feature.
"""

from dataclasses import dataclass

import numpy as np

from pose.forecast.format import AGES, FEATURES, GAP_SCALE, PATHS, SPREAD_SCALE, SPREADS, VELOCITY_SCALE
from pose.forecast.types import Past
from pose.skeletons import H36M17
from pose.types import F32, F64, I64

_LEVEL = 1e-3  # m of hips and shoulders seen from above, below which they point nowhere
_ACROSS = np.zeros(17, np.float32)  # weights of the joints that make the way from the right side to the left
for _name, _weight in (("left_hip", 1), ("left_shoulder", 1), ("right_hip", -1), ("right_shoulder", -1)):
    _ACROSS[H36M17.index(_name)] = _weight
_EARLIEST, _LATEST = AGES[:, None] - 1e-6, AGES[:, None] + 1e-6  # s, what is as old as an age
_SPEEDS, _SPREADS = slice(PATHS, 2 * PATHS), slice(2 * PATHS, 2 * PATHS + SPREADS)
_GAP, _AWAY = _SPREADS.stop, slice(_SPREADS.stop + 1, FEATURES)


@dataclass(frozen=True, slots=True)
class View:
    """Everybody's own point of view. turn: (P, 3, 3), camera axes to own axes. joints: (P, 17, 3) m, root: (P, 3) m and
    sigma: (P, 17) mm, the last frame in camera axes. time: (P,) s of it."""

    turn: F32
    joints: F32
    root: F32
    sigma: F32
    time: F64


def describe(past: Past) -> tuple[F32, View]:
    """What a network sees, (P, K, F) as `pose.forecast.format` says, and the points of view."""
    p, t = past.valid.shape
    last = np.arange(p), past.last()
    joints, root = past.joints[last], past.root[last]
    view = View(own_axes(joints), joints, root, past.sigma[last], past.times[last])
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
    """(P, 3, 3) turns about y that bring hips and shoulders of joints (P, 17, 3) along x as seen from above; none where
    they point nowhere, as of somebody who lies on the side."""
    x, _, z = (_ACROSS @ joints).T
    length = np.hypot(x, z)
    level = length > _LEVEL
    x, z = np.where(level, (x, z), ((1,), (0,))) / np.where(level, length, 1)
    turn = np.zeros((len(joints), 3, 3), np.float32)
    turn[:, 1, 1] = 1
    turn[:, 0, 0] = turn[:, 2, 2] = x
    turn[:, 0, 2], turn[:, 2, 0] = z, -z
    return turn


def seconds_ahead(view: View, times: F64) -> F64:
    """(P, Q) s from everybody's last frame to `times` (P, Q), 0 for those before it."""
    return np.maximum(times - view.time[:, None], 0.0)


def restore(view: View, paths: F32, ahead: F64) -> tuple[F32, F32]:
    """Ways (P, Q, 51) since the last frame, as networks say them -> joints (P, Q, 17, 3) m and root (P, Q, 3) m.

    A time that is not ahead is the last frame as it was.
    """
    moved = paths.reshape(*ahead.shape, 17, 3) @ view.turn[:, None]
    moved = np.where(ahead[..., None, None] > 0, moved, 0)
    joints = np.repeat(view.joints[:, None], ahead.shape[1], axis=1)
    joints[:, :, 1:] += moved[:, :, :16]
    return joints, view.root[:, None] + moved[:, :, 16]


def ways(view: View, joints: F32, root: F32) -> F32:
    """The inverse of `restore`: joints (P, Q, 17, 3) and root (P, Q, 3) m -> ways (P, Q, 51)."""
    moved = np.concatenate([(joints - view.joints[:, None])[:, :, 1:], (root - view.root[:, None])[:, :, None]], axis=2)
    return (moved @ np.swapaxes(view.turn, -1, -2)[:, None]).reshape(*root.shape[:2], PATHS).astype(np.float32)


def _around(past: Past, now: F64) -> tuple[I64, I64, F32, F32]:
    """Between which two frames everybody's `AGES` before now (P,) s lie: the frames before and after, (P, K) each, both
    the first where none is earlier; how far on the way from one to the other, (P, K, 1); and the s to the nearer one.
    """
    age = np.where(past.valid, past.times - now[:, None], np.nan)[:, None]
    earlier = age <= _LATEST  # (P, K, T), of frames that are there
    after = np.argmax(age >= _EARLIEST, axis=-1)
    before = np.where(earlier.any(axis=-1), age.shape[-1] - 1 - np.argmax(earlier[..., ::-1], axis=-1), after)
    people = np.arange(len(age))[:, None]
    older, newer = age[people, 0, before], age[people, 0, after]
    span, since = newer - older, AGES - older
    share = since / np.where(span > 1e-9, span, np.inf)
    gap = np.minimum(np.abs(since), np.abs(newer - AGES))
    return before, after, share[..., None].astype(np.float32), gap.astype(np.float32)
