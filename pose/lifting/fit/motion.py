"""Fit of one person's motion to the 2D keypoints of one camera: smooth corrections, and constant bone lengths.

Unknowns are the correction of every lifted joint at selected frames 0.1 s apart (the knots), and one length per bone.
Between knots, corrections are interpolated. Residuals:

- reprojection, in standard deviations of the 2D noise (`pose.lifting.fit.windows`); robust (Cauchy loss);
- bone lengths, constant over time and equal on both sides, close to those of the lifted body;
- directions of bones that sensors measure (`pose.lifting.fit.directions`), if there are any;
- the correction itself. Errors of a lifter grow along the limbs, are larger along the viewing direction than across it,
  and last for about a second. Each bone's correction is therefore an independent stationary first-order Gauss-Markov
  process, the prior of a chain (`Chain`).

The unknowns of a frame are coupled to each other by any matrix, and to those of the next one or two frames by a
multiple of the identity (a smoothness term). All frames share a few unknowns, the border. If frames are coupled to the
next two, two frames form a block, so that the chain is block tridiagonal.

Axes: K knots, N = 17 joints of Human3.6M-17, B bones, G bone lengths (left and right share one).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.lifting.fit.bones import Bones
from pose.lifting.fit.directions import BoneTarget
from pose.structures.skeletons import H36M17
from pose.structures.types import F64

_N = len(H36M17)
_PARENTS, _CHILDREN = (np.array(ends) for ends in zip(*H36M17.edges, strict=True))
_TIME_CONSTANT_S = 0.7  # time constant of the corrections, s
# Standard deviation of the correction of a joint relative to its parent, along the viewing direction, m.
_DEPTH_SIGMA_M = {
    "hip": 0.007, "knee": 0.028, "ankle": 0.032, "spine": 0.019, "thorax": 0.021, "neck": 0.018, "head": 0.011,
    "shoulder": 0.015, "elbow": 0.025, "wrist": 0.03,
}  # fmt: skip
_LATERAL_SIGMA_M = 0.025  # the same across the viewing direction, m
# Standard deviations of the pelvis: m across the viewing direction, and fraction of the distance along it.
_ROOT_LATERAL_SIGMA_M, _ROOT_DEPTH_SIGMA = 0.05, 0.05
_BONE_SIGMA_M = 0.008  # standard deviation of a bone's length from knot to knot, m
_LENGTH_SIGMA = 0.04  # standard deviation of a bone's length from the lifted length, as a fraction
_CAUCHY_SCALE = 3.0  # scale of the Cauchy loss in standard deviations of the 2D keypoints
_ITERATIONS = 5
_MIN_DEPTH_M = 0.1  # minimum depth for projection, m


def _groups() -> NDArray[np.int64]:
    """Return the index (B,) of each bone's length. The left and the right side share one length."""
    bones = {edge: index for index, edge in enumerate(H36M17.edges)}
    flip = H36M17.flip_order
    first = [min(index, bones[flip[a], flip[b]]) for (a, b), index in bones.items()]
    return np.unique(first, return_inverse=True)[1]


def _spread() -> F64:
    """Return for each axis the matrix (N, N) from bones' corrections in sigma (column 0: root) to joints' in m."""
    tree = np.zeros((_N, _N))
    for parent, child in H36M17.edges:  # parents precede their children
        tree[child] = tree[parent]
        tree[child, child] = 1
    along = np.array([0.0, *(_DEPTH_SIGMA_M[name.rsplit("_", 1)[-1]] for name in H36M17.names[1:])])
    return np.stack([tree * _LATERAL_SIGMA_M, tree * _LATERAL_SIGMA_M, tree * along])


BONES = Bones(_PARENTS, _CHILDREN, np.full(len(_PARENTS), _BONE_SIGMA_M), _groups())
_SPREAD = _spread()


@dataclass(frozen=True, slots=True)
class FitTarget:
    """Observations and lifted joints for the fit, at K selected frames (knots), with N = 17 joints."""

    times: F64  # (K,) s, times of the knots, increasing
    points: F64  # (K, N, 3) m, lifted joints in the camera frame
    pixels: F64  # (K, N, 2) px, detected joints, averaged around each knot
    noise: F64  # (K, N) px, standard deviation of each coordinate of `pixels`; inf where not detected
    matrix: F64  # (3, 3) px, camera intrinsics
    directions: BoneTarget | None = None  # measured directions of bones


def fitted(target: FitTarget, lengths: F64, fixed_lengths: bool = False) -> tuple[F64, F64]:
    """Fit corrections (K, N, 3) m of lifted joints and bone lengths (G,) by Gauss-Newton without cost increase."""
    problem = _Problem(target, lengths, fixed_lengths)
    deviations, found = np.zeros((len(target.times), _N, 3)), lengths
    cost = problem.cost(deviations, found)
    for _ in range(_ITERATIONS):
        step, change = problem.step(deviations, found)
        before, size = cost, 1.0
        while size > 0.1:
            tried = deviations + size * step, found + size * change
            cost = problem.cost(*tried)
            if cost < before:
                deviations, found = tried
                break
            size /= 2
        if not cost < before * (1 - 1e-3):
            break
    return problem.corrections(deviations), found


