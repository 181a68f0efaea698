"""Left-right swaps of one camera, undone by the others: which sides fit the joints in space better."""

from dataclasses import replace

import numpy as np

from pose.multiview.observations import Observed
from pose.multiview.types import POINT_NAMES, ViewCamera
from pose.types import F64, Flags

_LEGS, _ARMS = ("hip", "knee", "ankle"), ("shoulder", "elbow", "wrist")
LIMB_ORDERS = []  # of points, in which left and right of the legs, or the arms, have changed places
for _parts in (_LEGS, _ARMS):
    _order = np.arange(len(POINT_NAMES))
    for _part in _parts:
        _left, _right = POINT_NAMES.index(f"left_{_part}"), POINT_NAMES.index(f"right_{_part}")
        _order[[_left, _right]] = _right, _left
    LIMB_ORDERS.append(_order)

MARGIN = 3.0  # of half squared standard deviations, by which swapped sides must fit better
SECONDS = 0.08  # over which the evidence is averaged
CAUCHY = 2.0


def swapped_sides(observed: Observed, cameras: list[ViewCamera], points: F64) -> Flags:
    """(C, K, 2): in which images legs and arms fit points (K, N, 3) m better with left and right exchanged.

    Only where another camera sees the person: alone, a camera has nobody to correct it.
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
            gain = np.convolve((plain - other).sum(axis=1), kernel, mode="same")
            out[index, :, limb] = (gain > MARGIN) & helped & observed.present[index]
    return out


def with_sides(observed: Observed, swapped: Flags) -> Observed:
    """The same with left and right exchanged where `swapped` (C, K, 2) says so."""
    if not swapped.any():
        return observed
    parts = {name: getattr(observed, name).copy() for name in ("pixels", "velocity", "noise")}
    for camera, knot, limb in np.argwhere(swapped):
        for array in parts.values():
            array[camera, knot] = array[camera, knot][LIMB_ORDERS[limb]]
    return replace(observed, **parts)


def _loss(off: F64, noise: F64) -> F64:
    square = np.where(np.isfinite(noise), (off * off).sum(axis=-1) * noise**-2.0, 0.0)
    loss: F64 = 0.5 * CAUCHY**2 * np.log1p(square / CAUCHY**2)
    return loss
