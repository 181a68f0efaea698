"""Completion of triangulated points to Human3.6M-17.

Pelvis, spine, thorax, neck and head are placed relative to the trunk as in the lifted poses.
"""

import numpy as np

from pose.multiview.observations import Observed
from pose.multiview.types import HIPS, POINTS, SHOULDERS
from pose.structures.alignment import best_rotation
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, Flags

_TRUNK = [*HIPS, *SHOULDERS]
DERIVED = [H36M17.index(name) for name in ("pelvis", "spine", "thorax", "neck", "head")]
_MEASURED = [row for row, joint in enumerate(POINTS) if joint not in DERIVED]


def complete(points: F64, joints: F64, present: Flags, sigma: F64) -> F64:
    """Complete points (..., K, N, 3) m to joints (..., K, 17, 3) m in the world, with the nearest known trunk."""
    trunk = points.take(_TRUNK, axis=-2)
    middle = trunk.mean(axis=-2, keepdims=True)
    share = np.where(present, np.maximum(sigma.take(DERIVED, axis=-1).mean(axis=-1), 1.0) ** -2.0, 0.0)
    weight = share.sum(axis=0)
    shape: F64 = (share[..., None, None] * _trunk_shapes(trunk - middle, joints, present)).sum(axis=0)
    shape /= np.where(weight > 0, weight, 1.0)[..., None, None]
    if not (weight > 0).all():
        for place in np.ndindex(weight.shape[:-1]):
            _fill(shape[place], weight[place] > 0)
    out = np.empty((*points.shape[:-2], 17, 3))
    out[..., POINTS[_MEASURED], :] = points.take(_MEASURED, axis=-2)
    out[..., DERIVED, :] = middle + shape
    return out


def _trunk_shapes(trunk: F64, joints: F64, present: Flags) -> F64:
    """Return joints `DERIVED` (C, ..., K, 5, 3) m relative to the middle of the triangulated trunk, as lifted."""
    own = joints.take(POINTS[_TRUNK], axis=-2)
    own_middle = own.mean(axis=-2, keepdims=True)
    own = own - own_middle
    covariance = np.swapaxes(trunk, -1, -2) @ own
    turn = best_rotation(np.where(present[..., None, None], covariance, np.eye(3)))
    size = np.clip(_spread(trunk) / np.maximum(_spread(own), 1e-3), 0.7, 1.4)
    shapes: F64 = (joints.take(DERIVED, axis=-2) - own_middle) @ np.swapaxes(turn, -1, -2)
    return size[..., None, None] * shapes


def _fill(shape: F64, known: Flags) -> None:
    """Copy the shape (K, 5, 3) of the nearest instant with a known (K,) shape to the others, in place."""
    if known.any():
        rows = np.flatnonzero(known)
        nearest = rows[np.abs(np.arange(len(known))[:, None] - rows).argmin(axis=1)]
        shape[~known] = shape[nearest[~known]]


def _spread(points: F64) -> F64:
    """Root of the sum of squares (...) of points (..., N, 3)."""
    spread: F64 = np.sqrt((points**2).sum(axis=(-2, -1)))
    return spread


def residuals_px(observed: Observed, pixels: F64) -> F64:
    """Return distances (C, ..., K, N) px of observed points from (C, ..., K, N, 2) px; NaN if not detected."""
    off = np.linalg.norm(observed.pixels - pixels, axis=-1)
    return np.where(observed.seen, off, np.nan)