class _Problem:
    """Cost and normal equations of the fit for `deviations` (K, N, 3) of root and bones, in standard deviations."""

    def __init__(self, target: FitTarget, lengths: F64, fixed_lengths: bool) -> None:
        self._target, self._expected, self._fixed_lengths = target, lengths, fixed_lengths
        self._weight = np.where(np.isfinite(target.noise), target.noise, np.inf) ** -2.0
        self._focal, self._centre = target.matrix[[0, 1], [0, 1]], target.matrix[:2, 2]
        self._spread = np.repeat(_SPREAD[None], len(target.times), axis=0)
        self._spread[:, :2, :, 0] = _ROOT_LATERAL_SIGMA_M
        self._spread[:, 2, :, 0] = _ROOT_DEPTH_SIGMA * np.maximum(target.points[:, :1, 2], _MIN_DEPTH_M)
        if target.directions is not None:
            self._spread *= target.directions.spread[:, None, None, None]
        # The precision of the prior, from the correlation of successive knots.
        left = np.exp(-np.diff(target.times) / _TIME_CONSTANT_S)
        new = 1 / (1 - left**2)
        self._diagonal, self._off_diagonal = np.ones(len(target.times)), -left * new
        self._diagonal[1:] = new
        self._diagonal[:-1] += left**2 * new

    def corrections(self, deviations: F64) -> F64:
        """Return the corrections of the joints, (K, N, 3) m."""
        return np.moveaxis((self._spread @ np.moveaxis(deviations, 2, 1)[..., None])[..., 0], 1, 2)

    def cost(self, deviations: F64, lengths: F64) -> float:
        """Return half the sum of squared residuals, with a Cauchy loss of the reprojection."""
        points = self._target.points + self.corrections(deviations)
        residual = self._projected(points)[0] - self._target.pixels
        square = (residual * residual).sum(axis=-1) * self._weight
        bone_residual = (BONES.measure(points)[0] - lengths[BONES.group]) / BONES.sigma
        length_residual = (lengths - self._expected) / (_LENGTH_SIGMA * self._expected)
        prior = (deviations * self._prior(deviations)).sum()
        robust = _CAUCHY_SCALE**2 * np.log1p(square / _CAUCHY_SCALE**2).sum()
        measured = 0.0 if self._target.directions is None else self._target.directions.cost(BONES, points)
        return measured + 0.5 * float(robust + (bone_residual**2).sum() + (length_residual**2).sum() + prior)

    def step(self, deviations: F64, lengths: F64) -> tuple[F64, F64]:
        """Return the update of the moves (K, N, 3) and of the lengths (G,) m."""
        count, unknown = len(deviations), 0 if self._fixed_lengths else BONES.count
        points = self._target.points + self.corrections(deviations)
        frames, right = self._reprojection(points)
        BONES.add(frames, right, points, lengths)
        if self._target.directions is not None:
            self._target.directions.add(BONES, frames, right, points)
        cross, border, border_right = np.zeros((count, _N, 3, unknown)), np.zeros((unknown,) * 2), np.zeros(unknown)
        if unknown:
            BONES.add_lengths(cross, border, border_right, points, lengths)
            precision = (_LENGTH_SIGMA * self._expected) ** -2.0
            border[np.diag_indices(unknown)] += precision
            border_right -= precision * (lengths - self._expected)
        # From points to moves: by the chain rule with the spread of each axis.
        turned = np.swapaxes(self._spread, -1, -2)
        by_axis = frames.transpose(0, 2, 4, 1, 3)
        matrix = (turned[:, :, None] @ by_axis @ self._spread[:, None]).transpose(0, 3, 1, 4, 2)
        matrix = matrix.reshape(count, 3 * _N, 3 * _N)
        rows = np.arange(3 * _N)
        matrix[:, rows, rows] += self._diagonal[:, None]
        sides = np.concatenate([cross, right[..., None]], axis=-1).transpose(0, 2, 1, 3)
        sides = (turned @ sides).transpose(0, 2, 1, 3)
        sides[..., -1] -= self._prior(deviations)
        sides = sides.reshape(count, 3 * _N, unknown + 1)
        solution = Chain.factorise(matrix, self._off_diagonal).solve(sides)
        flat, solved = sides[..., :-1].reshape(deviations.size, unknown), solution.reshape(deviations.size, unknown + 1)
        reduced = border_right - flat.T @ solved[:, -1]
        change = np.linalg.solve(border - flat.T @ solved[:, :-1], reduced) if unknown else np.zeros(0)
        step = (solution[..., -1] - solution[..., :-1] @ change).reshape(deviations.shape)
        return step, change if unknown else np.zeros(BONES.count)

    def _prior(self, deviations: F64) -> F64:
        """Return the product of the prior's precision matrix and the moves, (K, N, 3)."""
        product = self._diagonal[:, None, None] * deviations
        product[:-1] += self._off_diagonal[:, None, None] * deviations[1:]
        product[1:] += self._off_diagonal[:, None, None] * deviations[:-1]
        return product

    def _projected(self, points: F64) -> tuple[F64, F64]:
        """Return the pixels (K, N, 2) and depths (K, N) m of points (K, N, 3) m."""
        depth = np.maximum(points[..., 2], _MIN_DEPTH_M)
        return points[..., :2] / depth[..., None] * self._focal + self._centre, depth

    def _reprojection(self, points: F64) -> tuple[F64, F64]:
        """Return the reprojection's part of the normal equations: matrices (K, N, 3, N, 3), right sides (K, N, 3)."""
        pixels, depth = self._projected(points)
        residual = pixels - self._target.pixels
        weight = self._weight / (1 + (residual * residual).sum(axis=-1) * self._weight / _CAUCHY_SCALE**2)
        slope = np.zeros((*depth.shape, 2, 3))
        slope[..., 0, 0], slope[..., 1, 1] = self._focal[0] / depth, self._focal[1] / depth
        slope[..., 2] = -(pixels - self._centre) / depth[..., None]
        weighed = np.swapaxes(slope, -1, -2) * weight[..., None, None]
        frames, every = np.zeros((*depth.shape, 3, _N, 3)), np.arange(_N)
        frames[:, every, :, every] = np.swapaxes(weighed @ slope, 0, 1)
        return frames, -(weighed @ residual[..., None])[..., 0]


