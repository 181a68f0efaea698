"""Prior of a person's points, combined from the lifters of all cameras.

The error of a lifter along the rays of its camera is about twice that across them. The rays of the cameras differ, so
the combined prior is more precise than that of the best camera.
"""

from dataclasses import dataclass

import numpy as np

from pose.multiview.observations import Observed
from pose.multiview.residuals import Weights, root_prior
from pose.multiview.types import HIPS, POINT_NAMES, ViewCamera
from pose.types import F64

ACROSS, ALONG = 0.4, 0.75  # standard deviation across and along the ray, relative to the lifter's sigma
INDEPENDENT = 2.0  # effective maximum number of independent lifters: their errors are correlated
SECONDS = 0.5  # s, standard deviation of the window over which the agreement of a camera is averaged
FREEDOM = 3.0  # degrees of freedom of the t-distribution
_ARM, _LEG = ("shoulder", "elbow", "wrist"), ("hip", "knee", "ankle")
LIMBS = [[POINT_NAMES.index(f"{side}_{part}") for part in limb] for side in ("left", "right") for limb in (_ARM, _LEG)]
LIMBS.append([POINT_NAMES.index("neck"), POINT_NAMES.index("head")])
_IN_LIMB = np.zeros((len(POINT_NAMES), len(LIMBS)))  # 1 where a point belongs to a limb
for _number, _limb in enumerate(LIMBS):
    _IN_LIMB[_limb, _number] = 1


@dataclass(frozen=True, slots=True)
class LifterPrior:
    """Combined lifter prior of N points at K instants.

    Attributes:
        points: (K, N, 3) m relative to the midpoint of the hips, in world axes.
        precision: (K, N, 3, 3) 1/m^2, inverse covariance of each point; 0 without a prior.
        root: (K, 3) m, midpoint of the hips in world coordinates.
        root_precision: (K,) 1/m^2, inverse variance of the root per axis; 0 without a prior.
    """

    points: F64
    precision: F64
    root: F64
    root_precision: F64


def lifted_precision(observed: Observed, cameras: list[ViewCamera]) -> F64:
    """Return the precision (inverse covariance) of the lifted points of each camera, in world axes.

    Args:
        observed: Observations of the person.
        cameras: The cameras.

    Returns:
        (C, K, N, 3, 3) 1/m^2; 0 without a lifted point.
    """
    deviation = np.where(np.isfinite(observed.limb_sigma), observed.limb_sigma, np.inf)
    across, along = (ACROSS * deviation) ** -2.0, (ALONG * deviation) ** -2.0
    rotations = np.stack([camera.rotation for camera in cameras])
    ray = observed.root @ rotations
    ray /= np.maximum(np.linalg.norm(ray, axis=-1, keepdims=True), 1e-9)
    square = (ray[..., :, None] * ray[..., None, :])[:, :, None]
    found: F64 = across[..., None, None] * np.eye(3) + (along - across)[..., None, None] * square
    share = np.minimum(1.0, INDEPENDENT / np.maximum(observed.present.sum(axis=0), 1))
    found *= share[:, None, None, None]
    return found


def lifted_points(observed: Observed, cameras: list[ViewCamera], scale: float) -> F64:
    """Return the lifted points (C, K, N, 3) m of each camera, relative to the midpoint of the hips, in world axes.

    Args:
        observed: Observations of the person.
        cameras: The cameras.
        scale: Factor by which lifted bodies are scaled.
    """
    points: F64 = scale * np.stack([one @ camera.rotation for one, camera in zip(observed.limbs, cameras, strict=True)])
    return points


def trust_of(observed: Observed, cameras: list[ViewCamera], scale: float, points: F64) -> F64:
    """Return factors (C, K, N) on each camera's precision, from its agreement with fused points.

    Errors of a detector last for many frames. If 2D or 3D of a limb disagree with the fused points for about `SECONDS`,
    the camera gets a smaller weight there. The weight is that of a t-distribution of `FREEDOM` degrees of freedom. The
    factor is 1 where only one camera sees the person.

    Args:
        observed: Observations of the person.
        cameras: The cameras.
        scale: Factor by which lifted bodies are scaled.
        points: (K, N, 3) m, fused points in the world.
    """
    relative = points - points[:, list(HIPS)].mean(axis=1, keepdims=True)
    square = np.zeros(observed.noise.shape)
    for index, camera in enumerate(cameras):
        away = ((camera.project(points) - observed.pixels[index]) ** 2).sum(axis=-1)
        square[index] = np.where(observed.seen[index], away * observed.noise[index] ** -2.0, 0.0)
    off = relative - lifted_points(observed, cameras, scale)
    square += np.einsum("ckni,cknij,cknj->ckn", off, lifted_precision(observed, cameras), off, optimize=True)
    known = 2.0 * observed.seen + 3.0 * np.isfinite(observed.limb_sigma)
    window = _window(len(points), observed.step)
    ratio = window @ (square @ _IN_LIMB) / np.maximum(window @ (known @ _IN_LIMB), 1e-9)
    trust = np.minimum((FREEDOM + 1) / (FREEDOM + ratio), 1.0) @ _IN_LIMB.T
    trust += 1 - _IN_LIMB.sum(axis=1)
    trust[:, observed.present.sum(axis=0) < 2] = 1.0
    return trust


def _window(count: int, step: float) -> F64:
    """Return the weights (K, K) of neighbouring instants, `step` s apart, in a moving mean."""
    apart = np.arange(count) * step
    apart = np.abs(apart[:, None] - apart)
    weights: F64 = np.exp(-0.5 * (apart / SECONDS) ** 2)
    weights[apart > 3 * SECONDS] = 0.0
    return weights


def lifted_prior(
    observed: Observed, cameras: list[ViewCamera], scale: float, weights: Weights, trust: F64
) -> LifterPrior:
    """Return the combined prior from the lifters of all cameras.

    Args:
        observed: Observations of the person.
        cameras: The cameras.
        scale: Factor by which lifted bodies are scaled.
        weights: Weights of the residuals; only `root` is used.
        trust: (C, K, N) factors on each camera's precision.
    """
    precision = trust[..., None, None] * lifted_precision(observed, cameras)
    total = precision.sum(axis=0)
    moment = np.einsum("cknij,cknj->kni", precision, lifted_points(observed, cameras, scale))
    known = np.einsum("knii->kn", total) > 0
    points = np.zeros_like(moment)
    points[known] = np.linalg.solve(total[known], moment[known][..., None])[..., 0]
    return LifterPrior(points, total, *root_prior(observed, cameras, scale, weights))
