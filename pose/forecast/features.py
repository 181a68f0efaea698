"""From the last second of people to what networks see of it, and back: NumPy, in training and at run time alike.

Every person is described from their own point of view: the pelvis of the last frame is the origin, and the camera's
upright axis is turned until hips and shoulders point along x. So who walks to the left and who walks to the right are
the same walk, and a forecast turns with the person. The past is read at fixed ages, between the frames that are there,
so that its pace and its gaps do not matter; how far each age is from a real frame is told beside it.

Axes: P person, T past frame, Q query, K age, F feature.
"""

from dataclasses import dataclass

import numpy as np

from pose.forecast.format import AGES, GAP_SCALE, PATHS, SPREAD_SCALE, VELOCITY_SCALE
from pose.forecast.types import Past
from pose.skeletons import H36M17
from pose.types import F32, F64, I64

_SIDES = [H36M17.names.index(name) for name in ("left_hip", "left_shoulder", "right_hip", "right_shoulder")]
_LEVEL = 1e-3  # m of hips and shoulders seen from above, below which they point nowhere
FLIP = np.array(H36M17.flip_order)
MIRROR = np.array([-1, 1, 1], np.float32)


@dataclass(frozen=True, slots=True)
class View:
    """Everybody's own point of view. turn: (P, 3, 3), camera axes to own axes. joints: (P, 17, 3) m and root: (P, 3) m,
    the last frame in camera axes. time: (P,) s of it."""

    turn: F32
    joints: F32
    root: F32
    time: F64


def describe(past: Past) -> tuple[F32, View]:
    """What a network sees, (P, K, F) as `pose.forecast.format` says, and the points of view."""
    people, newest = np.arange(len(past)), past.last()
    view = View(
        own_axes(past.joints[people, newest]),
        past.joints[people, newest],
        past.root[people, newest],
        past.times[people, newest],
    )
    places = np.concatenate([past.joints[:, :, 1:].reshape(*past.valid.shape, 48), past.root], axis=-1)
    places[~past.valid] = 0
    spread = np.log(np.maximum(np.where(past.valid[..., None], past.sigma[..., 1:], 1), 1)).astype(np.float32)
    rows = np.concatenate([places, spread], axis=-1)
    rows, gap = _at_ages(rows, np.where(past.valid, past.times - view.time[:, None], -np.inf), past.valid)
    paths, spread = rows[..., :PATHS].reshape(*gap.shape, 17, 3), rows[..., PATHS:]
    paths[:, :, 16] -= view.root[:, None]
    paths = (paths @ np.swapaxes(view.turn, -1, -2)[:, None]).reshape(*gap.shape, PATHS)
    speed = np.diff(paths, axis=1, prepend=paths[:, :1]) * VELOCITY_SCALE
    away = view.root / np.maximum(np.linalg.norm(view.root, axis=-1, keepdims=True), 1e-6)
    away = np.einsum("pij,pj->pi", view.turn, away)[:, None].repeat(len(AGES), axis=1)
    tokens = np.concatenate([paths, speed, spread * SPREAD_SCALE, gap[..., None] * GAP_SCALE, away], axis=-1)
    return tokens.astype(np.float32), view


def own_axes(joints: F32) -> F32:
    """(P, 3, 3) turns about y that bring hips and shoulders of joints (P, 17, 3) along x as seen from above; none where
    they point nowhere, as of somebody who lies on the side."""
    left_hip, left_shoulder, right_hip, right_shoulder = (joints[:, joint] for joint in _SIDES)
    across = (left_hip - right_hip + left_shoulder - right_shoulder).astype(np.float32)
    length = np.hypot(across[:, 0], across[:, 2])
    known = length > _LEVEL
    x, z = (np.where(known, across[:, axis] / np.where(known, length, 1), 1 - axis / 2) for axis in (0, 2))
    zero, one = np.zeros_like(x), np.ones_like(x)
    return np.stack([x, zero, z, zero, one, zero, -z, zero, x], axis=-1).reshape(-1, 3, 3).astype(np.float32)


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


def _at_ages(rows: F32, age: F64, valid: np.ndarray) -> tuple[F32, F32]:
    """Rows (P, T, D), of which frames `valid` (P, T) are `age` (P, T) s old, read at `AGES`: (P, K, D), on the line
    between the frames before and after, held before the first; and (P, K) s to the nearest frame."""
    frames: I64 = np.arange(rows.shape[1])
    seen = valid[:, None]
    earlier = seen & (age[:, None] <= AGES[:, None] + 1e-6)  # (P, K, T)
    later = seen & (age[:, None] >= AGES[:, None] - 1e-6)
    before = np.where(earlier, frames, -1).max(axis=-1)
    after = np.where(later, frames, rows.shape[1]).min(axis=-1)
    before = np.where(before < 0, after, before)
    people = np.arange(len(rows))[:, None]
    older, newer = age[people, before], age[people, after]
    span = newer - older
    share = np.where(span > 1e-9, (AGES - older) / np.where(span > 1e-9, span, 1), 0).astype(np.float32)[..., None]
    gap = np.minimum(np.abs(AGES - older), np.abs(newer - AGES)).astype(np.float32)
    return rows[people, before] * (1 - share) + rows[people, after] * share, gap
