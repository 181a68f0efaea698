"""Joints of people over time from fixed cameras and known bone lengths, with a fast solver for all of them at once.

The cost is that of `pose.multiview.bundle`, with one prior from the lifters of all cameras, whose precision differs
along and across the rays. Each Gauss-Newton step is solved by conjugate gradients; no matrix of a frame is inverted.
The preconditioner uses the mean over time of the frames' matrices. It is diagonal in the basis of eigenvectors in time
and in space.

Pelvis, spine, thorax, neck and head are placed relative to the trunk as in the lifted poses.

Axes: C cameras, K instants, N points, B bones; leading axes `...` are people.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pose.multiview.lifted import LifterPrior
from pose.multiview.observations import Indices, Observed
from pose.multiview.residuals import BONE_RESIDUALS, BONE_SIGMA, Weights, middle_of_hips
from pose.multiview.types import HIPS, POINTS, SHOULDERS, CameraBatch
from pose.structures.alignment import best_rotation
from pose.structures.skeletons import H36M17
from pose.structures.types import F64, Flags

N = len(POINTS)
_STARTS, _ENDS = BONE_RESIDUALS.starts, BONE_RESIDUALS.ends
_INCIDENCE = np.eye(N)[:, _ENDS] - np.eye(N)[:, _STARTS]  # (N, B): 1 at the end of a bone, -1 at its start
_ABS_INCIDENCE = np.abs(_INCIDENCE)
_FLOOR = 1.0  # 1/m^2, added to every precision, so that no system is singular
COST_TOLERANCE = 1e-3  # default relative decrease of the cost below which the iteration stops
STEP_TOLERANCE = 0.1  # relative residual of the linear system of a step
_MAX_ITERATIONS = 60  # maximum iterations of conjugate gradients
_KERNEL = np.array([1, 4, 6, 4, 1]) / 16  # smooths the information over neighbouring frames


@dataclass(frozen=True, slots=True)
class System:
    """The linear systems of a Gauss-Newton step: one system for each person, with 3 K N unknown coordinates."""

    blocks: F64  # (..., K, 3 N, 3 N) 1/m^2, the matrix of each instant, without the coupling between instants
    bend: float  # weight of the squared second differences in time, 1/m^2, which make the motion smooth

    def apply(self, points: F64) -> F64:
        """Multiply each person's matrix by the coordinates `points` (..., K, 3 N) of N points at K instants."""
        out: F64 = (self.blocks @ points[..., None])[..., 0]
        out += self.bend * _bent(points)
        return out

    def solve(self, right: F64, tolerance: float) -> F64:
        """Solve each person's system iteratively for (..., K, 3 N), to a relative residual of `tolerance`."""
        count = right.shape[-2]
        values, space = np.linalg.eigh(self.blocks.mean(axis=-3))
        back = np.swapaxes(space, -1, -2)
        rates, time = _modes(count)
        gain = 1 / (np.maximum(values, _FLOOR)[..., None, :] + self.bend * rates[:, None])

        def condition(rest: F64) -> F64:
            moved: F64 = time @ (gain * (time.T @ rest @ space)) @ back
            return moved

        found, rest = np.zeros_like(right), right
        ahead = step = condition(rest)
        size, least = _product(rest, ahead), tolerance * np.sqrt(_product(right, right))
        active = np.ones(size.shape, bool)
        for _ in range(_MAX_ITERATIONS):
            across = self.apply(step)
            length = np.where(active, size / np.maximum(_product(step, across), 1e-300), 0.0)[..., None, None]
            found, rest = found + length * step, rest - length * across
            active = active & (np.sqrt(_product(rest, rest)) > least)
            if not active.any():
                break
            ahead = condition(rest)
            before, size = size, _product(rest, ahead)
            step = ahead + (size / np.maximum(before, 1e-300))[..., None, None] * step
        return found

    def variances(self) -> F64:
        """Return the approximate variances (..., K, N) m^2 of N points at K instants, as the mean of x, y and z."""
        # Only the block of every second instant is inverted, without its neighbours. The effect of smoothness is then
        # added as for a long motion with constant information (`_smoothed`).
        inverse = np.linalg.inv(self.blocks[..., ::2, :, :])
        alone = np.einsum("...nini->...n", inverse.reshape(*inverse.shape[:-2], N, 3, N, 3)) / 3
        count = self.blocks.shape[-3]
        at = np.minimum(np.arange(count) / 2, alone.shape[-2] - 1)
        low = at.astype(int)
        high = np.minimum(low + 1, alone.shape[-2] - 1)
        share = (at - low)[:, None]
        information = (1 - share) / alone[..., low, :] + share / alone[..., high, :]
        near = np.clip(np.arange(count)[:, None] + np.arange(-2, 3), 0, count - 1)
        return _smoothed(np.einsum("r,...krn->...kn", _KERNEL, information[..., near, :]), self.bend)


