"""Residuals of bundle adjustment and their derivatives: reprojection, bone lengths, smoothness, the lifter's prior.

All residuals are divided by their standard deviations. Reprojection has a robust loss: the Cauchy loss of each point's
distance.
"""

from dataclasses import dataclass

import numpy as np

from pose.lifting.fit.bones import Bones
from pose.multiview.observations import Observed
from pose.multiview.types import HIPS, MIN_DEPTH_M, POINT_NAMES, CameraBatch, ViewCamera
from pose.structures.types import F64

PARAMETERS = 10  # per camera: rotation (3), translation (3), log focal length, k1, offset (s), drift
ROTATION, TRANSLATION, FOCAL, RADIAL, OFFSET, DRIFT = slice(0, 3), slice(3, 6), 6, 7, 8, 9

_BONES = (
    ("hip", "knee", 0.01), ("knee", "ankle", 0.01), ("shoulder", "elbow", 0.01), ("elbow", "wrist", 0.01),
    ("hip", "shoulder", 0.03),
)  # fmt: skip
_ACROSS = (("left_hip", "right_hip", 0.01), ("left_shoulder", "right_shoulder", 0.02), ("neck", "head", 0.02))
BONES = [
    *((f"{side}_{a}", f"{side}_{b}", sigma) for a, b, sigma in _BONES for side in ("left", "right")),
    *_ACROSS,
]
BONE_SIGMA = np.array([sigma for _, _, sigma in BONES])  # m, standard deviation of a length from frame to frame
BONE_RESIDUALS = Bones(
    np.array([POINT_NAMES.index(start) for start, _, _ in BONES]),
    np.array([POINT_NAMES.index(end) for _, end, _ in BONES]),
    BONE_SIGMA,
    np.arange(len(BONES)),
)


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the residuals."""

    acceleration: float = 15.0  # standard deviation of joint accelerations, m/s^2
    cauchy: float = 2.0  # scale of the Cauchy loss, in standard deviations of a reprojection
    limb: float = 3.0  # factor on the standard deviations of lifted points
    root: float = 0.15  # standard deviation of the lifted distance, relative to the distance


def projected(camera: ViewCamera, points: F64) -> tuple[F64, F64, F64]:
    """Project points (K, N, 3) m: px (K, N, 2), derivatives (K, N, 2, 3) px/m by camera-frame points, and these."""
    seen = camera.to_camera(points)
    depth = np.maximum(seen[..., 2], MIN_DEPTH_M)
    ray = seen[..., :2] / depth[..., None]
    square = (ray * ray).sum(axis=-1)
    factor, growth = camera.lens.factor(square), 2 * camera.lens.slope(square)
    pixels = camera.focal * factor[..., None] * ray + camera.centre
    by_ray = camera.focal * (
        factor[..., None, None] * np.eye(2) + growth[..., None, None] * ray[..., :, None] * ray[..., None, :]
    )
    by_seen = np.empty((*points.shape[:-1], 2, 3))
    by_seen[..., :2] = by_ray / depth[..., None, None]
    by_seen[..., 2] = -(by_seen[..., 0] * ray[..., :1] + by_seen[..., 1] * ray[..., 1:])
    return pixels, by_seen, seen


def by_parameters(camera: ViewCamera, seen: F64, pixels: F64, by_seen: F64, velocity: F64, own: F64) -> F64:
    """Return the derivatives (K, N, 2, PARAMETERS) of a camera's residuals with respect to its parameters."""
    # The residual is the projection minus the observation, px. The parameters are rotation (3), translation (3), log
    # focal length, k1, clock offset (s) and drift. The rotation parameter w replaces the camera's rotation R by exp(w)
    # R.
    out = np.empty((*pixels.shape, PARAMETERS))
    turned = seen - camera.translation
    cross = np.zeros((*seen.shape[:-1], 3, 3))
    cross[..., 0, 1], cross[..., 0, 2], cross[..., 1, 2] = turned[..., 2], -turned[..., 1], turned[..., 0]
    cross[..., 1, 0], cross[..., 2, 0], cross[..., 2, 1] = -turned[..., 2], turned[..., 1], -turned[..., 0]
    out[..., ROTATION] = by_seen @ cross
    out[..., TRANSLATION] = by_seen
    out[..., FOCAL] = pixels - camera.centre
    ray = seen[..., :2] / np.maximum(seen[..., 2:], MIN_DEPTH_M)
    # of `RadialLens`; the intrinsics of other lenses are given and stay fixed
    out[..., RADIAL] = camera.focal * (ray * ray).sum(axis=-1, keepdims=True) * ray
    out[..., OFFSET] = velocity
    out[..., DRIFT] = velocity * own[:, None, None]
    return out


def prior_of(observed: Observed, cameras: list[ViewCamera], scale: float, weights: Weights) -> tuple[F64, F64]:
    """Return the combined lifter prior (K, N, 3) m from the hips in world axes, and precisions (K, N) 1/m^2."""
    # Errors of cameras are correlated, so the precision is that of the most precise one.
    precision = np.where(np.isfinite(observed.limb_sigma), observed.limb_sigma, np.inf) ** -2.0
    turned = np.stack([points @ camera.rotation for points, camera in zip(observed.limbs, cameras, strict=True)])
    total = precision.sum(axis=0)
    mean = (precision[..., None] * turned).sum(axis=0) / np.maximum(total, 1e-12)[..., None]
    return scale * mean, precision.max(axis=0) / weights.limb**2


def root_prior(observed: Observed, cameras: CameraBatch, scale: float, weights: Weights) -> tuple[F64, F64]:
    """Return the lifter's prior of the hips (..., K, 3) m and precisions, 0 unless exactly one camera sees them."""
    place = cameras.to_world(scale * observed.root)
    far = scale * np.maximum(observed.root[..., 2], MIN_DEPTH_M)
    alone = observed.present.sum(axis=0) == 1
    precision = np.where(observed.present & alone, (weights.root * far) ** -2.0, 0.0)
    total = precision.sum(axis=0)
    return (precision[..., None] * place).sum(axis=0) / np.maximum(total, 1e-12)[..., None], total


def middle_of_hips(points: F64) -> F64:
    """Return the midpoint of the hips (..., 3) from the N points `types.POINTS`, (..., N, 3)."""
    left, right = HIPS
    middle: F64 = 0.5 * (points[..., left, :] + points[..., right, :])
    return middle


def hip_weights() -> F64:
    """Return the weights (N,) with which the points `types.POINTS` give the midpoint of the hips."""
    out = np.zeros(len(POINT_NAMES))
    out[list(HIPS)] = 0.5
    return out
