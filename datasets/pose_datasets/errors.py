"""Simulation of detector errors and scores, in batches: jitter, bias, outliers, swaps, missing joints and truncation.

The unit of errors is the person's size in the image: the longer side of the box around the joints, averaged over time.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F32, F64, Flags
from pose_datasets.smooth import correlated_noise, smooth_noise
from pose_datasets.vectors import norm

# Error of each Human3.6M joint relative to the average (measured, left and right averaged).
JOINT_DIFFICULTY = np.array(
    [0.78, 1.14, 1.15, 1.22, 1.14, 1.15, 1.22, 0.63, 0.6, 0.83, 0.57, 0.82, 1.03, 1.42, 0.82, 1.03, 1.42], np.float32
)
_LEGS = ((1, 4), (2, 5), (3, 6))
_ARMS = ((14, 11), (15, 12), (16, 13))
_LIMBS = ((2, 3), (5, 6), (12, 13), (15, 16))  # (knee, ankle) and (elbow, wrist): occluded together by objects


@dataclass(frozen=True, kw_only=True)
class ErrorConfig:
    """Magnitudes of simulated detector errors.

    Errors are relative to the person's size in the image (see `person_size`) and are standard deviations per axis for
    an average joint. Fractions are averages over all sequences. Occluded joints have more errors. The values are from
    measurements on four networks and three clips: docs/studies/detector-errors.md.

    Attributes:
        jitter: Magnitude of the jitter of a joint at rest.
        speed: Additional jitter of a joint that moves by one person's size per second.
        drift: Magnitude of errors that last for some frames (`drift_seconds`).
        bias: Magnitude of errors that last for seconds.
        offset: Magnitude of errors that do not change in a sequence.
        jitter_seconds: Correlation time of the jitter, s.
        drift_seconds: Correlation time of the drift, s.
        spread: Standard deviation of the log of a sequence's error level, which multiplies jitter, drift, bias and
            offset.
        outlier_rate: Fraction of joints that are outliers.
        outlier: Magnitude of the error of outliers.
        outlier_seconds: Typical duration of outliers, s.
        swap_rate: Fraction of frames with swapped legs, and fraction with swapped arms.
        swap_seconds: Typical duration of left-right swaps, s.
        drop_rate: Fraction of joints that are not detected.
        drop_seconds: Typical duration of these gaps, s.
        frame_drop_rate: Fraction of frames in which the person is not detected.
        frame_drop_seconds: Typical duration of these gaps, s.
        limb_drop_rate: Fraction of frames in which both joints of a limb (knee and ankle, or elbow and wrist) are not
            detected.
        limb_drop_seconds: Typical duration of these gaps, s.
    """

    jitter: float = 0.006
    speed: float = 0.009
    drift: float = 0.0105
    bias: float = 0.0095
    offset: float = 0.0
    jitter_seconds: float = 0.02
    drift_seconds: float = 0.2
    spread: float = 0.35
    outlier_rate: float = 0.015
    outlier: float = 0.12
    outlier_seconds: float = 0.1
    swap_rate: float = 0.006
    swap_seconds: float = 0.12
    drop_rate: float = 0.01
    drop_seconds: float = 0.25
    frame_drop_rate: float = 0.01
    frame_drop_seconds: float = 0.12
    limb_drop_rate: float = 0.0
    limb_drop_seconds: float = 1.0


def add_errors(
    rng: np.random.Generator, pixels: F32, times: F64, image_size: F32, depth: F32, config: ErrorConfig
) -> tuple[F32, F32]:
    """Convert true 2D joints (B, T, 17, 2) px to simulated detections and scores; a score of 0 is not detected."""
    # `depth` (B, T, 17) m is relative to the pelvis, positive away from the camera. Joints on the far side are occluded
    # more often.
    size = person_size(pixels)
    occlusion = _draw_occlusion(rng, times, depth)
    noise = _draw_errors(rng, times, _speed(pixels, times, size), occlusion, config)
    keypoints = pixels + noise * size[..., None]
    _swap(rng, keypoints, times, config)
    scores = np.where(_draw_detected(rng, times, occlusion, config), _draw_scores(rng, noise, occlusion), 0)
    return _truncate(rng, keypoints, scores, image_size)


def _speed(pixels: F32, times: F64, size: F32) -> F32:
    """Compute the speed (B, T, 17) of joints in person's sizes per second, clipped to 3."""
    steps = np.diff(times, axis=1, append=(2 * times[:, -1] - times[:, -2])[:, None]).astype(np.float32)
    motion = norm(np.diff(pixels, axis=1, append=pixels[:, -1:]))
    result: F32 = np.minimum(motion / (steps[..., None] * size), np.float32(3))
    return result