@dataclass(frozen=True, slots=True)
class Problem:
    """Least-squares problems of the joints of people, solved at once. People share no unknowns."""

    # Axes: C cameras, K instants, N points, B bones. Leading axes `...` are the people; there are none for a single
    # person.

    observed: Observed  # observations of the people by all cameras
    cameras: CameraBatch  # calibrated cameras; not optimised
    lifted: LifterPrior  # prior from the lifters
    bones: F64  # (..., B) m, bone lengths
    trust: F64  # (C, ..., K, N) factors on the precision of the 2D of each camera
    weights: Weights  # weights of the smoothness and of the robust loss

    def of_people(self, people: Indices) -> "Problem":
        """Return the problems of the people with the indices `people`, for a problem with one axis of people."""
        parts = self.lifted.of_people(people), self.bones[people], self.trust[:, people]
        return Problem(self.observed.of_people(people), self.cameras, *parts, self.weights)

    def solve(self, points: F64, steps: int, tolerance: float = COST_TOLERANCE) -> F64:
        """Minimise the cost of each person with Gauss-Newton steps, and return the points (..., K, N, 3) m."""
        return self.solved(points, steps, tolerance)[0]

    def solved(
        self, points: F64, steps: int, tolerance: float = COST_TOLERANCE, cost: F64 | None = None
    ) -> tuple[F64, System]:
        """Minimise like `solve`, and also return the linear systems; `cost` is that at `points`."""
        cost = self.cost(points) if cost is None else cost
        system, right = self.linearised(points)
        points, found = self._moved(points, cost, system.solve(right, STEP_TOLERANCE).reshape(points.shape))
        unfinished = found < cost * (1 - tolerance)
        if steps == 1 or not unfinished.any():
            return points, system
        if unfinished.all():
            return self.solved(points, steps - 1, tolerance, found)
        people = np.flatnonzero(unfinished)
        rest = self.of_people(people).solved(points[people], steps - 1, tolerance, found[people])
        points[people], system.blocks[people] = rest[0], rest[1].blocks
        return points, system

    def _moved(self, points: F64, cost: F64, move: F64) -> tuple[F64, F64]:
        """Return points and costs (...) after each person's longest step along `move` that decreases the cost."""
        waiting = np.ones(cost.shape, bool)
        for share in (1.0, 0.5, 0.2, 0.05):
            tried = points + share * move
            found = self.cost(tried)
            better = waiting & (found < cost)
            points, cost = np.where(better[..., None, None, None], tried, points), np.where(better, found, cost)
            waiting = waiting & ~better
            if not waiting.any():
                break
        return points, cost

    def cost(self, points: F64) -> F64:
        """Return half the sum of squared residuals of each person (...), with the Cauchy loss for reprojections."""
        square = self._squares(self.cameras.project(points) - self.observed.pixels) / self.weights.cauchy**2
        cost = (self.trust * np.log1p(square)).sum(axis=(0, -2, -1)) * self.weights.cauchy**2
        stretch = (BONE_RESIDUALS.measure(points)[0] - self.bones[..., None, :]) / BONE_SIGMA
        speed = points[..., 1:, :, :] - points[..., :-1, :, :]
        bend = speed[..., 1:, :, :] - speed[..., :-1, :, :]
        middle = middle_of_hips(points)
        off = points - middle[..., None, :] - self.lifted.points
        away = middle - self.lifted.root
        pull = (self.lifted.precision @ off[..., None])[..., 0]
        cost += (stretch**2).sum(axis=(-2, -1)) + self._bend * (bend**2).sum(axis=(-3, -2, -1))
        cost += np.vecdot(off, pull).sum(axis=(-2, -1)) + (np.vecdot(away, away) * self.lifted.root_precision).sum(
            axis=-1
        )
        half: F64 = 0.5 * cost
        return half

    def linearised(self, points: F64) -> tuple[System, F64]:
        """Return each person's linear system at points (..., K, N, 3) m, and the negative gradients (..., K, 3 N)."""
        own, right = self._reprojections(points)
        lifted, middle = self.lifted, middle_of_hips(points)
        own += lifted.precision + _FLOOR * np.eye(3)
        pull = (lifted.precision @ (points - middle[..., None, :] - lifted.points)[..., None])[..., 0]
        right -= pull
        away = 0.5 * (lifted.root_precision[..., None] * (middle - lifted.root) - pull.sum(axis=-2))
        for hip in HIPS:
            right[..., hip, :] -= away
        length, along = BONE_RESIDUALS.measure(points)
        along = along / BONE_SIGMA[:, None]
        right -= _INCIDENCE @ (((length - self.bones[..., None, :]) / BONE_SIGMA)[..., None] * along)
        bones = along[..., :, None] * along[..., None, :]
        own += (_ABS_INCIDENCE @ bones.reshape(*bones.shape[:-2], 9)).reshape(own.shape)
        flat = (*points.shape[:-2], 3 * N)
        right = right.reshape(flat)
        right -= self._bend * _bent(points.reshape(flat))
        return System(self._blocks(own, bones), self._bend), right

    def _reprojections(self, points: F64) -> tuple[F64, F64]:
        """Return the part of reprojections in diagonal blocks (..., K, N, 3, 3) and right-hand sides (..., K, N, 3)."""
        pixels, by_point = self.cameras.projected(points)
        off = pixels - self.observed.pixels
        square = self._squares(off)
        weight = self.trust * self.observed.noise**-2.0 / (1 + square / self.weights.cauchy**2)
        weighed = weight[:, None, ..., None] * by_point
        stacked = (-1, *points.shape)  # both rows of all cameras, which are summed
        own = (weighed[..., :, None] * by_point[..., None, :]).reshape(*stacked, 3).sum(axis=0)
        right = (weighed * np.moveaxis(off, -1, 1)[..., None]).reshape(stacked).sum(axis=0)
        return own, -right

    def _blocks(self, own: F64, bones: F64) -> F64:
        """Return the matrices (..., K, 3 N, 3 N) of the instants from diagonal blocks and the bones' outer products."""
        precision, root = self.lifted.precision, self.lifted.root_precision
        leading = root.shape
        own, bones, precision = (
            own.reshape(-1, N, 3, 3),
            bones.reshape(-1, len(BONE_SIGMA), 3, 3),
            precision.reshape(-1, N, 3, 3),
        )
        blocks = np.zeros((len(own), N, 3, N, 3))
        blocks[:, _STARTS, :, _ENDS] = blocks[:, _ENDS, :, _STARTS] = -np.swapaxes(bones, 0, 1)
        blocks[:, np.arange(N), :, np.arange(N)] = np.swapaxes(own, 0, 1)
        total = 0.25 * (precision.sum(axis=1) + root.reshape(-1, 1, 1) * np.eye(3))
        half = 0.5 * precision
        for hip in HIPS:
            blocks[:, hip] -= np.swapaxes(half, 1, 2)
            blocks[:, :, :, hip] -= half
            for other in HIPS:
                blocks[:, hip, :, other] += total
        return blocks.reshape(*leading, 3 * N, 3 * N)

    @property
    def _bend(self) -> float:
        return float((self.observed.step**2 * self.weights.acceleration) ** -2.0)

    def _squares(self, off: F64) -> F64:
        """Return squared distances (C, ..., K, N) in units of the variance; 0 where not detected."""
        noise = self.observed.noise
        return np.where(np.isfinite(noise), np.vecdot(off, off) * noise**-2.0, 0.0)


