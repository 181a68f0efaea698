"""Fusion of all cameras to the joints of one person at regular times, in windows with bounded memory.

Cameras and bone lengths are those of the calibration. Each camera is weighted by its agreement with all cameras
(`lifted.trust_of`). A joint seen by one camera lies on that camera's ray; its depth follows from bone lengths, lifters
and neighbouring times. A joint seen by no camera follows from lifters and neighbouring times. Sigma is derived from the
standard deviation of this solution.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pose.multiview.calibrate import start_points
from pose.multiview.joints import DERIVED, Problem, System, complete, residuals_px
from pose.multiview.lifted import LiftedViews, lifted_prior, lifted_views, trust_of
from pose.multiview.observations import Indices, Observed, observe
from pose.multiview.residuals import Weights
from pose.multiview.types import HIPS, POINT_NAMES, POINTS, RADIUS_68, SHOULDERS, CameraBatch, ViewCamera, ViewTrack
from pose.structures.types import F64, Flags

WINDOW = 144  # approximate number of instants in a window, including margins
MARGIN = 12  # instants at each end of a window that are solved, but not returned
WEIGHTS = Weights()
ROUNDS = (3, 2)  # Gauss-Newton steps: first plainly, then with swapped sides corrected and cameras weighted
# Factor on sigma, since 2D errors last for many frames, which the solver assumes to be independent: a part for errors
# of cameras, one for each standard deviation of the 2D's median residual; and that of a person seen by one camera.
INFLATION, INFLATION_BY_RESIDUAL, ALONE = 0.48, 0.71, 1.4
LIVE_STEPS = 2  # maximum Gauss-Newton steps of a live frame
LIVE_TOLERANCE = 0.15  # relative decrease of the cost by a step below which the solver stops
LIFTED_SHARE = 0.7  # share of the lifter's sigma for joints that only the lifter places in the trunk


@dataclass(frozen=True, slots=True)
class Fused:
    """Fused 3D joints of one person at K times."""

    instants: F64  # (K,) s, common time
    joints: F64  # (K, 17, 3) m in the world
    sigma: F64  # (K, 17) mm, the radius that contains the true joint with probability 0.68, given the cameras
    observed: Flags  # (C, K, 17), whether each camera detected the joint close to its fused position
    residual: F64  # (C, K) px, median reprojection error over joints, NaN where a camera does not see the person
    present: Flags  # (K,), whether any camera tracks the person

    def person(self, index: int) -> "Fused":
        """Return the person with an index, if the arrays hold several people in an additional axis before K."""
        parts = self.joints[index], self.sigma[index], self.observed[:, index], self.residual[:, index]
        return Fused(self.instants, *parts, self.present[index])


def fuse(
    tracks: Mapping[int, ViewTrack], cameras: Sequence[ViewCamera], instants: F64, bones: F64, scale: float = 1.0
) -> Iterator[Fused]:
    """Fuse the tracks of a person at common times (K,) s and yield the windows in which a camera has the person."""
    step, batch = float(instants[1] - instants[0]), CameraBatch.of(cameras)
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
        scene = _FusionInput.of(observed, batch, bones, scale)
        points = start_points(observed, batch, scale)
        if start is not None:
            kept = min(len(start), len(points))
            points[:kept] = start[:kept]
        solution = _solved(scene, points)
        points = solution.points
        start = points[last - low - MARGIN :] if last - low > MARGIN else None
        fused = _fused(solution.observed, batch, points, solution.system.variances(), _inflation(solution, batch))
        yield _cut(fused, first - low, last - low)


@dataclass(frozen=True, slots=True)
class Newest:
    """One person at the last instant of a short window."""

    fused: Fused  # the person at this instant
    points: F64  # (N, 3) m in the world, the triangulated points `types.POINTS`
    correction: F64  # (N, 3) m, offset of these points from the mean of the lifted points of all cameras


def fuse_newest(
    observed: Observed, cameras: CameraBatch, corrections: Sequence[F64 | None], bones: F64, scale: float = 1.0
) -> list[Newest]:
    """Fuse a short window of P people and return its last instant for each person, for live use."""
    scene = _FusionInput.of(observed, cameras, bones, scale)
    lifted_start = start_points(observed, cameras, scale)
    newest: dict[int, Newest] = {}
    continued = np.flatnonzero([correction is not None for correction in corrections])
    if len(continued):
        start = lifted_start.copy()
        start[continued] += np.stack([shift for shift in corrections if shift is not None])[:, None]
        continued_input = scene.of_people(continued)
        better, solution = _continued(continued_input, lifted_start[continued], start[continued])
        if solution is not None:
            newest |= _newest(solution, cameras, continued[better], lifted_start)
    others = np.array([person for person in range(len(corrections)) if person not in newest], np.int64)
    if len(others):
        solution = _solved(scene.of_people(others), lifted_start[others])
        newest |= _newest(solution, cameras, others, lifted_start)
    return [newest[person] for person in range(len(corrections))]


@dataclass(frozen=True, slots=True)
class _FusionInput:
    """Input of the fusion of P people; without the axis P, of one person."""

    observed: Observed
    cameras: CameraBatch
    lifted: LiftedViews
    bones: F64
    scale: float

    @classmethod
    def of(cls, observed: Observed, cameras: CameraBatch, bones: F64, scale: float) -> "_FusionInput":
        return cls(observed, cameras, lifted_views(observed, cameras, scale), bones, scale)

    def of_people(self, people: Indices) -> "_FusionInput":
        """Return the scene of some of the people."""
        if len(people) == len(self.bones):
            return self
        observed = self.observed.of_people(people)
        return _FusionInput(observed, self.cameras, self.lifted.of_people(people), self.bones[people], self.scale)

    def problem(self, observed: Observed, trust: F64) -> Problem:
        """Return the problem with corrected observations and a trust in the cameras."""
        prior = lifted_prior(observed, self.cameras, self.lifted, self.scale, WEIGHTS, trust)
        return Problem(observed, self.cameras, prior, self.bones, trust, WEIGHTS)


@dataclass(frozen=True, slots=True)
class _Solution:
    """Points (..., K, N, 3) m, the system of the last step, and the observations with corrected sides."""

    points: F64
    system: System
    observed: Observed


def _continued(scene: _FusionInput, lifted_start: F64, start: F64) -> tuple[Flags, _Solution | None]:
    """Solve from `start`; return which people (P,) have a lower cost there, and their solution or None."""
    # `start` has the lifted points (P, K, N, 3) m plus the correction of the previous frame. Costs are compared with
    # and without the trust in cameras.
    observed = with_sides(scene.observed, swapped_sides(scene.observed, scene.cameras, start))
    problem = scene.problem(observed, trust_of(observed, scene.cameras, scene.lifted, start))
    cost = problem.cost(start)
    # Far from the person all cameras disagree with `start`. Their trust is then low, and so is the cost of any error.
    trusting = replace(problem, trust=np.ones(problem.trust.shape))
    better = (cost < problem.cost(lifted_start)) & (trusting.cost(start) < trusting.cost(lifted_start))
    if not better.any():
        return better, None
    if not better.all():
        problem, start, cost = problem.of_people(np.flatnonzero(better)), start[better], cost[better]
    return better, _Solution(*problem.solved(start, LIVE_STEPS, LIVE_TOLERANCE, cost), problem.observed)


def _solved(scene: _FusionInput, points: F64) -> _Solution:
    observed, trust = scene.observed, np.ones(scene.observed.noise.shape)
    for number, steps in enumerate(ROUNDS):
        if number:
            observed = with_sides(observed, swapped_sides(observed, scene.cameras, points))
            trust = trust_of(observed, scene.cameras, scene.lifted, points)
        problem = scene.problem(observed, trust)
        points = problem.solve(points, steps)
    return _Solution(points, problem.linearised(points)[0], observed)


def _newest(solution: _Solution, cameras: CameraBatch, people: Indices, lifted_start: F64) -> dict[int, Newest]:
    """Return the last instant of each person, by index in `lifted_start`."""
    last = slice(-1, None)
    points, variances = solution.points[:, last], solution.system.variances()[:, last]
    fused = _fused(solution.observed.part(last), cameras, points, variances, _inflation(solution, cameras))
    return {
        person: Newest(fused.person(row), points[row, 0], points[row, 0] - lifted_start[person, -1])
        for row, person in enumerate(people.tolist())
    }


def _inflation(solution: _Solution, cameras: CameraBatch) -> F64:
    """Return the factor (...) on the standard deviations of each person's points, from the residuals of the 2D."""
    # 2D networks differ in accuracy by more than their scores say. Errors that last move the triangulated point, which
    # has three coordinates, so that C cameras leave 2 C - 3 of 2 C parts of their variance in the residuals.
    observed = solution.observed
    cameras_of = observed.seen.sum(axis=0)
    shared = observed.seen & (cameras_of > 1)
    off = residuals_px(observed, cameras.project(solution.points))
    relative = np.where(shared, off / np.where(shared, observed.noise, 1.0), np.nan)
    people = solution.points.shape[:-3]
    median = _medians(np.moveaxis(relative, 0, -1).reshape(*people, -1))
    seen = np.where(cameras_of > 1, cameras_of, 0).sum(axis=(-2, -1)) / np.maximum(
        (cameras_of > 1).sum(axis=(-2, -1)), 1
    )
    left = 1 - 1.5 / np.maximum(seen, 2)
    return np.where(np.isfinite(median), INFLATION + INFLATION_BY_RESIDUAL * median / np.sqrt(left), ALONE)


