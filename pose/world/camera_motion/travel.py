"""The path of a carried camera, from structure from motion at key frames and the background's rotation between them.

At key frames the rotation equals that of structure from motion. Between them it follows the rotation estimated from the
background, which is accurate over a fraction of a second. Positions are interpolated with a cubic spline.
"""

from collections.abc import Iterator
from dataclasses import replace

import cv2
import numpy as np

from pose.structures.camera_rotations import to_matrix, to_vector
from pose.structures.skeletons import Skeleton
from pose.structures.types import F64, I64, Frame, People
from pose.world.camera_motion.path import MAX_BRIDGED_S, CameraPath
from pose.world.camera_motion.reduced import people_mask
from pose.world.camera_motion.structure import KeyImage, Structure

MAX_SIDE_PX = 640  # px of the longer side of key images
KEY_INTERVAL_S = 0.33  # s between key frames
MAX_KEYS = 90  # maximum number of key frames
_MAX_KEY_INTERVAL_S = 1.0  # maximum s between key frames; clips that need more are not reconstructed
_MIN_KEYS = 6  # minimum number of key frames


def choose_keys(path: CameraPath) -> I64 | str:
    """Return the indices (K,) of the key frames of a run, or the reason why there is no structure from motion."""
    if path.scenes[-1] > 0:
        return "the clip has cuts; cut it into its scenes"
    seconds = float(path.times[-1] - path.times[0])
    step = max(KEY_INTERVAL_S, seconds / (MAX_KEYS - 1))
    if step > _MAX_KEY_INTERVAL_S:
        return f"the clip is longer than {_MAX_KEY_INTERVAL_S * (MAX_KEYS - 1):.0f} s; cut it into pieces"
    wanted = np.arange(path.times[0], path.times[-1] + 1e-9, step)
    rows = np.unique(path.rows(wanted))
    rows = np.append(rows, len(path.times) - 1) if len(path.times) - 1 - rows[-1] > 2 else rows
    return rows if len(rows) >= _MIN_KEYS else "the clip is too short"


def key_images(frames: Iterator[tuple[Frame, People]], rows: I64, skeleton: Skeleton) -> tuple[list[KeyImage], float]:
    """Return the reduced images of the key frames, and their scale relative to the original images."""
    wanted, images, scale = set(rows.tolist()), [], 1.0
    for row, (frame, people) in enumerate(frames):
        if row not in wanted:
            continue
        grey = np.ascontiguousarray(frame.image[..., 1])
        scale = min(1.0, MAX_SIDE_PX / max(grey.shape))
        if scale < 1:
            size = round(grey.shape[1] * scale), round(grey.shape[0] * scale)
            grey = np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), np.uint8)
        images.append(KeyImage(grey, people_mask(grey.shape, scale, people, skeleton)))
        if len(images) == len(rows):
            break
    return images, scale


def scaled_matrix(matrix: F64, scale: float) -> F64:
    """Return the intrinsics (3, 3) px of an image reduced by `scale`, from the `matrix` of the original image."""
    reduced = matrix * scale
    reduced[:2, 2] += (scale - 1) / 2
    reduced[2, 2] = 1.0
    return np.asarray(reduced)


def with_translation(path: CameraPath, keys: I64, found: Structure) -> CameraPath:
    """Combine the background's path with the rotations and positions (up to scale) of structure from motion."""
    at = keys[found.rows]
    times = path.times[at]
    # Corrections that convert rotations of the background to those of the structure.
    corrections = found.rotations @ np.swapaxes(path.rotations[at], 1, 2)
    rotations = _between(path.times, times, corrections) @ path.rotations
    positions = np.stack([_spline(path.times, times, side) for side in found.positions.T], axis=1)
    begin = rotations[0].T
    rotations, positions = begin @ rotations, (positions - positions[0]) @ begin.T
    away = np.maximum(times[0] - path.times, path.times - times[-1])
    sigmas = np.where(away > MAX_BRIDGED_S, np.nan, path.sigmas)
    return replace(path, rotations=rotations, positions=positions, sigmas=sigmas, zooms=path.zooms * found.focal)


def _between(wanted: F64, times: F64, rotations: F64) -> F64:
    """Interpolate rotations (K, 3, 3) at `times` to (F, 3, 3) at `wanted`; constant beyond the ends."""
    left = np.clip(np.searchsorted(times, wanted, side="right") - 1, 0, len(times) - 2)
    share = np.clip((wanted - times[left]) / (times[left + 1] - times[left]), 0, 1)
    steps = to_vector(np.swapaxes(rotations[left], 1, 2) @ rotations[left + 1])
    return np.asarray(rotations[left] @ to_matrix(share[:, None] * steps))


def _spline(wanted: F64, times: F64, values: F64) -> F64:
    """Interpolate values (K,) at `times` (K,) to times `wanted` (F,) with a cubic Hermite spline; linear outside."""
    slopes = np.gradient(values, times)
    left = np.clip(np.searchsorted(times, wanted, side="right") - 1, 0, len(times) - 2)
    step = times[left + 1] - times[left]
    s = np.clip((wanted - times[left]) / step, 0, 1)
    begin, end = values[left], values[left + 1]
    inside = (
        (2 * s**3 - 3 * s**2 + 1) * begin
        + (3 * s**2 - 2 * s**3) * end
        + step * ((s**3 - 2 * s**2 + s) * slopes[left] + (s**3 - s**2) * slopes[left + 1])
    )
    before, after = np.minimum(wanted - times[0], 0), np.maximum(wanted - times[-1], 0)
    return np.asarray(inside + before * slopes[0] + after * slopes[-1])