def _draw_errors(rng: np.random.Generator, times: F64, speed: F32, occlusion: F32, config: ErrorConfig) -> F32:
    """Draw errors (B, T, 17, 2) in person's sizes: the sum of jitter, drift, bias, offset and outliers."""
    batch, frames = times.shape
    level = np.exp(np.float32(config.spread) * rng.standard_normal((batch, 1, 1), dtype=np.float32))
    scale = level * JOINT_DIFFICULTY * (1 + 2 * occlusion)
    drift = correlated_noise(rng, times, (17, 2), config.drift_seconds)
    noise = correlated_noise(rng, times, (17, 2), config.jitter_seconds)
    noise *= (scale * (config.jitter + config.speed * speed))[..., None]
    lasting = scale * (1 + np.float32(0.35) * speed)
    noise += drift * (config.drift * lasting)[..., None]
    slow = smooth_noise(rng, times, 34, 0.4).reshape(batch, frames, 17, 2)
    noise += slow * (config.bias * lasting)[..., None]
    if config.offset:
        noise += rng.standard_normal((batch, 1, 17, 2), dtype=np.float32) * (config.offset * lasting)[..., None]
    far = bursts(rng, times, 17, config.outlier_rate * (0.7 + 4 * occlusion), config.outlier_seconds)
    noise += (far * np.float32(config.outlier))[..., None] * drift
    return noise.astype(np.float32, copy=False)


def rederive(keypoints: F32, scores: F32) -> None:
    """Recompute pelvis, spine and thorax from hips and shoulders, in place, as `to_h36m17` does."""
    # The position is the mean of the source joints, and the score is the minimum of their scores.
    for joint, sources in ((0, [1, 4]), (8, [11, 14]), (7, [1, 4, 11, 14])):
        score = scores[..., sources].min(axis=-1)
        keypoints[..., joint, :] = keypoints[..., sources, :].mean(axis=-2) * (score > 0)[..., None]
        scores[..., joint] = score


def person_size(pixels: F32) -> F32:
    """Compute the size (B, T, 1) px of people: the longer side of the joints' box, averaged over a sequence."""
    by_joint = np.moveaxis(pixels, 2, 0).copy()  # twenty times faster than a reduction of a short middle axis
    width, height = np.moveaxis(by_joint.max(axis=0) - by_joint.min(axis=0), -1, 0)
    sides = np.maximum(width, height)
    return np.broadcast_to(sides.mean(axis=1, keepdims=True), sides.shape)[..., None]


def _draw_occlusion(rng: np.random.Generator, times: F64, depth: F32) -> F32:
    """Draw the degree of occlusion (B, T, 17) of each joint, 0 to 1, by the body itself or by objects."""
    behind = 0.35 / (1 + np.exp(-(depth - 0.15) / 0.06))
    objects = smooth_noise(rng, times, 1, 0.5) + rng.standard_normal((len(times), 1, 17), dtype=np.float32)
    result: F32 = np.maximum(behind, objects > 2.2).astype(np.float32)
    return result


def bursts(
    rng: np.random.Generator, times: F64, channels: int, rate: NDArray[np.floating] | float, seconds: float
) -> Flags:
    """Draw a random mask (B, T, channels), True for the fraction `rate` of time in intervals of about `seconds`."""
    return _above(correlated_noise(rng, times, (channels,), seconds), rate)


