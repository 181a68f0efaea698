"""Joints of one person over time from fixed cameras and known bone lengths, with a fast solver.

The cost is that of `pose.multiview.bundle`, with one prior from the lifters of all cameras, whose precision differs
along and across the rays. Each Gauss-Newton step is solved by conjugate gradients; no matrix of a frame is inverted.
The preconditioner uses the mean over time of the frames' matrices. It is diagonal in the basis of eigenvectors in time
and in space.

Axes: C cameras, K instants, N points, B bones.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pose.multiview import residuals as r
from pose.multiview.lifted import LifterPrior
from pose.multiview.observations import Observed
from pose.multiview.residuals import BONE_RESIDUALS, BONE_SIGMA, Weights
from pose.multiview.types import HIPS, POINTS, ViewCamera
from pose.types import F64

N = len(POINTS)
_HIPS = list(HIPS)
_STARTS, _ENDS = BONE_RESIDUALS.starts, BONE_RESIDUALS.ends
_INCIDENCE = np.eye(N)[:, _ENDS] - np.eye(N)[:, _STARTS]  # (N, B): 1 at the end of a bone, -1 at its start
_FLOOR = 1.0  # 1/m^2, added to every precision, so that no system is singular
STEP_TOLERANCE = 0.1  # relative residual of the linear system of a step
_MOST = 60  # maximum iterations of conjugate gradients
_KERNEL = np.array([1, 4, 6, 4, 1]) / 16  # smooths the information over neighbouring frames


@dataclass(frozen=True, slots=True)
class System:
    """The linear system of a Gauss-Newton step.

    Attributes:
        blocks: (K, 3 N, 3 N) 1/m^2, the matrix of each instant, without the coupling between instants.
        bend: Weight of the squared second differences in time, 1/m^2, which make the motion smooth.
    """

    blocks: F64
    bend: float

    def apply(self, points: F64) -> F64:
        """Return the product of the matrix with points (K, 3 N)."""
        out: F64 = (self.blocks @ points[..., None])[..., 0]
        out += self.bend * _bent(points)
        return out

    def solve(self, right: F64, tolerance: float) -> F64:
        """Solve for the right-hand side (K, 3 N) up to a relative residual of `tolerance`."""
        count = len(right)
        values, space = np.linalg.eigh(self.blocks.mean(axis=0))
        rates, time = _modes(count)
        gain = 1 / (np.maximum(values, _FLOOR) + self.bend * rates[:, None])

        def condition(rest: F64) -> F64:
            moved: F64 = time @ (gain * (time.T @ rest @ space)) @ space.T
            return moved

        found, rest = np.zeros_like(right), right
        ahead = step = condition(rest)
        size, least = float(np.vdot(rest, ahead)), tolerance * float(np.linalg.norm(right))
        for _ in range(_MOST):
            across = self.apply(step)
            length = size / max(float(np.vdot(step, across)), 1e-300)
            found, rest = found + length * step, rest - length * across
            if float(np.linalg.norm(rest)) <= least:
                break
            ahead = condition(rest)
            before, size = size, float(np.vdot(rest, ahead))
            step = ahead + size / max(before, 1e-300) * step
        return found

    def variances(self) -> F64:
        """Return the approximate variance (K, N) m^2 of the points per axis, averaged over the three axes.

        Only the block of every second instant is inverted, without its neighbours. The effect of smoothness is then
        added as for a long motion with constant information (`_smoothed`).
        """
        inverse = np.linalg.inv(self.blocks[::2])
        alone = np.einsum("knini->kn", inverse.reshape(-1, N, 3, N, 3)) / 3
        count = len(self.blocks)
        at = np.minimum(np.arange(count) / 2, len(alone) - 1)
        low = at.astype(int)
        high = np.minimum(low + 1, len(alone) - 1)
        share = (at - low)[:, None]
        information = (1 - share) / alone[low] + share / alone[high]
        near = np.clip(np.arange(count)[:, None] + np.arange(-2, 3), 0, count - 1)
        return _smoothed(np.einsum("r,krn->kn", _KERNEL, information[near]), self.bend)


@dataclass(frozen=True, slots=True)
class Problem:
    """Least-squares problem of the joints of one person.

    Attributes:
        observed: Observations of the person by all cameras.
        cameras: Calibrated cameras; not optimised.
        lifted: Prior from the lifters.
        bones: (B,) m, bone lengths.
        trust: (C, K, N) factors on the precision of the 2D of each camera.
        weights: Weights of the smoothness and of the robust loss.
    """

    observed: Observed
    cameras: list[ViewCamera]
    lifted: LifterPrior
    bones: F64
    trust: F64
    weights: Weights

    def solve(self, points: F64, steps: int, tolerance: float = 1e-3) -> F64:
        """Minimise the cost with Gauss-Newton steps, and return points (K, N, 3) m.

        Args:
            points: (K, N, 3) m, initial points.
            steps: Maximum number of steps, at least 1.
            tolerance: Relative decrease of the cost below which the iteration stops.
        """
        return self.solved(points, steps, tolerance)[0]

    def solved(self, points: F64, steps: int, tolerance: float = 1e-3) -> tuple[F64, System]:
        """Minimise the cost like `solve`, and also return the system of the last step. `steps` must be at least 1."""
        cost = self.cost(points)
        for _ in range(steps):
            system, right = self.linearised(points)
            move, before = system.solve(right, STEP_TOLERANCE).reshape(points.shape), cost
            for share in (1.0, 0.5, 0.2, 0.05):
                found = self.cost(points + share * move)
                if found < cost:
                    points, cost = points + share * move, found
                    break
            if not cost < before * (1 - tolerance):
                break
        return points, system

    def cost(self, points: F64) -> float:
        """Return half the sum of squared residuals, with the Cauchy loss for reprojections."""
        cost = 0.0
        for index, camera in enumerate(self.cameras):
            square = self._squares(camera.project(points) - self.observed.pixels[index], index)
            cost += (
                float((self.trust[index] * np.log1p(square / self.weights.cauchy**2)).sum()) * self.weights.cauchy**2
            )
        stretch = (BONE_RESIDUALS.measure(points)[0] - self.bones) / BONE_SIGMA
        bend = np.diff(points, n=2, axis=0)
        middle = points[:, _HIPS].mean(axis=1)
        off = points - middle[:, None] - self.lifted.points
        away = ((middle - self.lifted.root) ** 2).sum(axis=-1) * self.lifted.root_precision
        cost += float((stretch**2).sum() + self._bend * (bend**2).sum() + away.sum())
        cost += float(np.einsum("kni,knij,knj->", off, self.lifted.precision, off))
        return 0.5 * cost

    def linearised(self, points: F64) -> tuple[System, F64]:
        """Return the linear system of a Gauss-Newton step from `points` (K, N, 3) m, and its right-hand side.

        The right-hand side (K, 3 N) is the negative gradient.
        """
        count = len(points)
        blocks, right = np.zeros((count, N, 3, N, 3)), np.zeros_like(points)
        lifted, middle = self.lifted, points[:, _HIPS].mean(axis=1)
        own = lifted.precision + _FLOOR * np.eye(3)
        for index, camera in enumerate(self.cameras):
            pixels, by_seen, _ = r.projected(camera, points)
            off = pixels - self.observed.pixels[index]
            square = self._squares(off, index)
            weight = self.trust[index] * self.observed.noise[index] ** -2.0 / (1 + square / self.weights.cauchy**2)
            by_point = (by_seen.reshape(-1, 3) @ camera.rotation).reshape(by_seen.shape)
            for by_one, off_one in zip(np.moveaxis(by_point, -2, 0), np.moveaxis(off, -1, 0), strict=True):
                weighed = weight[..., None] * by_one
                own += weighed[..., :, None] * by_one[..., None, :]
                right -= weighed * off_one[..., None]
        pull = np.einsum("knij,knj->kni", lifted.precision, points - middle[:, None] - lifted.points)
        right -= pull
        away = lifted.root_precision[:, None] * (middle - lifted.root)
        right[:, _HIPS] -= 0.5 * (away - pull.sum(axis=1))[:, None]
        right -= self._bend * _bent(points)
        length, along = BONE_RESIDUALS.measure(points)
        along = along / BONE_SIGMA[:, None]
        right -= _INCIDENCE @ (((length - self.bones) / BONE_SIGMA)[..., None] * along)
        bones = along[..., :, None] * along[..., None, :]
        own += (np.abs(_INCIDENCE) @ bones.reshape(count, -1, 9)).reshape(own.shape)
        blocks[:, _STARTS, :, _ENDS] = blocks[:, _ENDS, :, _STARTS] = -np.swapaxes(bones, 0, 1)
        blocks[:, np.arange(N), :, np.arange(N)] = np.swapaxes(own, 0, 1)
        total = 0.25 * (lifted.precision.sum(axis=1) + lifted.root_precision[:, None, None] * np.eye(3))
        for hip in _HIPS:
            blocks[:, hip] -= 0.5 * np.swapaxes(lifted.precision, 1, 2)
            blocks[:, :, :, hip] -= 0.5 * lifted.precision
            for other in _HIPS:
                blocks[:, hip, :, other] += total
        return System(blocks.reshape(count, 3 * N, 3 * N), self._bend), right.reshape(count, 3 * N)

    @property
    def _bend(self) -> float:
        return float((self.observed.step**2 * self.weights.acceleration) ** -2.0)

    def _squares(self, off: F64, index: int) -> F64:
        """Return squared distances (K, N) in units of the variance; 0 where not detected."""
        noise = self.observed.noise[index]
        return np.where(np.isfinite(noise), (off * off).sum(axis=-1) * noise**-2.0, 0.0)


def _bent(points: F64) -> F64:
    """Return D^T D x for points x (K, ...) and the matrix D of second differences in time."""
    bend = np.diff(points, n=2, axis=0)
    out = np.zeros_like(points)
    out[:-2] += bend
    out[1:-1] -= 2 * bend
    out[2:] += bend
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
    """Return the variance, times `bend`, in the middle of a long motion, for each ratio in `_RATIOS`.

    A ratio is the information per instant divided by `bend`.
    """
    turn = (np.arange(8192) + 0.5) * np.pi / 8192
    rates = (2 - 2 * np.cos(turn)) ** 2
    return np.array([np.mean(1 / (ratio + rates)) for ratio in _RATIOS])


def _smoothed(information: F64, bend: float) -> F64:
    """Return the variance (K, N) m^2 of points that follows from the information at each instant and from smoothness.

    Args:
        information: (K, N) 1/m^2, information of each instant alone.
        bend: Weight of the squared second differences in time, 1/m^2.
    """
    ratio = np.clip(information / bend, _RATIOS[0], _RATIOS[-1])
    found: F64 = np.exp(np.interp(np.log(ratio), np.log(_RATIOS), np.log(_gains()))) / bend
    return found
