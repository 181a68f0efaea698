"""Simulated detector errors, in batches: jitter, bias, outliers, left-right swaps, gaps and truncation, with scores.

Lengths are relative to the person's size in the image (the longer side of the box around the joints).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.types import F32
from pose_datasets.smooth import correlated_noise, smooth_noise
from pose_datasets.vectors import norm

F64 = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Error of each Human3.6M joint relative to the average (measured, left and right averaged).
JOINT_DIFFICULTY = np.array(
    [0.78, 1.14, 1.15, 1.22, 1.14, 1.15, 1.22, 0.63, 0.6, 0.83, 0.57, 0.82, 1.03, 1.42, 0.82, 1.03, 1.42], np.float32
)
_LEGS = ((1, 4), (2, 5), (3, 6))
_ARMS = ((14, 11), (15, 12), (16, 13))
_LIMBS = ((2, 3), (5, 6), (12, 13), (15, 16))  # joints occluded for a while by a table, a wall or another body


@dataclass(frozen=True, kw_only=True)
class ErrorConfig:
    """Magnitudes of simulated detector errors. Lengths are relative to the person's size in the image.

    The values are measured on four networks and three clips: docs/studies/detector-errors.md.
    """

    jitter: float = 0.006  # standard deviation of the jitter of a joint at rest
    speed: float = 0.009  # additional jitter per person's size/s
    drift: float = 0.0105  # of errors that last for some frames
    bias: float = 0.0095  # of errors that last for seconds
    jitter_seconds: float = 0.02
    drift_seconds: float = 0.2
    spread: float = 0.35  # of the log of a sequence's error level
    outlier_rate: float = 0.015  # fraction of joints that are outliers
    outlier: float = 0.12
    outlier_seconds: float = 0.1
    swap_rate: float = 0.006  # fraction of frames in which legs, or arms, are swapped
    swap_seconds: float = 0.12
    drop_rate: float = 0.01  # fraction of joints not detected
    drop_seconds: float = 0.25
    frame_drop_rate: float = 0.01  # fraction of frames without a detection
    frame_drop_seconds: float = 0.12
    # fraction of the time that each arm (elbow, wrist) and leg (knee, ankle) is not detected
    limb_drop_rate: float = 0.0
    limb_drop_seconds: float = 1.0


def add_errors(
    rng: np.random.Generator, pixels: F32, times: F64, image_size: F32, depth: F32, config: ErrorConfig
) -> tuple[F32, F32]:
    """Convert true pixels (B, T, 17, 2) to simulated detections.

    Args:
        rng: Random generator.
        pixels: (B, T, 17, 2) px.
        times: (B, T) s.
        image_size: (B, 2) px.
        depth: (B, T, 17) m, relative to the pelvis, positive away from the camera; the far side is occluded more often.
        config: Magnitudes.

    Returns:
        Keypoints (B, T, 17, 2) px and scores (B, T, 17), 0 where not detected.
    """
    size = person_size(pixels)
    hidden = _hidden(rng, times, depth)
    noise = _noise(rng, times, _speed(pixels, times, size), hidden, config)
    found = pixels + noise * size[..., None]
    _swap(rng, found, times, config)
    scores = np.where(_seen(rng, times, hidden, config), _scores(rng, noise, hidden), 0)
    return _truncated(rng, found, scores, image_size)


def _speed(pixels: F32, times: F64, size: F32) -> F32:
    """Speed (B, T, 17) in person sizes per second, at most 3."""
    steps = np.diff(times, axis=1, append=(2 * times[:, -1] - times[:, -2])[:, None]).astype(np.float32)
    motion = norm(np.diff(pixels, axis=1, append=pixels[:, -1:]))
    result: F32 = np.minimum(motion / (steps[..., None] * size), np.float32(3))
    return result


def _noise(rng: np.random.Generator, times: F64, speed: F32, hidden: F32, config: ErrorConfig) -> F32:
    """Errors (B, T, 17, 2) in person sizes: jitter, drift, bias, and bursts of outliers."""
    batch, frames = times.shape
    level = np.exp(np.float32(config.spread) * rng.standard_normal((batch, 1, 1), dtype=np.float32))
    scale = level * JOINT_DIFFICULTY * (1 + 2 * hidden)
    drift = correlated_noise(rng, times, (17, 2), config.drift_seconds)
    noise = correlated_noise(rng, times, (17, 2), config.jitter_seconds)
    noise *= (scale * (config.jitter + config.speed * speed))[..., None]
    lasting = scale * (1 + np.float32(0.35) * speed)
    noise += drift * (config.drift * lasting)[..., None]
    slow = smooth_noise(rng, times, 34, 0.4).reshape(batch, frames, 17, 2)
    noise += slow * (config.bias * lasting)[..., None]
    far = bursts(rng, times, 17, config.outlier_rate * (0.7 + 4 * hidden), config.outlier_seconds)
    noise += (far * np.float32(config.outlier))[..., None] * drift
    return noise.astype(np.float32, copy=False)


def rederive(keypoints: F32, scores: F32) -> None:
    """Recompute pelvis, spine and thorax of keypoints (B, T, 17, 2) from hips and shoulders, in place.

    As in `pose.skeletons.to_h36m17`: the mean of their positions, and the minimum of their scores.
    """
    for joint, sources in ((0, [1, 4]), (8, [11, 14]), (7, [1, 4, 11, 14])):
        score = scores[..., sources].min(axis=-1)
        keypoints[..., joint, :] = keypoints[..., sources, :].mean(axis=-2) * (score > 0)[..., None]
        scores[..., joint] = score


def person_size(pixels: F32) -> F32:
    """Size (B, T, 1) px of people (B, T, 17, 2) px: the longer side of the joints' box, averaged over time."""
    by_joint = np.moveaxis(pixels, 2, 0).copy()  # twenty times faster than a reduction of a short middle axis
    width, height = np.moveaxis(by_joint.max(axis=0) - by_joint.min(axis=0), -1, 0)
    sides = np.maximum(width, height)
    return np.broadcast_to(sides.mean(axis=1, keepdims=True), sides.shape)[..., None]


