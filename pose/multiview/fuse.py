"""Joints of one person at even instants from all cameras, in windows, so that memory does not grow with the length.

In each window the solver of the calibration runs with fixed cameras and the bone lengths that the calibration found. A
joint that one camera sees lies on that camera's ray, at the depth that bones, the lifter and the neighbouring instants
say; one that no camera sees is the lifter's and the neighbours'. Its sigma is that of the same solution.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pose.multiview.bundle import Body, Bundle, Freedom
from pose.multiview.calibrate import start_points
from pose.multiview.complete import DERIVED, complete, residuals_px
from pose.multiview.observations import Observed, observe
from pose.multiview.residuals import Weights
from pose.multiview.sides import swapped_sides, with_sides
from pose.multiview.types import HIPS, POINTS, SHOULDERS, Track, ViewCamera
from pose.types import F64, Flags

WINDOW = 96  # instants
MARGIN = 12  # at each end of a window that only give it context
WEIGHTS = Weights(limb=1.0)
RADIUS_68 = 1.878  # standard deviations of an axis: the radius that holds 68.27 % of a three-dimensional normal
INFLATION = 1.5  # of sigma: 2D errors last for many frames, and the solver takes them for independent
LIFTED_SHARE = 0.7  # of the lifter's sigma that joints have which only the lifter places in the trunk


@dataclass(frozen=True, slots=True)
class Fused:
    """One person at K instants.

    instants: (K,) s, common time. joints: (K, 17, 3) m in the world. sigma: (K, 17) mm, the radius that holds the true
    joint with probability 0.68, of the cameras as they are. observed: (C, K, 17), which cameras saw each joint.
    residual: (C, K) px, median over joints, NaN where a camera does not see the person. present: (K,), whether any
    camera tracks the person.
    """

    instants: F64
    joints: F64
    sigma: F64
    observed: Flags
    residual: F64
    present: Flags


def fuse(
    tracks: Mapping[int, Track], cameras: Sequence[ViewCamera], instants: F64, bones: F64, scale: float = 1.0
) -> Iterator[Fused]:
    """The person of `tracks` (by camera) at even instants (K,) s, piece by piece.

    bones: (B,) m. scale: by which the lifter's bodies are made larger.
    """
    step = float(instants[1] - instants[0])
    start: F64 | None = None
    count = WINDOW - 2 * MARGIN
    for first in range(0, len(instants), count):
        last = min(first + count, len(instants))
        low, high = max(first - MARGIN, 0), min(last + MARGIN, len(instants))
        knots = instants[low] + step * np.arange(high - low + (high - low) % 2)
        observed = observe(tracks, cameras, knots)
        if not observed.present.any():
            continue
        points = start_points(observed, cameras, scale)
        if start is not None:
            kept = min(len(start), len(points))
            points[:kept] = start[:kept]
        body, bundle, observed = _solved(observed, list(cameras), points, bones, scale)
        start = body.points[last - low - MARGIN :] if last - low > MARGIN else None
        yield _cut(_fused(observed, list(cameras), body, bundle), first - low, last - low)


def _solved(
    observed: Observed, cameras: list[ViewCamera], points: F64, bones: F64, scale: float
) -> tuple[Body, Bundle, Observed]:
    body = Body(points, bones)
    for attempt in range(2):
        bundle = Bundle([observed], Freedom.none(len(cameras)), WEIGHTS, scale, bones_known=True)
        body = bundle.solve(cameras, [body], iterations=5, tolerance=1e-2).bodies[0]
        swapped = swapped_sides(observed, cameras, body.points)
        if attempt or not swapped.any():
            break
        observed = with_sides(observed, swapped)
    return body, bundle, observed


def _fused(observed: Observed, cameras: list[ViewCamera], body: Body, bundle: Bundle) -> Fused:
    variance = bundle.point_variances(cameras, body, 0)
    sigma = 1000 * RADIUS_68 * INFLATION * np.sqrt(np.trace(variance, axis1=-2, axis2=-1) / 3)
    pixels = np.stack([camera.project(body.points) for camera in cameras])
    off = residuals_px(observed, pixels)
    agrees = observed.seen & (np.nan_to_num(off, nan=np.inf) < 4 * np.where(observed.seen, observed.noise, 1.0))
    joints = complete(body.points, *_lifted(observed, cameras))
    spread, seen = np.zeros((len(joints), 17)), np.zeros((len(cameras), len(joints), 17), bool)
    spread[:, POINTS], seen[..., POINTS] = sigma, agrees
    trunk = [*HIPS, *SHOULDERS]
    lifted = np.min(np.where(observed.present[..., None], _sigma_of(observed), np.inf), axis=0)
    lifted = np.where(np.isfinite(lifted), lifted, 100.0)[:, None]
    spread[:, DERIVED] = np.hypot(sigma[:, trunk].mean(axis=1, keepdims=True), LIFTED_SHARE * lifted[:, 0])
    spread[:, DERIVED[0]] = sigma[:, list(HIPS)].mean(axis=1)
    seen[..., DERIVED] = agrees[..., trunk].all(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        residual = np.array([[np.nan if np.isnan(row).all() else np.nanmedian(row) for row in rows] for rows in off])
    return Fused(observed.knots, joints, spread, seen, residual, np.any(observed.present, axis=0, keepdims=True)[0])


def _lifted(observed: Observed, cameras: list[ViewCamera]) -> tuple[F64, Flags, F64]:
    """What `complete` takes: the cameras' own skeletons in world axes, whose they are, and their sigma in mm."""
    turned = np.stack([joints @ camera.rotation for joints, camera in zip(observed.joints, cameras, strict=True)])
    return turned, observed.present, observed.joint_sigma


def _sigma_of(observed: Observed) -> F64:
    """(C, K, 1) mm, of the joints that only the lifter places."""
    sigma: F64 = observed.joint_sigma[..., DERIVED].mean(axis=-1, keepdims=True)
    return sigma


def _cut(fused: Fused, first: int, last: int) -> Fused:
    rows = slice(first, last)
    parts = fused.instants[rows], fused.joints[rows], fused.sigma[rows], fused.observed[:, rows]
    return Fused(*parts, fused.residual[:, rows], fused.present[rows])