@dataclass(frozen=True, slots=True)
class Chain:
    """Factorised block-tridiagonal matrix of B blocks. A block has f frames (1 or 2) of D unknowns each."""

    inverse: F64  # (B, f D, f D) inverses of the pivots, that is, of the diagonal blocks during elimination
    link: F64  # (B - 1, f, f) factors L of the coupling kron(L, identity) of each block with the next

    @classmethod
    def factorise(cls, frames: F64, next_one: F64, next_two: F64 | None = None) -> "Chain":
        """Factorise a positive definite matrix of blocks (K, D, D), coupled by factors to the next one and two."""
        blocks, link = (frames, next_one[:, None, None]) if next_two is None else _pairs(frames, next_one, next_two)
        inverse = np.empty_like(blocks)
        pivot = blocks[0]
        for block in range(len(blocks)):
            inverse[block] = np.linalg.inv(pivot)
            if block + 1 < len(blocks):
                pivot = blocks[block + 1] - _between(link[block], _grid(inverse[block], link))
        return cls(inverse, link)

    def solve(self, right: F64) -> F64:
        """Solve the factorised system for M right-hand sides (K, D, M); return M solutions (K, D, M)."""
        rows = right.reshape(len(self.inverse), -1, right.shape[-1]).copy()
        half = np.empty_like(rows)
        for block in range(len(rows)):
            if block:
                rows[block] -= _across(self.link[block - 1].T, half[block - 1])
            half[block] = self.inverse[block] @ rows[block]
        for block in range(len(rows) - 2, -1, -1):
            half[block] -= self.inverse[block] @ _across(self.link[block], half[block + 1])
        return half.reshape(right.shape)


def _pairs(frames: F64, next_one: F64, next_two: F64) -> tuple[F64, F64]:
    """Return blocks (K / 2, 2 D, 2 D) of two frames each, and their couplings (K / 2 - 1, 2, 2)."""
    blocks, size = len(frames) // 2, frames.shape[1]
    pivots = np.zeros((blocks, 2, size, 2, size))
    pivots[:, 0, :, 0], pivots[:, 1, :, 1] = frames[::2], frames[1::2]
    eye = np.arange(size)
    pivots[:, 0, eye, 1, eye] = next_one[::2, None]
    pivots[:, 1, eye, 0, eye] = next_one[::2, None]
    link = np.zeros((max(blocks - 1, 0), 2, 2))
    link[:, 0, 0], link[:, 1, 1], link[:, 1, 0] = next_two[::2], next_two[1::2], next_one[1::2]
    return pivots.reshape(blocks, 2 * size, 2 * size), link


def _grid(block: F64, link: F64) -> F64:
    """Reshape a block (f D, f D) to (f, D, f, D)."""
    count = link.shape[1]
    size = len(block) // count
    return block.reshape(count, size, count, size)


def _across(link: F64, rows: F64) -> F64:
    """Return kron(link, identity) @ rows, (f D, M)."""
    moved: F64 = (link @ rows.reshape(len(link), -1)).reshape(rows.shape)
    return moved


def _between(link: F64, grid: F64) -> F64:
    """Return kron(link, identity)^T @ grid @ kron(link, identity) for a matrix `grid` (f, D, f, D), as (f D, f D)."""
    size = grid.shape[0] * grid.shape[1]
    product: F64 = np.einsum("ai,axby,bj->ixjy", link, grid, link).reshape(size, size)
    return product