def _hidden(rng: np.random.Generator, times: F64, depth: F32) -> F32:
    """(B, T, 17) in [0, 1]: degree of occlusion of each joint, by the body itself or by objects."""
    behind = 0.35 / (1 + np.exp(-(depth - 0.15) / 0.06))
    objects = smooth_noise(rng, times, 1, 0.5) + rng.standard_normal((len(times), 1, 17), dtype=np.float32)
    result: F32 = np.maximum(behind, objects > 2.2).astype(np.float32)
    return result


def bursts(
    rng: np.random.Generator, times: F64, channels: int, rate: NDArray[np.floating] | float, seconds: float
) -> Mask:
    """(B, T, channels) True in bursts of about `seconds`, for a fraction `rate` of the time."""
    return _above(correlated_noise(rng, times, (channels,), seconds), rate)


def _above(noise: F32, rate: NDArray[np.floating] | float) -> Mask:
    """Mask of the values of standard normal `noise` in the highest fraction `rate`."""
    # Quantile of the standard normal distribution by a rational approximation (Abramowitz and Stegun 26.2.23,
    # absolute error below 4.5e-4).
    t = np.sqrt(-2 * np.log(np.clip(rate, 1e-6, 0.5)))
    threshold = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (
        1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t**3
    )
    result: Mask = (noise > threshold) & (np.asarray(rate) > 0)
    return result


def _swap(rng: np.random.Generator, found: F32, times: F64, config: ErrorConfig) -> None:
    """Swap left and right legs, and arms, in bursts, in place; frequent in some sequences, rare in most."""
    liable = rng.gamma(0.4, 1 / 0.4, (len(times), 1, 1))
    swapped = bursts(rng, times, 2, config.swap_rate * liable, config.swap_seconds)
    for channel, pairs in enumerate((_LEGS, _ARMS)):
        rows = swapped[..., channel]
        right, left = (list(side) for side in zip(*pairs, strict=True))
        here = found[rows]
        here[:, right + left] = here[:, left + right]
        found[rows] = here


def _seen(rng: np.random.Generator, times: F64, hidden: F32, config: ErrorConfig) -> Mask:
    liable = rng.gamma(0.5, 2, (len(times), 1, 1))
    joints = bursts(rng, times, 17, config.drop_rate * liable * (0.5 + 4 * hidden), config.drop_seconds)
    frames = bursts(rng, times, 1, config.frame_drop_rate * liable, config.frame_drop_seconds)
    seen = ~(joints | frames)
    if config.limb_drop_rate:
        waves = smooth_noise(rng, times, len(_LIMBS), 1 / (4 * config.limb_drop_seconds))
        limbs = _above(waves, config.limb_drop_rate * liable)
        for channel, joints_of_limb in enumerate(_LIMBS):
            seen[..., joints_of_limb] &= ~limbs[..., channel, None]
    return seen


def _scores(rng: np.random.Generator, noise: F32, hidden: F32) -> F32:
    """Scores decrease loosely with the error, and for occluded joints; some errors have high scores."""
    doubt = norm(noise) / 0.06 + 0.2 * np.abs(rng.standard_normal(hidden.shape, dtype=np.float32))
    # Networks differ in the level of their scores, for example 0.95 or 0.7.
    modest = np.exp(rng.uniform(np.log(0.12), 0, (len(noise), 1, 1))).astype(np.float32)
    return np.clip(np.exp(-modest * doubt - 2 * hidden * hidden), 0.02, 1).astype(np.float32)


def _truncated(rng: np.random.Generator, found: F32, scores: F32, image_size: F32) -> tuple[F32, F32]:
    """Outside the image, joints are either not detected, or placed near the border with a low score."""
    limit = image_size[:, None, None] - 1
    inside = np.clip(found, 0, limit)
    outside = (np.abs(inside - found) > 0).any(axis=-1)
    silent = rng.random((len(found), 1, 1)) < 0.6
    invented = np.minimum(scores, rng.uniform(0.02, 0.4, scores.shape).astype(np.float32))
    scores = np.where(outside, np.where(silent, 0, invented), scores)
    # These joints keep part of the distance to the true position, because networks extrapolate.
    kept = np.where((outside & ~silent)[..., None], inside + 0.15 * (found - inside), found)
    return np.where(scores[..., None] > 0, kept, 0).astype(np.float32), scores.astype(np.float32)