def _product(one: F64, other: F64) -> F64:
    """Return the scalar products (...) of points (..., K, 3 N)."""
    product: F64 = np.einsum("...kd,...kd->...", one, other)
    return product


def _bent(points: F64) -> F64:
    """Return D^T D x for points x (..., K, D) and the matrix D of second differences in time."""
    speed = points[..., 1:, :] - points[..., :-1, :]
    bend = speed[..., 1:, :] - speed[..., :-1, :]
    out = np.zeros_like(points)
    out[..., :-2, :] += bend
    out[..., 1:-1, :] -= 2 * bend
    out[..., 2:, :] += bend
    return out


@lru_cache(maxsize=4)
def _modes(count: int) -> tuple[F64, F64]:
    """Return the eigenvalues (K,) and eigenvectors (K, K) of D^T D, as in `_bent`."""
    second = np.diff(np.eye(count), n=2, axis=0)
    rates, time = np.linalg.eigh(second.T @ second)
    return np.maximum(rates, 0.0), time


_RATIOS = np.geomspace(1e-8, 1e4, 121)


@lru_cache(maxsize=1)
def _gains() -> F64:
    """Return the variance, times `bend`, in the middle of a long motion, per information / `bend` in `_RATIOS`."""
    turn = (np.arange(8192) + 0.5) * np.pi / 8192
    rates = (2 - 2 * np.cos(turn)) ** 2
    return np.array([np.mean(1 / (ratio + rates)) for ratio in _RATIOS])


