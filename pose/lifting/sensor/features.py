"""Inputs of the sensor network from noisy 3D skeletons, and poses from its outputs, for training and use.

Joints are about the pelvis, and turned about the vertical so that hips and shoulders are on average along x: a network
then sees one heading. Missing joints are interpolated in time. The network corrects a smoothed skeleton; the raw one is
an input as well. Axes: B sequence, T time, J joint (17).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64, Flags

_ACROSS = ("hip", "shoulder")
Values = NDArray[np.floating]
SMOOTH_S = 0.06  # standard deviation of the kernel of the skeleton that the network corrects
_STEP_S = 1 / 30


@dataclass(frozen=True, slots=True)
class PersonView:
    """What turns a network's corrections into a skeleton."""

    base: F32  # (B, T, 17, 3) m, the smoothed skeleton along the person's axes: pelvis, and joints about it
    centre: F64  # (B, 1, 3) m, origin of the pelvis's path
    turn: F64  # (B, 3, 3) from the person's axes to those of the input, for row vectors


def describe(joints: Values, scores: Values, times: F64, kinect: Flags) -> tuple[F32, PersonView]:
    """Return network inputs (B, T, F) and the view that `restore` needs, from joints (B, T, 17, 3) m, y up.

    Joints are ignored where the score (B, T, 17) is 0; each needs one above 0. `kinect` (B,): they are of a Kinect v2.
    """
    filled = filled_gaps(joints, scores, times)
    smooth = _smoothed(filled, scores, times)
    turn = heading(smooth)
    back = np.swapaxes(turn, 1, 2)[:, None]
    centre = smooth[:, :, 0].mean(axis=1, keepdims=True)
    own = (smooth - centre[:, :, None]) @ back
    raw = (filled - centre[:, :, None]) @ back
    about = _about_pelvis(own)
    off = np.clip(_about_pelvis(raw) - about, -1, 1)
    steps = np.diff(times, axis=1, prepend=times[:, :1] - _STEP_S)
    rate = np.log(np.maximum(steps, 1e-4) / _STEP_S)
    motion = np.diff(own[:, :, 0], axis=1, prepend=own[:, :1, 0])
    frames = (*times.shape, -1)
    parts = [
        about.reshape(frames), 5 * off.reshape(frames), scores, own[:, :, 0], 10 * motion, rate[..., None],
        np.broadcast_to(np.asarray(kinect)[:, None, None], (*times.shape, 1)),
    ]  # fmt: skip
    features = np.concatenate(parts, axis=-1).astype(np.float32)
    assert features.shape[-1] == FEATURES
    about[:, :, 0] = own[:, :, 0]
    return features, PersonView(about.astype(np.float32), centre, turn)


def restore(view: PersonView, corrections: F32) -> F64:
    """Return joints (B, T, 17, 3) m in the axes of the input, from corrections (B, T, 51) m along the person's axes."""
    points = view.base + corrections.reshape(view.base.shape).astype(np.float64)
    joints = points.copy()
    joints[:, :, 1:] += points[:, :, :1]
    result: F64 = joints @ view.turn[:, None] + view.centre[:, :, None]
    return result


def as_targets(view: PersonView, truth: Values) -> F32:
    """Return the corrections (B, T, 51) m that restore true joints (B, T, 17, 3) m, the inverse of `restore`."""
    own = (truth - view.centre[:, :, None]) @ np.swapaxes(view.turn, 1, 2)[:, None]
    points = _about_pelvis(own)
    points[:, :, 0] = own[:, :, 0]
    result: F32 = (points - view.base).reshape(*truth.shape[:2], -1).astype(np.float32)
    return result


def heading(joints: Values) -> F64:
    """Return rotations (B, 3, 3), for row vectors, from people's axes to those of joints (B, T, 17, 3)."""
    left, right = (joints[:, :, [H36M17.index(f"{side}_{name}") for name in _ACROSS]] for side in ("left", "right"))
    across = (left - right).mean(axis=(1, 2))
    length = np.maximum(np.hypot(across[:, 0], across[:, 2]), 1e-6)
    c, s = across[:, 0] / length, across[:, 2] / length
    zero, one = np.zeros_like(c), np.ones_like(c)
    result: F64 = np.stack([c, zero, s, zero, one, zero, -s, zero, c], axis=-1).reshape(-1, 3, 3)
    return result


def _about_pelvis(joints: Values) -> F64:
    return np.asarray(joints - joints[:, :, :1], np.float64)


def filled_gaps(joints: Values, scores: Values, times: F64) -> F64:
    """Interpolate joints of score 0 linearly in time; before the first and after the last one they are constant.

    A gap of the pelvis moves the whole body, so other joints are interpolated as seen.
    """
    filled = np.array(joints, np.float64)
    seen = scores > 0
    for row, joint in np.argwhere(~seen.all(axis=1)):
        known = seen[row, :, joint]
        if known.any():
            for axis in range(3):
                values = filled[row, :, joint, axis]
                values[~known] = np.interp(times[row][~known], times[row][known], values[known])
        else:
            filled[row, :, joint] = filled[row, :, 0]
    return filled


def _smoothed(joints: F64, scores: Values, times: F64) -> F64:
    """Return a weighted mean over about three frames each side; joints with a low score count less."""
    count = times.shape[1]
    reach = min(count - 1, max(2, int(3 * SMOOTH_S / max(float(np.median(np.diff(times, axis=1))), 1e-3))), 12)
    weights = np.maximum(np.asarray(scores, np.float64), 0.05)
    total, weight = joints * weights[..., None], weights.copy()
    for shift in range(1, reach + 1):
        kernel = np.exp(-0.5 * ((times[:, shift:] - times[:, :-shift]) / SMOOTH_S) ** 2)[..., None]
        for to, of in ((slice(shift, None), slice(None, -shift)), (slice(None, -shift), slice(shift, None))):
            share = kernel * weights[:, of]
            total[:, to] += share[..., None] * joints[:, of]
            weight[:, to] += share
    result: F64 = total / weight[..., None]
    return result


class SensorBatch(NamedTuple):
    """B windows of T frames of noisy skeletons with their truth."""

    features: F32  # (B, T, F) network inputs
    times: F64  # (B, T) s
    corrections: F32  # (B, T, 51) m, true corrections along the person's axes
    valid: Flags  # (B, T) frames with ground truth
    view: PersonView  # what restores joints from corrections
    sensor: F32  # (B, T, 17, 3) m, noisy joints
    truth: F32  # (B, T, 17, 3) m, true joints


JOINTS = 17
# Joints about the pelvis (17 x 3), raw minus smooth (17 x 3), scores (17), pelvis about its mean (3), its step (3),
# the step in time, and whether the joints are those of a Kinect v2.
FEATURES = 2 * 3 * JOINTS + JOINTS + 3 + 3 + 2
OUTPUTS = 3 * JOINTS + JOINTS  # corrections of the pelvis and of the joints about it, in m; log sigma
INPUT_NAMES = ("features", "times")
OUTPUT_NAMES = ("corrections", "sigma")
FORMAT = "pose-sensor-1"
SHIPPED = "sensor"
