"""Prior of a person's points, combined from the lifters of all cameras.

The error of a lifter along the rays of its camera is about twice that across them. The rays of the cameras differ, so
the combined prior is more precise than that of the best camera.
"""

from dataclasses import dataclass

import numpy as np

from pose.multiview.observations import Indices, Observed
from pose.multiview.residuals import Weights, middle_of_hips, root_prior
from pose.multiview.types import POINT_NAMES, CameraBatch
from pose.structures.types import F64

ACROSS, ALONG = 0.4, 0.75  # standard deviation across and along the ray, relative to the lifter's sigma
MAX_INDEPENDENT_LIFTERS = 2.0  # effective maximum number of independent lifters: their errors are correlated
AGREEMENT_WINDOW_S = 0.5  # s, standard deviation of the window over which the agreement of a camera is averaged
T_DEGREES_OF_FREEDOM = 3.0  # degrees of freedom of the t-distribution
_ARM, _LEG = ("shoulder", "elbow", "wrist"), ("hip", "knee", "ankle")
LIMBS = [[POINT_NAMES.index(f"{side}_{part}") for part in limb] for side in ("left", "right") for limb in (_ARM, _LEG)]
LIMBS.append([POINT_NAMES.index("neck"), POINT_NAMES.index("head")])
_IN_LIMB = np.zeros((len(POINT_NAMES), len(LIMBS)))  # 1 where a point belongs to a limb
for _number, _limb in enumerate(LIMBS):
    _IN_LIMB[_limb, _number] = 1


@dataclass(frozen=True, slots=True)
class LifterPrior:
    """Combined lifter prior of N points at K instants; leading axes `...` are people."""

    points: F64  # (..., K, N, 3) m relative to the midpoint of the hips, in world axes
    precision: F64  # (..., K, N, 3, 3) 1/m^2, inverse covariance of each point; 0 without a prior
    root: F64  # (..., K, 3) m, midpoint of the hips in world coordinates
    root_precision: F64  # (..., K) 1/m^2, inverse variance of the root per axis; 0 without a prior

    def of_people(self, people: Indices) -> "LifterPrior":
        """Return the prior of the people with the indices `people` along the first axis of all arrays."""
        return LifterPrior(self.points[people], self.precision[people], self.root[people], self.root_precision[people])


@dataclass(frozen=True, slots=True)
class LiftedViews:
    """N lifted points of C cameras at K instants, in world axes; axes `...` are people."""

    points: F64  # (C, ..., K, N, 3) m relative to the midpoint of the hips
    precision: F64  # (C, ..., K, N, 3, 3) 1/m^2, inverse covariance of each point; 0 without a lifted point

    def of_people(self, people: Indices) -> "LiftedViews":
        """Return the points of the people with the indices `people` along the second axis of all arrays."""
        return LiftedViews(self.points[:, people], self.precision[:, people])


def lifted_views(observed: Observed, cameras: CameraBatch, scale: float) -> LiftedViews:
    """Return the lifted points of all cameras. They do not depend on the 2D keypoints in `observed`."""
    deviation = np.where(np.isfinite(observed.limb_sigma), observed.limb_sigma, np.inf)
    across, along = (ACROSS * deviation) ** -2.0, (ALONG * deviation) ** -2.0
    share = np.minimum(1.0, MAX_INDEPENDENT_LIFTERS / np.maximum(observed.present.sum(axis=0), 1))[..., None]
    ray = cameras.to_world_axes(observed.root)
    ray /= np.maximum(np.sqrt(np.vecdot(ray, ray)), 1e-9)[..., None]
    square = (ray[..., :, None] * ray[..., None, :])[..., None, :, :]
    precision = (share * (along - across))[..., None, None] * square
    for axis in range(3):
        precision[..., axis, axis] += share * across
    return LiftedViews(scale * cameras.to_world_axes(observed.limbs), precision)


def trust_of(observed: Observed, cameras: CameraBatch, lifted: LiftedViews, points: F64) -> F64:
    """Return factors (C, ..., K, N), at most 1, on each camera's precision, from its agreement with fused points."""
    # Errors of a detector last for many frames. If 2D or 3D of a limb disagree with the fused points for about
    # `AGREEMENT_WINDOW_S`, the camera gets a smaller weight there. The weight is that of a t-distribution of
    # `T_DEGREES_OF_FREEDOM` degrees of freedom.
    away = cameras.project(points) - observed.pixels
    square = np.where(observed.seen, np.vecdot(away, away) * observed.noise**-2.0, 0.0)
    off = points - middle_of_hips(points)[..., None, :] - lifted.points
    square += np.vecdot(off, (lifted.precision @ off[..., None])[..., 0])
    known = 2.0 * observed.seen + 3.0 * np.isfinite(observed.limb_sigma)
    window = _window(points.shape[-3], observed.step)
    ratio = window @ (square @ _IN_LIMB) / np.maximum(window @ (known @ _IN_LIMB), 1e-9)
    trust: F64 = np.minimum((T_DEGREES_OF_FREEDOM + 1) / (T_DEGREES_OF_FREEDOM + ratio), 1.0) @ _IN_LIMB.T
    trust += 1 - _IN_LIMB.sum(axis=1)
    trust[:, observed.present.sum(axis=0) < 2] = 1.0
    return trust


def _window(count: int, step: float) -> F64:
    """Return the weights (K, K) of neighbouring instants, `step` s apart, in a moving mean."""
    apart = np.arange(count) * step
    apart = np.abs(apart[:, None] - apart)
    weights: F64 = np.exp(-0.5 * (apart / AGREEMENT_WINDOW_S) ** 2)
    weights[apart > 3 * AGREEMENT_WINDOW_S] = 0.0
    return weights


def lifted_prior(
    observed: Observed, cameras: CameraBatch, lifted: LiftedViews, scale: float, weights: Weights, trust: F64
) -> LifterPrior:
    """Return the combined prior from the lifters of all cameras."""
    precision = trust[..., None, None] * lifted.precision
    total = precision.sum(axis=0)
    moment = (precision @ lifted.points[..., None]).sum(axis=0)
    known = np.einsum("...ii->...", total) > 0
    points = np.linalg.solve(np.where(known[..., None, None], total, np.eye(3)), moment)[..., 0]
    return LifterPrior(points, total, *root_prior(observed, cameras, scale, weights))