def _smoothed(information: F64, bend: float) -> F64:
    """Return the variance (..., N) m^2 of points from the information at each instant and from smoothness."""
    ratio = np.clip(information / bend, _RATIOS[0], _RATIOS[-1])
    found: F64 = np.exp(np.interp(np.log(ratio), np.log(_RATIOS), np.log(_gains()))) / bend
    return found


_TRUNK = [*HIPS, *SHOULDERS]
DERIVED = [H36M17.index(name) for name in ("pelvis", "spine", "thorax", "neck", "head")]
_MEASURED = [row for row, joint in enumerate(POINTS) if joint not in DERIVED]


def complete(points: F64, joints: F64, present: Flags, sigma: F64) -> F64:
    """Complete points (..., K, N, 3) m to joints (..., K, 17, 3) m in the world, with the nearest known trunk."""
    trunk = points.take(_TRUNK, axis=-2)
    middle = trunk.mean(axis=-2, keepdims=True)
    share = np.where(present, np.maximum(sigma.take(DERIVED, axis=-1).mean(axis=-1), 1.0) ** -2.0, 0.0)
    weight = share.sum(axis=0)
    shape: F64 = (share[..., None, None] * _trunk_shapes(trunk - middle, joints, present)).sum(axis=0)
    shape /= np.where(weight > 0, weight, 1.0)[..., None, None]
    if not (weight > 0).all():
        for place in np.ndindex(weight.shape[:-1]):
            _fill(shape[place], weight[place] > 0)
    out = np.empty((*points.shape[:-2], 17, 3))
    out[..., POINTS[_MEASURED], :] = points.take(_MEASURED, axis=-2)
    out[..., DERIVED, :] = middle + shape
    return out


def _trunk_shapes(trunk: F64, joints: F64, present: Flags) -> F64:
    """Return joints `DERIVED` (C, ..., K, 5, 3) m relative to the middle of the triangulated trunk, as lifted."""
    own = joints.take(POINTS[_TRUNK], axis=-2)
    own_middle = own.mean(axis=-2, keepdims=True)
    own = own - own_middle
    covariance = np.swapaxes(trunk, -1, -2) @ own
    turn = best_rotation(np.where(present[..., None, None], covariance, np.eye(3)))
    size = np.clip(_spread(trunk) / np.maximum(_spread(own), 1e-3), 0.7, 1.4)
    shapes: F64 = (joints.take(DERIVED, axis=-2) - own_middle) @ np.swapaxes(turn, -1, -2)
    return size[..., None, None] * shapes


def _fill(shape: F64, known: Flags) -> None:
    """Copy the shape (K, 5, 3) of the nearest instant with a known (K,) shape to the others, in place."""
    if known.any():
        rows = np.flatnonzero(known)
        nearest = rows[np.abs(np.arange(len(known))[:, None] - rows).argmin(axis=1)]
        shape[~known] = shape[nearest[~known]]


def _spread(points: F64) -> F64:
    """Root of the sum of squares (...) of points (..., N, 3)."""
    spread: F64 = np.sqrt((points**2).sum(axis=(-2, -1)))
    return spread


def residuals_px(observed: Observed, pixels: F64) -> F64:
    """Return distances (C, ..., K, N) px of observed points from (C, ..., K, N, 2) px; NaN if not detected."""
    off = np.linalg.norm(observed.pixels - pixels, axis=-1)
    return np.where(observed.seen, off, np.nan)
