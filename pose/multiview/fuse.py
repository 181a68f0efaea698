"""Fusion of all cameras to the joints of one person at regular times, in windows with bounded memory.

Cameras and bone lengths are those of the calibration. Each camera is weighted by its agreement with all cameras
(`lifted.trust_of`). A joint seen by one camera lies on that camera's ray; its depth follows from bone lengths, lifters
and neighbouring times. A joint seen by no camera follows from lifters and neighbouring times. Sigma is derived from the
standard deviation of this solution.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pose.multiview.calibrate import start_points
from pose.multiview.complete import DERIVED, complete, residuals_px
from pose.multiview.joints import Problem, System
from pose.multiview.lifted import lifted_prior, trust_of
from pose.multiview.observations import Observed, observe
from pose.multiview.residuals import Weights
from pose.multiview.sides import swapped_sides, with_sides
from pose.multiview.types import HIPS, POINTS, RADIUS_68, SHOULDERS, ViewCamera, ViewTrack
from pose.types import F64, Flags

WINDOW = 144  # approximate number of instants in a window, including margins
MARGIN = 12  # instants at each end of a window that are solved, but not returned
WEIGHTS = Weights()
ROUNDS = (3, 2)  # Gauss-Newton steps: first plainly, then with swapped sides corrected and cameras weighted
INFLATION = 1.75  # factor on sigma: the solver assumes independent 2D errors, but they last for many frames
LIVE_STEPS = 2  # maximum Gauss-Newton steps of a live frame
LIVE_TOLERANCE = 0.15  # relative decrease of the cost by a step below which the solver stops
LIFTED_SHARE = 0.7  # share of the lifter's sigma for joints that only the lifter places in the trunk


@dataclass(frozen=True, slots=True)
class Fused:
    """Fused 3D joints of one person at K times.

    Attributes:
        instants: (K,) s, common time.
        joints: (K, 17, 3) m in the world.
        sigma: (K, 17) mm, the radius that contains the true joint with probability 0.68, given the cameras.
        observed: (C, K, 17), whether each camera detected the joint close to its fused position.
        residual: (C, K) px, median reprojection error over joints, NaN where a camera does not see the person.
        present: (K,), whether any camera tracks the person.
    """

    instants: F64
    joints: F64
    sigma: F64
    observed: Flags
    residual: F64
    present: Flags


def fuse(
    tracks: Mapping[int, ViewTrack], cameras: Sequence[ViewCamera], instants: F64, bones: F64, scale: float = 1.0
) -> Iterator[Fused]:
    """Fuse the tracks of a person at evenly spaced times, window by window.

    Args:
        tracks: Tracks of the person, by camera index.
        cameras: The cameras.
        instants: (K,) s, common times.
        bones: (B,) m, bone lengths.
        scale: Factor by which lifted bodies are scaled.

    Yields:
        The person in each window; windows in which no camera has the person are left out.
    """
    step = float(instants[1] - instants[0])
    start: F64 | None = None
    pieces = max(round(len(instants) / (WINDOW - 2 * MARGIN)), 1)
    count = math.ceil(len(instants) / pieces)
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
        points, system, observed = _solved(observed, list(cameras), points, bones, scale)
        start = points[last - low - MARGIN :] if last - low > MARGIN else None
        yield _cut(_fused(observed, list(cameras), points, system.variances()), first - low, last - low)


@dataclass(frozen=True, slots=True)
class Newest:
    """One person at the last instant of a short window.

    Attributes:
        fused: The person at this instant.
        points: (N, 3) m, the points of the solver.
        correction: (N, 3) m, offset of these points from the mean of the lifted points of all cameras.
    """

    fused: Fused
    points: F64
    correction: F64


def fuse_newest(
    observed: Observed, cameras: Sequence[ViewCamera], correction: F64 | None, bones: F64, scale: float = 1.0
) -> Newest:
    """Fuse a short window and return its last instant, for live use.

    Args:
        observed: The person in the window.
        cameras: The cameras.
        correction: (N, 3) m, `Newest.correction` of the previous frame with the same cameras; None if there is none.
        bones: (B,) m, bone lengths.
        scale: Factor by which lifted bodies are scaled.
    """
    views = list(cameras)
    lifted_start = start_points(observed, views, scale)
    found = None if correction is None else _continued(observed, views, lifted_start, correction, bones, scale)
    points, system, observed = found or _solved(observed, views, lifted_start, bones, scale)
    last = slice(len(points) - 1, len(points))
    fused = _fused(observed.part(last), views, points[last], system.variances()[last])
    return Newest(fused, points[-1], points[-1] - lifted_start[-1])


def _continued(
    observed: Observed, cameras: list[ViewCamera], lifted_start: F64, correction: F64, bones: F64, scale: float
) -> tuple[F64, System, Observed] | None:
    """Solve from the lifted points plus the correction of the previous frame.

    Returns:
        Points, the solver's system and the observations; None if this start has a higher cost than the lifted points.
    """
    start = lifted_start + correction
    observed = with_sides(observed, swapped_sides(observed, cameras, start))
    trust = trust_of(observed, cameras, scale, start)
    lifted = lifted_prior(observed, cameras, scale, WEIGHTS, trust)
    problem = Problem(observed, cameras, lifted, bones, trust, WEIGHTS)
    if not problem.cost(start) < problem.cost(lifted_start):
        return None
    return *problem.solved(start, LIVE_STEPS, LIVE_TOLERANCE), observed


def _solved(
    observed: Observed, cameras: list[ViewCamera], points: F64, bones: F64, scale: float
) -> tuple[F64, System, Observed]:
    trust = np.ones(observed.noise.shape)
    for number, steps in enumerate(ROUNDS):
        if number:
            observed = with_sides(observed, swapped_sides(observed, cameras, points))
            trust = trust_of(observed, cameras, scale, points)
        lifted = lifted_prior(observed, cameras, scale, WEIGHTS, trust)
        problem = Problem(observed, cameras, lifted, bones, trust, WEIGHTS)
        points = problem.solve(points, steps)
    return points, problem.linearised(points)[0], observed


def _fused(observed: Observed, cameras: list[ViewCamera], points: F64, variances: F64) -> Fused:
    sigma = 1000 * RADIUS_68 * INFLATION * np.sqrt(variances)
    pixels = np.stack([camera.project(points) for camera in cameras])
    off = residuals_px(observed, pixels)
    agrees = observed.seen & (np.nan_to_num(off, nan=np.inf) < 4 * np.where(observed.seen, observed.noise, 1.0))
    joints = complete(points, *_lifted(observed, cameras))
    spread, seen = np.zeros((len(joints), 17)), np.zeros((len(cameras), len(joints), 17), bool)
    spread[:, POINTS], seen[..., POINTS] = sigma, agrees
    trunk = [*HIPS, *SHOULDERS]
    lifted = np.min(np.where(observed.present[..., None], _sigma_of(observed), np.inf), axis=0)
    lifted = np.where(np.isfinite(lifted), lifted, 100.0)[:, None]
    spread[:, DERIVED] = np.hypot(sigma[:, trunk].mean(axis=1, keepdims=True), LIFTED_SHARE * lifted[:, 0])
    spread[:, DERIVED[0]] = sigma[:, list(HIPS)].mean(axis=1)
    seen[..., DERIVED] = agrees[..., trunk].all(axis=-1, keepdims=True)
    return Fused(
        observed.knots, joints, spread, seen, _medians(off), np.any(observed.present, axis=0, keepdims=True)[0]
    )


def _medians(values: F64) -> F64:
    """Return the medians (...) of the finite values of (..., N); NaN where there are none."""
    count = np.isfinite(values).sum(axis=-1, keepdims=True)
    ordered = np.sort(values, axis=-1)  # NaN is last
    middle = [np.take_along_axis(ordered, np.maximum(row, 0), axis=-1) for row in ((count - 1) // 2, count // 2)]
    medians: F64 = np.where(count > 0, 0.5 * (middle[0] + middle[1]), np.nan)[..., 0]
    return medians


def _lifted(observed: Observed, cameras: list[ViewCamera]) -> tuple[F64, Flags, F64]:
    """Return the arguments of `complete` that come from the lifters.

    These are the lifted joints of each camera in world axes, which cameras have the person, and sigma in mm.
    """
    turned = np.stack([joints @ camera.rotation for joints, camera in zip(observed.joints, cameras, strict=True)])
    return turned, observed.present, observed.joint_sigma


def _sigma_of(observed: Observed) -> F64:
    """Return sigma (C, K, 1) mm of the joints that only the lifter determines."""
    sigma: F64 = observed.joint_sigma[..., DERIVED].mean(axis=-1, keepdims=True)
    return sigma


def _cut(fused: Fused, first: int, last: int) -> Fused:
    rows = slice(first, last)
    parts = fused.instants[rows], fused.joints[rows], fused.sigma[rows], fused.observed[:, rows]
    return Fused(*parts, fused.residual[:, rows], fused.present[rows])