def _fused(observed: Observed, cameras: CameraBatch, points: F64, variances: F64, inflation: F64) -> Fused:
    sigma = 1000 * RADIUS_68 * inflation[..., None, None] * np.sqrt(variances)
    off = residuals_px(observed, cameras.project(points))
    agrees = observed.seen & (np.nan_to_num(off, nan=np.inf) < 4 * np.where(observed.seen, observed.noise, 1.0))
    joints = complete(points, cameras.to_world_axes(observed.joints), observed.present, observed.joint_sigma)
    spread, seen = np.zeros((*points.shape[:-2], 17)), np.zeros((*off.shape[:-1], 17), bool)
    spread[..., POINTS], seen[..., POINTS] = sigma, agrees
    trunk = [*HIPS, *SHOULDERS]
    lifted = np.min(np.where(observed.present[..., None], _sigma_of(observed), np.inf), axis=0)
    lifted = np.where(np.isfinite(lifted), lifted, 100.0)
    spread[..., DERIVED] = np.hypot(sigma.take(trunk, axis=-1).mean(axis=-1, keepdims=True), LIFTED_SHARE * lifted)
    spread[..., DERIVED[0]] = sigma.take(HIPS, axis=-1).mean(axis=-1)
    seen[..., DERIVED] = agrees.take(trunk, axis=-1).all(axis=-1, keepdims=True)
    present = np.any(observed.present, axis=0, keepdims=True)[0]
    return Fused(observed.knots, joints, spread, seen, _medians(off), present)


