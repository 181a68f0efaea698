"""Other bodies and other poses from the same motion: proportions, limbs of other clips, added turns, whole-body tilts.

Motion is worked on as bone vectors: point minus parent, in the world frame. Turning a limb turns its bone vectors,
another body scales them, a limb of another clip replaces them; `assemble` puts the points back together.
Axes: B sequence, T time, J point (the 19 of `datasets.mocap.POINTS`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from datasets import rotations
from datasets.smooth import smooth_noise
from pose.types import F32

F64 = NDArray[np.float64]
Rows = NDArray[np.bool_]

PARENTS = (-1, 0, 1, 2, 0, 4, 5, 0, 7, 8, 9, 8, 11, 12, 8, 14, 15, 9, 9)
MIRROR = (0, 4, 5, 6, 1, 2, 3, 7, 8, 9, 10, 14, 15, 16, 11, 12, 13, 17, 18)

_UPPER = [7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]
_CHEST = [8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18]
_HEAD = [9, 10, 17, 18]
_ARMS = {"left": [12, 13], "right": [15, 16]}
_LEGS = {"left": [5, 6], "right": [2, 3]}
_LOWER = [1, 2, 3, 4, 5, 6]
_SHOULDERS = [11, 14]


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyConfig:
    """How far poses and bodies may leave the recordings: shares of sequences, and angles in degrees."""

    proportions: float = 0.9
    children: float = 0.12
    recombine: float = 0.3
    turns: float = 0.6  # share with added, time-varying turns of limbs and trunk
    trunk: float = 20.0
    head: float = 20.0
    hip: float = 25.0
    shoulder: float = 45.0
    raised: float = 0.25  # share with an arm lifted over the head
    tilt: float = 0.25  # share with any whole-body orientation
    mirror: float = 0.5


def to_bones(points: F32) -> F32:
    """(..., 19, 3) points -> bone vectors; the pelvis keeps its place."""
    bones = points - points[..., np.maximum(PARENTS, 0), :]
    bones[..., 0, :] = points[..., 0, :]
    return bones


def assemble(bones: F32) -> F32:
    """The inverse of `to_bones`."""
    points = bones.copy()
    for joint, parent in enumerate(PARENTS[1:], start=1):
        points[..., joint, :] += points[..., parent, :]
    return points


def mirror(points: F32) -> F32:
    """Exchange left and right of (..., 19, 3) points in a world whose x axis is horizontal."""
    return points[..., MIRROR, :] * np.array([-1, 1, 1], points.dtype)


def random_proportions(rng: np.random.Generator, batch: int, config: BodyConfig) -> F32:
    """(B, 19) factors for bone lengths; the first scales the pelvis' path."""
    changed = (rng.random((batch, 1)) < config.proportions).astype(np.float32)
    child = rng.random((batch, 1)) < config.children
    size = np.where(child, rng.uniform(np.log(0.55), np.log(0.85), (batch, 1)), rng.normal(0, 0.06, (batch, 1)))

    def vary(spread: float) -> F64:
        return rng.normal(0, spread, (batch, 1))

    parts = {
        "legs": vary(0.05), "shin": vary(0.05), "trunk": vary(0.06), "arms": vary(0.06), "forearm": vary(0.08),
        "hips": vary(0.10), "shoulders": vary(0.08), "head": vary(0.06) - 0.4 * np.where(child, size, 0),
    }  # fmt: skip
    logs = np.zeros((batch, 19))
    logs[:, [2, 5]] += parts["legs"] - parts["shin"] / 2
    logs[:, [3, 6]] += parts["legs"] + parts["shin"] / 2
    logs[:, [0]] += parts["legs"]
    logs[:, [1, 4]] += parts["hips"]
    logs[:, [7, 8]] += parts["trunk"]
    logs[:, [11, 14]] += parts["shoulders"]
    logs[:, [12, 15]] += parts["arms"] - parts["forearm"] / 2
    logs[:, [13, 16]] += parts["arms"] + parts["forearm"] / 2
    logs[:, _HEAD] += parts["head"]
    return np.exp(changed * (size + logs)).astype(np.float32)


def _turn(bones: F32, rows: Rows, joints: list[int], vector: F32) -> None:
    """Turn the bones `joints` of the sequences `rows` by rotation vectors (rows, T or 1, 3), in place."""
    picked = np.flatnonzero(rows)
    if not len(picked):
        return
    matrix = rotations.from_vector(vector)
    at = np.ix_(picked, np.arange(bones.shape[1]), joints)
    bones[at] = bones[at] @ np.swapaxes(matrix, -1, -2)


