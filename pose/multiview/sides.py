"""Correction of left-right swaps in one camera, from the 3D joints of the other cameras."""

from dataclasses import replace

import numpy as np

from pose.multiview.camera_batch import CameraBatch
from pose.multiview.observations import Observed
from pose.multiview.types import POINT_NAMES
from pose.structures.types import F64, Flags

_LEGS, _ARMS = ("hip", "knee", "ankle"), ("shoulder", "elbow", "wrist")
LIMB_ORDERS = []  # orders of points with left and right legs, or arms, swapped
for _parts in (_LEGS, _ARMS):
    _order = np.arange(len(POINT_NAMES))
    for _part in _parts:
        _left, _right = POINT_NAMES.index(f"left_{_part}"), POINT_NAMES.index(f"right_{_part}")
        _order[[_left, _right]] = _right, _left
    LIMB_ORDERS.append(_order)
_ALL_ORDERS = np.stack([np.arange(len(POINT_NAMES)), *LIMB_ORDERS])

MARGIN = 3.0  # minimum improvement of the cost by swapped sides
SECONDS = 0.08  # s over which the evidence is averaged
CAUCHY = 2.0  # scale of the robust loss, in standard deviations


def swapped_sides(observed: Observed, cameras: CameraBatch, points: F64) -> Flags:
    """Return where (C, ..., K, 2) a camera's 2D of legs and arms fits better swapped; another camera must see them."""
    expected = cameras.project(points)[..., None, :, :]
    loss = _loss(observed.pixels.take(_ALL_ORDERS, axis=-2) - expected, observed.noise.take(_ALL_ORDERS, axis=-1))
    total = loss.sum(axis=-1)  # (C, ..., K, 3)
    gain = _kernel(points.shape[-3], SECONDS / observed.step) @ (total[..., :1] - total[..., 1:])
    helped = observed.present & (observed.present.sum(axis=0) >= 2)
    swapped: Flags = (gain > MARGIN) & helped[..., None]
    return swapped


def with_sides(observed: Observed, swapped: Flags) -> Observed:
    """Return the observations with the 2D of left and right swapped where a mask (C, ..., K, 2) is True."""
    if not swapped.any():
        return observed
    parts = {name: getattr(observed, name).copy() for name in ("pixels", "velocity", "noise")}
    for *place, limb in np.argwhere(swapped).tolist():
        for array in parts.values():
            array[tuple(place)] = array[tuple(place)][LIMB_ORDERS[limb]]
    return replace(observed, **parts)


def _kernel(count: int, width: float) -> F64:
    """Matrix (K, K) that smooths K values in time with a Gaussian of standard deviation `width` instants."""
    reach = int(np.ceil(3 * width))
    apart = np.arange(-reach, reach + 1)
    kernel = np.exp(-0.5 * (apart / max(width, 1e-3)) ** 2)
    between = np.abs(np.arange(count)[:, None] - np.arange(count))
    weights: F64 = np.where(between <= reach, kernel[np.minimum(between, reach) + reach], 0.0) / kernel.sum()
    return weights


def _loss(off: F64, noise: F64) -> F64:
    square = np.where(np.isfinite(noise), np.vecdot(off, off) * noise**-2.0, 0.0)
    loss: F64 = 0.5 * CAUCHY**2 * np.log1p(square / CAUCHY**2)
    return loss