def _medians(values: F64) -> F64:
    """Return the medians (...) of the finite values of (..., N); NaN where there are none."""
    count = np.isfinite(values).sum(axis=-1, keepdims=True)
    ordered = np.sort(values, axis=-1)  # NaN is last
    middle = [np.take_along_axis(ordered, np.maximum(row, 0), axis=-1) for row in ((count - 1) // 2, count // 2)]
    medians: F64 = np.where(count > 0, 0.5 * (middle[0] + middle[1]), np.nan)[..., 0]
    return medians


def _sigma_of(observed: Observed) -> F64:
    """Return sigma (C, ..., K, 1) mm of the joints that only the lifter determines."""
    sigma: F64 = observed.joint_sigma[..., DERIVED].mean(axis=-1, keepdims=True)
    return sigma


def _cut(fused: Fused, first: int, last: int) -> Fused:
    rows = slice(first, last)
    parts = fused.instants[rows], fused.joints[rows], fused.sigma[rows], fused.observed[:, rows]
    return Fused(*parts, fused.residual[:, rows], fused.present[rows])


_LEGS, _ARMS = ("hip", "knee", "ankle"), ("shoulder", "elbow", "wrist")
LIMB_ORDERS = []  # orders of points with left and right legs, or arms, swapped
for _parts in (_LEGS, _ARMS):
    _order = np.arange(len(POINT_NAMES))
    for _part in _parts:
        _left, _right = POINT_NAMES.index(f"left_{_part}"), POINT_NAMES.index(f"right_{_part}")
        _order[[_left, _right]] = _right, _left
    LIMB_ORDERS.append(_order)
_ALL_ORDERS = np.stack([np.arange(len(POINT_NAMES)), *LIMB_ORDERS])

MIN_COST_GAIN = 3.0  # minimum improvement of the cost by swapped sides
SECONDS = 0.08  # s over which the evidence is averaged
CAUCHY = 2.0  # scale of the robust loss, in standard deviations


def swapped_sides(observed: Observed, cameras: CameraBatch, points: F64) -> Flags:
    """Return where (C, ..., K, 2) a camera's 2D of legs and arms fits better swapped; another camera must see them."""
    expected = cameras.project(points)[..., None, :, :]
    loss = _loss(observed.pixels.take(_ALL_ORDERS, axis=-2) - expected, observed.noise.take(_ALL_ORDERS, axis=-1))
    total = loss.sum(axis=-1)  # (C, ..., K, 3)
    gain = _kernel(points.shape[-3], SECONDS / observed.step) @ (total[..., :1] - total[..., 1:])
    helped = observed.present & (observed.present.sum(axis=0) >= 2)
    swapped: Flags = (gain > MIN_COST_GAIN) & helped[..., None]
    return swapped


def with_sides(observed: Observed, swapped: Flags) -> Observed:
    """Return the observations with the 2D of left and right swapped where a mask (C, ..., K, 2) is True."""
    if not swapped.any():
        return observed
    parts = {name: getattr(observed, name).copy() for name in ("pixels", "velocity", "noise")}
    for *place, limb in np.argwhere(swapped).tolist():
        for array in parts.values():
            array[tuple(place)] = array[tuple(place)][LIMB_ORDERS[limb]]
    return replace(observed, **parts)


def _kernel(count: int, width: float) -> F64:
    """Matrix (K, K) that smooths K values in time with a Gaussian of standard deviation `width` instants."""
    reach = int(np.ceil(3 * width))
    apart = np.arange(-reach, reach + 1)
    kernel = np.exp(-0.5 * (apart / max(width, 1e-3)) ** 2)
    between = np.abs(np.arange(count)[:, None] - np.arange(count))
    weights: F64 = np.where(between <= reach, kernel[np.minimum(between, reach) + reach], 0.0) / kernel.sum()
    return weights


def _loss(off: F64, noise: F64) -> F64:
    square = np.where(np.isfinite(noise), np.vecdot(off, off) * noise**-2.0, 0.0)
    loss: F64 = 0.5 * CAUCHY**2 * np.log1p(square / CAUCHY**2)
    return loss