def add_turns(rng: np.random.Generator, bones: F32, times: F64, config: BodyConfig) -> None:
    """Turn trunk, head, arms and legs by smooth random rotations, in place: a fixed part and a waving part."""
    batch = len(bones)
    chosen = rng.random(batch) < config.turns
    parts: list[tuple[list[int], float]] = [(_UPPER, config.trunk), (_CHEST, config.trunk / 2), (_HEAD, config.head)]
    parts += [(joints, config.hip) for joints in _LEGS.values()]
    parts += [(joints, config.shoulder) for joints in _ARMS.values()]
    for joints, degrees in parts:
        rows = chosen & (rng.random(batch) < 0.6)
        count = int(rows.sum())
        if not count:
            continue
        fixed = rng.standard_normal((count, 1, 3), dtype=np.float32)
        waving = 0.5 * smooth_noise(rng, times[rows], 3, 0.6)
        limit = np.float32(np.radians(degrees))
        _turn(bones, rows, joints, limit * np.tanh((fixed + waving) / 2) * 1.6)
    _raise_arms(rng, bones, times, config)


def _raise_arms(rng: np.random.Generator, bones: F32, times: F64, config: BodyConfig) -> None:
    for arm in _ARMS.values():
        rows = rng.random(len(bones)) < config.raised
        if not rows.any():
            continue
        now = _unit(bones[rows][:, :, arm[0]].mean(axis=1))
        up = _unit((bones[rows][:, :, 7] + bones[rows][:, :, 8]).mean(axis=1))
        goal = _unit(up + rng.normal(0, 0.5, up.shape).astype(np.float32))
        vector = between(now, goal)[:, None] * rng.uniform(0.6, 1, (len(up), 1, 1)).astype(np.float32)
        sway = smooth_noise(rng, times[rows], 1, 0.4)
        _turn(bones, rows, arm, vector * np.clip(0.8 + 0.3 * sway, 0, 1.1))


def between(start: F32, goal: F32) -> F32:
    """The shortest rotation vector (..., 3) that turns unit vectors `start` into `goal` (not its opposite)."""
    axis = np.cross(start, goal)
    sine = np.linalg.norm(axis, axis=-1, keepdims=True)
    angle = np.arctan2(sine, (start * goal).sum(axis=-1, keepdims=True))
    return axis / np.maximum(sine, 1e-6) * angle


def random_tilts(rng: np.random.Generator, batch: int, config: BodyConfig) -> F32:
    """(B, 3, 3) whole-body turns: mostly none, sometimes lying, upside down, or anything."""
    vector = rng.normal(0, np.radians(4), (batch, 3))
    tilted = rng.random(batch) < config.tilt
    axis = _unit(rng.standard_normal((batch, 3)).astype(np.float32))
    axis[:, 1] *= np.where(rng.random(batch) < 0.7, 0.1, 1)  # about a horizontal axis: the rest is azimuth
    angle = np.where(rng.random(batch) < 0.5, rng.normal(0, 0.5, batch), rng.uniform(-np.pi, np.pi, batch))
    vector = np.where(tilted[:, None], _unit(axis) * angle[:, None], vector)
    return rotations.from_vector(vector.astype(np.float32))


def recombine(bones: F32, lower: F32) -> F32:
    """The trunk, head and arms of `bones` on the legs, pelvis path and pelvis turns of `lower`, both (B, T, 19, 3)."""
    turn = pelvis_frame(lower) @ np.swapaxes(pelvis_frame(bones), -1, -2)
    mixed = lower.copy()
    mixed[..., _UPPER, :] = bones[..., _UPPER, :] @ np.swapaxes(turn, -1, -2)
    return mixed


def pelvis_frame(bones: F32) -> F32:
    """(..., 19, 3) -> (..., 3, 3), columns: the pelvis' left, up, forward."""
    return _frame(bones[..., 4, :] - bones[..., 1, :], bones[..., 7, :])


def thorax_frame(bones: F32) -> F32:
    """(..., 19, 3) -> (..., 3, 3), columns: the chest's left, up, forward."""
    return _frame(bones[..., 11, :] - bones[..., 14, :], bones[..., 8, :])


def _frame(left: F32, up: F32) -> F32:
    x = _unit(left)
    y = _unit(up - (up * x).sum(axis=-1, keepdims=True) * x)
    return np.stack([x, y, np.cross(x, y)], axis=-1)


def _unit(vector: F32) -> F32:
    return vector / np.maximum(np.linalg.norm(vector, axis=-1, keepdims=True), 1e-8)
