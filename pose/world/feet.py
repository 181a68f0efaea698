"""Removal of foot skating: the path of the body is corrected, and the legs take the remainder.

The path is changed as little as necessary to keep standing feet in place: least squares over the whole track, in which
steps of standing feet are weighed against changes of the path. Along the ray from the camera, where it is least
accurate, the path is less stiff; such a correction hardly moves the person in the image. Then each foot is kept at its
mean position by rotating the leg, within a limit; the correction is faded in and out. A foot that keeps moving is
sliding and is not changed.
"""

import numpy as np

from pose.structures.rotations import unit
from pose.structures.skeletons import H36M17
from pose.structures.two_bones import place_middle
from pose.structures.types import F64, Flags
from pose.world.contacts import runs
from pose.world.gravity import ANKLES
from pose.world.rules import FOOT_LOCK

_UP = np.array([0.0, 1.0, 0.0])
_LEGS = tuple(
    (H36M17.index(f"{side}_hip"), H36M17.index(f"{side}_knee"), H36M17.index(f"{side}_ankle"))
    for side in ("left", "right")
)


def exclude_sliding(ankles: F64, contacts: Flags, times: F64) -> Flags:
    """Return the contacts (T, 2) of the left and right foot without those in which the foot keeps sliding."""
    standing = contacts.copy()
    for side in range(2):
        for first, last in runs(contacts[:, side]):
            at = times[first:last]
            after = np.minimum(np.searchsorted(at, at + FOOT_LOCK.slide_window_s), len(at) - 1)
            place = ankles[first:last, side] / FOOT_LOCK.max_slide_m
            gone = np.linalg.norm(place[after] - place, axis=-1).max()
            if max(gone, np.linalg.norm(place[-1] - place[0]) / 3) > 1:
                standing[first:last, side] = False
    return standing


def view_axes(places: F64, cameras: F64) -> F64:
    """Return axes (T, 3, 3) as rows: across the ray from `cameras` to `places` (T, 3) m, up across it, and along it."""
    along = unit(places - cameras)
    across = unit(np.cross(_UP, along))
    return np.stack([across, np.cross(along, across), along], axis=1)


def path_correction(ankles: F64, standing: Flags, times: F64, axes: F64 | None = None) -> F64:
    """Return the correction (T, 3) m in the world of the body's position that keeps standing feet in place.

    `ankles` are (T, 2, 3) m, `standing` (T, 2). `axes` (T, 3, 3) vary slowly and have rows such as those of
    `view_axes`, to which `FOOT_LOCK.path_sigma_m` refers; by default those of the world.
    """
    if axes is not None:
        middle = (axes[1:] + axes[:-1]) / 2
        steps = np.einsum("tij,tfj->tfi", middle, np.diff(ankles, axis=0))
        ankles = np.concatenate([np.zeros_like(steps[:1]), np.cumsum(steps, axis=0)])
        correction = path_correction(ankles, standing, times)
        return np.asarray(np.einsum("tij,ti->tj", axes, correction))
    # For each axis, the corrections c_t minimise a sum of squares: c_t in units of `FOOT_LOCK.path_sigma_m`, the
    # change c_t+1 - c_t in `FOOT_LOCK.step_sigma_m`, and for each standing foot its motion plus this change in
    # `FOOT_LOCK.contact_step_sigma_m`. This gives a tridiagonal system. The standard deviations refer to `rate_fps`;
    # at other frame rates the terms are weighted by their duration.
    both = (standing[1:] & standing[:-1]).astype(np.float64)
    steps = (np.diff(ankles, axis=0) * both[..., None]).sum(axis=1)
    feet = both.sum(axis=1)
    correction = np.zeros((len(ankles), 3))
    if not feet.any():
        return correction
    span = np.diff(times) * FOOT_LOCK.rate_fps  # time between frames, in frames at `rate_fps`
    shake, step = FOOT_LOCK.step_sigma_m**2 * span, FOOT_LOCK.contact_step_sigma_m**2 * span
    link = 1 / shake + feet / step
    frames = np.clip(np.gradient(times) * FOOT_LOCK.rate_fps, 0, 10)
    for axis in range(3):
        pull = -steps[:, axis] / step
        diagonal = frames / FOOT_LOCK.path_sigma_m[axis] ** 2
        diagonal[:-1] += link
        diagonal[1:] += link
        right = np.zeros(len(ankles))
        right[1:] += pull
        right[:-1] -= pull
        correction[:, axis] = _tridiagonal(diagonal.tolist(), (-link).tolist(), right.tolist())
    return correction