def _above(noise: F32, rate: NDArray[np.floating] | float) -> Flags:
    """Return a mask of the largest values of standard normal `noise`: the fraction `rate`, at most 0.5."""
    # Quantile of the standard normal distribution by a rational approximation (Abramowitz and Stegun 26.2.23,
    # absolute error below 4.5e-4).
    t = np.sqrt(-2 * np.log(np.clip(rate, 1e-6, 0.5)))
    threshold = t - (2.515517 + 0.802853 * t + 0.010328 * t * t) / (
        1 + 1.432788 * t + 0.189269 * t * t + 0.001308 * t**3
    )
    result: Flags = (noise > threshold) & (np.asarray(rate) > 0)
    return result


def _swap(rng: np.random.Generator, keypoints: F32, times: F64, config: ErrorConfig) -> None:
    """Swap left and right legs, and left and right arms, of keypoints in bursts, in place."""
    # A few sequences have many swaps; most have almost none.
    rate_factor = rng.gamma(0.4, 1 / 0.4, (len(times), 1, 1))
    swapped = bursts(rng, times, 2, config.swap_rate * rate_factor, config.swap_seconds)
    for channel, pairs in enumerate((_LEGS, _ARMS)):
        rows = swapped[..., channel]
        right, left = (list(side) for side in zip(*pairs, strict=True))
        here = keypoints[rows]
        here[:, right + left] = here[:, left + right]
        keypoints[rows] = here


def _draw_detected(rng: np.random.Generator, times: F64, occlusion: F32, config: ErrorConfig) -> Flags:
    """Draw a mask (B, T, 17) of the detected joints. Occluded joints are missing more often."""
    rate_factor = rng.gamma(0.5, 2, (len(times), 1, 1))
    joints = bursts(rng, times, 17, config.drop_rate * rate_factor * (0.5 + 4 * occlusion), config.drop_seconds)
    frames = bursts(rng, times, 1, config.frame_drop_rate * rate_factor, config.frame_drop_seconds)
    seen = ~(joints | frames)
    if config.limb_drop_rate:
        waves = smooth_noise(rng, times, len(_LIMBS), 1 / (4 * config.limb_drop_seconds))
        limbs = _above(waves, config.limb_drop_rate * rate_factor)
        for channel, joints_of_limb in enumerate(_LIMBS):
            seen[..., joints_of_limb] &= ~limbs[..., channel, None]
    return seen


def _draw_scores(rng: np.random.Generator, noise: F32, occlusion: F32) -> F32:
    """Draw scores (B, T, 17) that decrease with error and occlusion, with noise: some large errors score high."""
    doubt = norm(noise) / 0.06 + 0.2 * np.abs(rng.standard_normal(occlusion.shape, dtype=np.float32))
    # Networks differ in the level of their scores, for example 0.95 or 0.7.
    slope = np.exp(rng.uniform(np.log(0.12), 0, (len(noise), 1, 1))).astype(np.float32)
    return np.clip(np.exp(-slope * doubt - 2 * occlusion * occlusion), 0.02, 1).astype(np.float32)


def _truncate(rng: np.random.Generator, keypoints: F32, scores: F32, image_size: F32) -> tuple[F32, F32]:
    """Change joints outside the image, and return keypoints and scores."""
    # In some sequences these joints are not detected. In the others they are moved to the border of the image and have
    # a low score.
    limit = image_size[:, None, None] - 1
    inside = np.clip(keypoints, 0, limit)
    outside = (np.abs(inside - keypoints) > 0).any(axis=-1)
    undetected = rng.random((len(keypoints), 1, 1)) < 0.6
    invented = np.minimum(scores, rng.uniform(0.02, 0.4, scores.shape).astype(np.float32))
    scores = np.where(outside, np.where(undetected, 0, invented), scores)
    # These joints keep part of the distance to the true position, because networks extrapolate.
    kept = np.where((outside & ~undetected)[..., None], inside + 0.15 * (keypoints - inside), keypoints)
    return np.where(scores[..., None] > 0, kept, 0).astype(np.float32), scores.astype(np.float32)
