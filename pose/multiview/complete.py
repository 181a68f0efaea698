"""Completion of triangulated points to Human3.6M-17.

Pelvis, spine, thorax, neck and head are placed relative to the trunk as in the lifted poses.
"""

import numpy as np

from pose.evaluation.alignment import best_rotation
from pose.multiview.observations import Observed
from pose.multiview.types import HIPS, POINTS, SHOULDERS
from pose.skeletons import H36M17
from pose.types import F64

_TRUNK = [*HIPS, *SHOULDERS]
DERIVED = [H36M17.index(name) for name in ("pelvis", "spine", "thorax", "neck", "head")]
_MEASURED = [row for row, joint in enumerate(POINTS) if joint not in DERIVED]


def complete(points: F64, joints: F64, present: np.ndarray, sigma: F64) -> F64:
    """Complete points (K, N, 3) m to joints (K, 17, 3) m.

    At knots where no camera has the person, the trunk shape of neighbouring knots is used.

    Args:
        points: (K, N, 3) m, triangulated points.
        joints: (C, K, 17, 3) m, lifted joints of each camera, root-relative in world axes.
        present: (C, K) whether the camera has the person.
        sigma: (C, K, 17) mm, uncertainty of the lifted joints.
    """
    out = np.zeros((len(points), 17, 3))
    out[:, POINTS[_MEASURED]] = points[:, _MEASURED]
    trunk = points[:, _TRUNK]
    middle = trunk.mean(axis=1)
    shape, weight = np.zeros((len(points), len(DERIVED), 3)), np.zeros(len(points))
    for lifted, here, deviation in zip(joints, present, sigma, strict=True):
        if not here.any():
            continue
        own = lifted[:, POINTS[_TRUNK]]
        own_middle = own.mean(axis=1, keepdims=True)
        turn = best_rotation(np.einsum("kjc,kjd->kcd", trunk - middle[:, None], own - own_middle))
        size = _spread(trunk - middle[:, None]) / np.maximum(_spread(own - own_middle), 1e-3)
        moved = (lifted[:, DERIVED] - own_middle) @ np.swapaxes(turn, -1, -2)
        share = here / np.maximum(deviation[:, DERIVED].mean(axis=1), 1.0) ** 2
        shape += share[:, None, None] * np.clip(size, 0.7, 1.4)[:, None, None] * moved
        weight += share
    known = weight > 0
    shape[known] /= weight[known, None, None]
    if known.any() and not known.all():
        nearest = np.flatnonzero(known)[
            np.abs(np.arange(len(points))[:, None] - np.flatnonzero(known)[None]).argmin(axis=1)
        ]
        shape[~known] = shape[nearest[~known]]
    out[:, DERIVED] = middle[:, None] + shape
    return out


def _spread(points: F64) -> F64:
    spread: F64 = np.sqrt((points**2).sum(axis=(1, 2)))
    return spread


def residuals_px(observed: Observed, pixels: F64) -> F64:
    """Return residuals (C, K, N) px between observations and `pixels` (C, K, N, 2); NaN where not detected."""
    off = np.linalg.norm(observed.pixels - pixels, axis=-1)
    return np.where(observed.seen, off, np.nan)