def hold_feet(joints: F64, standing: Flags, times: F64) -> F64:
    """Return joints (T, 17, 3) m whose standing feet stay in place by rotating and slightly bending the legs."""
    # A foot is kept at its mean position during a contact. Corrections are limited to `FOOT_LOCK.max_foot_shift_m`, and
    # faded in and out over `fade_s` seconds. The leg is rotated to correct the foot across the leg. The knee is bent to
    # correct it along the leg, by the fraction `bend_share` only. The lengths of thigh and shank are kept.
    held = joints.copy()
    for side, leg in enumerate(_LEGS):
        offset = _offsets(joints[:, ANKLES[side]], standing[:, side], times)
        moved = np.flatnonzero(np.abs(offset).max(axis=1) > 1e-6)
        if not len(moved):
            continue
        part = joints[moved][:, leg]
        near, far = (float(np.median(np.linalg.norm(part[:, i + 1] - part[:, i], axis=-1))) for i in (0, 1))
        straight = part[:, 2] - part[:, 0]
        turned = straight + offset[moved]
        apart, wanted = (np.linalg.norm(limb, axis=-1, keepdims=True) for limb in (straight, turned))
        part[:, 2] = part[:, 0] + turned * (apart + FOOT_LOCK.bend_share * (wanted - apart)) / np.maximum(wanted, 1e-9)
        place_middle(part, (0, 1, 2), (near, far))
        held[np.ix_(moved, np.array(leg))] = part
    return held


def _offsets(ankle: F64, standing: Flags, times: F64) -> F64:
    """Return vectors (T, 3) m from an ankle to its target; they fade in before and out after each contact."""
    weight, total = np.zeros(len(times)), np.zeros((len(times), 3))
    for first, last in runs(standing):
        offset = ankle[first:last].mean(axis=0) - ankle[first:last]
        size = np.linalg.norm(offset, axis=1, keepdims=True)
        offset *= FOOT_LOCK.max_foot_shift_m * np.tanh(size / FOOT_LOCK.max_foot_shift_m) / np.maximum(size, 1e-9)
        start, end = np.searchsorted(
            times, [times[first] - FOOT_LOCK.fade_s, times[last - 1] + FOOT_LOCK.fade_s + 1e-9]
        )
        around = np.arange(max(start, 0), min(end, len(times)))
        away = (
            np.maximum(np.maximum(times[first] - times[around], times[around] - times[last - 1]), 0) / FOOT_LOCK.fade_s
        )
        share = (1 + np.cos(np.pi * np.minimum(away, 1))) / 2
        share[(away > 0) & standing[around]] = 0  # the foot is already in the next contact
        total[around] += share[:, None] * offset[np.clip(around - first, 0, last - first - 1)]
        weight[around] += share
    return np.asarray(total / np.maximum(weight, 1)[:, None])


def _tridiagonal(diagonal: list[float], off_diagonal: list[float], right: list[float]) -> list[float]:
    """Solve a symmetric tridiagonal system (L. H. Thomas); plain floats are faster than small arrays."""
    for i in range(1, len(diagonal)):
        factor = off_diagonal[i - 1] / diagonal[i - 1]
        diagonal[i] -= factor * off_diagonal[i - 1]
        right[i] -= factor * right[i - 1]
    right[-1] /= diagonal[-1]
    for i in range(len(diagonal) - 2, -1, -1):
        right[i] = (right[i] - off_diagonal[i] * right[i + 1]) / diagonal[i]
    return right
