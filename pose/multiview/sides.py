"""Correction of left-right swaps in one camera, from the 3D joints of the other cameras."""

from dataclasses import replace

import numpy as np

from pose.multiview.observations import Observed
from pose.multiview.types import POINT_NAMES, ViewCamera
from pose.types import F64, Flags

_LEGS, _ARMS = ("hip", "knee", "ankle"), ("shoulder", "elbow", "wrist")
LIMB_ORDERS = []  # orders of points with left and right legs, or arms, swapped
for _parts in (_LEGS, _ARMS):
    _order = np.arange(len(POINT_NAMES))
    for _part in _parts:
        _left, _right = POINT_NAMES.index(f"left_{_part}"), POINT_NAMES.index(f"right_{_part}")
        _order[[_left, _right]] = _right, _left
    LIMB_ORDERS.append(_order)

MARGIN = 3.0  # minimum improvement of the cost by swapped sides
SECONDS = 0.08  # s over which the evidence is averaged
CAUCHY = 2.0  # scale of the robust loss, in standard deviations


def swapped_sides(observed: Observed, cameras: list[ViewCamera], points: F64) -> Flags:
    """Return where a camera's 2D fits better with left and right swapped: a mask (C, K, 2) for legs and arms.

    The mask is True only where another camera also sees the person.

    Args:
        observed: Observations of the person.
        cameras: The cameras.
        points: (K, N, 3) m, fused points in the world.
    """
    out = np.zeros((len(cameras), len(points), 2), bool)
    width = SECONDS / observed.step
    reach = int(np.ceil(3 * width))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / max(width, 1e-3)) ** 2)
    kernel /= kernel.sum()
    helped = observed.present.sum(axis=0) >= 2
    for index, camera in enumerate(cameras):
        expected = camera.project(points)
        plain = _loss(observed.pixels[index] - expected, observed.noise[index])
        for limb, order in enumerate(LIMB_ORDERS):
            other = _loss(observed.pixels[index][:, order] - expected, observed.noise[index][:, order])
            gain = blurred((plain - other).sum(axis=1), kernel)
            out[index, :, limb] = (gain > MARGIN) & helped & observed.present[index]
    return out


def with_sides(observed: Observed, swapped: Flags) -> Observed:
    """Return the observations with the 2D of left and right swapped where the mask `swapped` (C, K, 2) is True."""
    if not swapped.any():
        return observed
    parts = {name: getattr(observed, name).copy() for name in ("pixels", "velocity", "noise")}
    for camera, knot, limb in np.argwhere(swapped):
        for array in parts.values():
            array[camera, knot] = array[camera, knot][LIMB_ORDERS[limb]]
    return replace(observed, **parts)


def blurred(row: F64, kernel: F64) -> F64:
    """Return values `row` (K,) convolved with a kernel of odd length, which may be longer than the values."""
    half = len(kernel) // 2
    result: F64 = np.convolve(row, kernel)[half : half + len(row)]
    return result


def _loss(off: F64, noise: F64) -> F64:
    square = np.where(np.isfinite(noise), (off * off).sum(axis=-1) * noise**-2.0, 0.0)
    loss: F64 = 0.5 * CAUCHY**2 * np.log1p(square / CAUCHY**2)
    return loss
