"""Least-squares solver of the calibration: joints over time, bone lengths and cameras.

Levenberg-Marquardt on the normal equations. For given cameras and bone lengths, only neighbouring frames of a person
are coupled (`pose.lifting.fit.motion.Chain`). The few unknowns that all frames share are solved first, with the Schur
complement. Source: B. Triggs et al., "Bundle adjustment - a modern synthesis", 2000.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pose.lifting.fit.motion import Chain
from pose.multiview import residuals as r
from pose.multiview.observations import Observed
from pose.multiview.residuals import BONE_SIGMA, BONES, Weights
from pose.multiview.types import POINTS, CameraBatch, ViewCamera
from pose.structures.types import F64, Flags

N = len(POINTS)
D = 3 * N
_HIPS = r.hip_weights()
BLOCK_S = 1.0  # s; errors of 2D keypoints farther apart than this are taken as independent


@dataclass(frozen=True, slots=True)
class BodyUnknowns:
    """Unknowns of one person in bundle adjustment."""

    points: F64  # (K, N, 3) m, points in the world at K sampled times, the knots
    bones: F64  # (B,) m, lengths of the bones listed in `residuals.BONES`


@dataclass(frozen=True, slots=True)
class Freedom:
    """Selection of the free camera parameters, and their priors."""

    # Each of C cameras has PARAMETERS = 10 parameters: rotation (3), translation (3), log focal length, k1, clock
    # offset (s) and drift.

    free: Flags  # (C, PARAMETERS), whether a parameter is free
    prior: F64  # (C, PARAMETERS) expected values of log focal length, k1
    precision: F64  # (C, PARAMETERS), inverse variances of the prior; 0 for fixed parameters


@dataclass(frozen=True, slots=True)
class RobustDeviation:
    """Standard deviations from the scatter of independent blocks, 0 where fixed or not requested."""

    spread: F64  # (C, PARAMETERS) standard deviations for many blocks
    freedom: F64  # (C, PARAMETERS) degrees of freedom, at least 0.5

    def wide(self, deviations: float) -> F64:
        """Return (C, PARAMETERS) the bounds of the t-distribution, as a share of so many standard deviations."""
        # Cornish-Fisher expansion: M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 26.7.5.
        z = deviations
        first, second = (z**2 + 1) / 4, (5 * z**4 + 16 * z**2 + 3) / 96
        wide: F64 = self.spread * (1 + first / self.freedom + second / self.freedom**2)
        return wide


@dataclass(frozen=True, slots=True)
class Solution:
    """Result of bundle adjustment; `deviation` is in the order of `Freedom`, 0 where fixed or not requested."""

    cameras: list[ViewCamera]  # the refined cameras
    bodies: list[BodyUnknowns]  # the refined bodies
    cost: float  # half the sum of squared residuals, with the robust loss
    deviation: F64  # (C, PARAMETERS) standard deviations of the free parameters of each camera
    covariance: F64  # (F, F) covariance of the F free parameters, in the order of `deviation`; empty if not requested
    robust: "RobustDeviation"  # standard deviations that allow for errors that last within a second


@dataclass(frozen=True, slots=True)
class _Terms:
    """Normal equations of one person."""

    # The unknowns are D = 3 N coordinates in each of K frames, and M that all frames share: the free camera parameters,
    # then this person's bone lengths.

    frames: F64  # (K, D, D) matrix of each frame
    right: F64  # (K, D) right-hand side of each frame
    cross: F64  # (K, D, M) part of the matrix that couples frames and shared unknowns
    border: F64  # (M, M) matrix of the shared unknowns
    border_right: F64  # (M,) right-hand side of the shared unknowns
    scores: F64  # (K, M) share of each frame in it
    shares: F64  # (K, M) share of each frame in the diagonal of `border`, for camera parameters


class BundleAdjustment:
    """Bundle adjustment of cameras and people to the observations of all cameras."""

    def __init__(
        self,
        people: Sequence[Observed],
        freedom: Freedom,
        weights: Weights | None = None,
        body_scale: float = 1.0,
    ) -> None:
        """Define the problem; `weights` None are the defaults, and lifted bodies are scaled by `body_scale`."""
        self._people, self._freedom, self._weights = people, freedom, weights or Weights()
        self._scale = body_scale
        self._free = np.flatnonzero(freedom.free)  # indices among the parameters of all cameras
        self._bones = len(BONES)  # number of unknown bone lengths of each person

    def solve(
        self,
        cameras: Sequence[ViewCamera],
        bodies: Sequence[BodyUnknowns],
        iterations: int = 20,
        tolerance: float = 1e-4,
        covariance: bool = False,
    ) -> Solution:
        """Solve from initial values until the relative decrease of the cost is below `tolerance`."""
        # The lifter's prior is rotated to the world with the initial cameras and then stays fixed.
        cameras, bodies = list(cameras), list(bodies)
        priors = [self._priors(person_observed, cameras) for person_observed in self._people]
        cost = self._cost(cameras, bodies, priors)
        damping = 1e-4
        for _ in range(iterations):
            terms = self._all_terms(bodies, priors, cameras)
            before = cost
            for _ in range(6):
                tried = self._step(terms, cameras, bodies, damping)
                new_cost = self._cost(*tried, priors)
                if new_cost < cost:
                    (cameras, bodies), cost, damping = tried, new_cost, max(damping / 8, 1e-9)
                    break
                damping *= 8
            if not cost < before * (1 - tolerance):
                break
        if not covariance:
            none = np.zeros(self._freedom.free.shape)
            return Solution(cameras, bodies, cost, none, np.zeros((0, 0)), RobustDeviation(none, none + 1))
        terms = self._all_terms(bodies, priors, cameras)
        return Solution(cameras, bodies, cost, *self._deviation(terms, cameras))

    def _priors(self, one: Observed, cameras: list[ViewCamera]) -> tuple[F64, F64, F64, F64]:
        limbs = r.prior_of(one, cameras, self._scale, self._weights)
        return (*limbs, *r.root_prior(one, CameraBatch.of(cameras), self._scale, self._weights))

    def _cost(
        self, cameras: list[ViewCamera], bodies: list[BodyUnknowns], priors: list[tuple[F64, F64, F64, F64]]
    ) -> float:
        cost = self._camera_cost(cameras)
        for person, body, prior in zip(self._people, bodies, priors, strict=True):
            for index, camera in enumerate(cameras):
                square = _squares(camera.project(body.points) - _seen(person, index, camera), person.noise[index])
                cost += 0.5 * float(self._weights.cauchy**2 * np.log1p(square / self._weights.cauchy**2).sum())
            stretch = (r.BONE_RESIDUALS.measure(body.points)[0] - body.bones) / BONE_SIGMA
            bend = np.diff(body.points, n=2, axis=0) / (person.step**2 * self._weights.acceleration)
            limbs, precision, root, root_precision = prior
            middle = _HIPS @ body.points
            off = ((body.points - middle[:, None] - limbs) ** 2).sum(axis=-1) * precision
            away = ((middle - root) ** 2).sum(axis=-1) * root_precision
            cost += 0.5 * float((stretch**2).sum() + (bend**2).sum() + off.sum() + away.sum())
        return cost

    def _all_terms(
        self, bodies: list[BodyUnknowns], priors: list[tuple[F64, F64, F64, F64]], cameras: list[ViewCamera]
    ) -> list[_Terms]:
        return [
            self._terms(person, body, prior, cameras)
            for person, (body, prior) in enumerate(zip(bodies, priors, strict=True))
        ]

    def _terms(
        self, person: int, body: BodyUnknowns, prior: tuple[F64, F64, F64, F64], cameras: list[ViewCamera]
    ) -> _Terms:
        one = self._people[person]
        count, width = len(body.points), len(self._free) + self._bones
        frames, right = np.zeros((count, N, 3, N, 3)), np.zeros((count, N, 3))
        cross, border = np.zeros((count, N, 3, width)), np.zeros((width, width))
        scores, shares = np.zeros((2, count, width))
        every = np.arange(N)
        for index, camera in enumerate(cameras):
            pixels, by_seen, seen = r.projected(camera, body.points)
            noise = one.noise[index]
            off = pixels - _seen(one, index, camera)
            square = _squares(off, noise)
            weight = noise**-2.0 / (1 + square / self._weights.cauchy**2)
            by_point = by_seen @ camera.rotation
            weighed = np.swapaxes(by_point, -1, -2) * weight[..., None, None]
            frames[:, every, :, every] += np.swapaxes(weighed @ by_point, 0, 1)
            right -= (weighed @ off[..., None])[..., 0]
            free = np.flatnonzero(self._freedom.free[index])
            if not len(free):
                continue
            columns = np.searchsorted(self._free, index * r.PARAMETERS + free)
            turn = r.by_parameters(camera, seen, pixels, by_seen, one.velocity[index], one.own[index])[..., free]
            cross[..., columns] += weighed @ turn
            border[np.ix_(columns, columns)] += np.einsum("knia,kn,knib->ab", turn, weight, turn, optimize=True)
            scores[:, columns] -= np.einsum("knia,kn,kni->ka", turn, weight, off, optimize=True)
            shares[:, columns] += np.einsum("knia,kn,knia->ka", turn, weight, turn, optimize=True)
        border_right = scores.sum(axis=0)
        scores[:, len(self._free) :] = (r.BONE_RESIDUALS.measure(body.points)[0] - body.bones) / BONE_SIGMA**2
        r.BONE_RESIDUALS.add(frames, right, body.points, body.bones)
        r.BONE_RESIDUALS.add_lengths(cross, border, border_right, body.points, body.bones)
        _add_prior(frames, right, body.points, prior)
        self._add_bend(right, one, body)
        return _Terms(
            frames.reshape(count, D, D), right.reshape(count, D), cross.reshape(count, D, width), border, border_right,
            scores, shares,
        )  # fmt: skip

    def _add_bend(self, right: F64, one: Observed, body: BodyUnknowns) -> None:
        """Add the gradient of the smoothness term to the right-hand side; `_chain` adds its matrix."""
        weight = (one.step**2 * self._weights.acceleration) ** -2.0
        bend = np.diff(body.points, n=2, axis=0) * weight
        right[:-2] -= bend
        right[1:-1] += 2 * bend
        right[2:] -= bend

    def _chain(self, terms: _Terms, person: int, damping: float) -> Chain:
        count = len(terms.frames)
        weight = (self._people[person].step ** 2 * self._weights.acceleration) ** -2.0
        diagonal, next_one, next_two = np.zeros(count), np.zeros(count - 1), np.zeros(max(count - 2, 0))
        if count > 2:
            diagonal[:-2] += weight
            diagonal[1:-1] += 4 * weight
            diagonal[2:] += weight
            next_one[:-1] -= 2 * weight
            next_one[1:] -= 2 * weight
            next_two += weight
        frames = terms.frames.copy()
        rows = np.arange(D)
        frames[:, rows, rows] += diagonal[:, None]
        frames[:, rows, rows] = frames[:, rows, rows] * (1 + damping) + 1e-6
        return Chain.factorise(frames, next_one, next_two)

    def _reduced(self, terms: list[_Terms], cameras: list[ViewCamera], damping: float) -> tuple[F64, F64, list[F64]]:
        """Return the Schur complement over free camera parameters and bones, and each person's frame solutions."""
        # The right-hand sides of the solutions (K, D, M + 1) are the columns of `_Terms.cross`, and `_Terms.right`.
        width = len(self._free)
        total = width + self._bones * len(terms)
        matrix, right = np.zeros((total, total)), np.zeros(total)
        solved = []
        for person, term in enumerate(terms):
            columns = self._columns(person)
            sides = np.concatenate([term.cross, term.right[..., None]], axis=-1)
            answer = self._chain(term, person, damping).solve(sides)
            solved.append(answer)
            matrix[np.ix_(columns, columns)] += term.border - np.einsum(
                "kda,kdb->ab", term.cross, answer[..., :-1], optimize=True
            )
            right[columns] += term.border_right - np.einsum("kda,kd->a", term.cross, answer[..., -1], optimize=True)
        rows = np.arange(width)
        precision = self._freedom.precision.ravel()[self._free]
        matrix[rows, rows] += precision
        right[rows] -= precision * self._off_prior(cameras).ravel()[self._free]
        return matrix, right, solved

    def _columns(self, person: int) -> NDArray[np.int64]:
        """Return the indices of the free parameters and of a person's bones in the Schur complement."""
        width = len(self._free)
        return np.append(np.arange(width), width + person * self._bones + np.arange(self._bones))

    def _step(
        self, terms: list[_Terms], cameras: list[ViewCamera], bodies: list[BodyUnknowns], damping: float
    ) -> tuple[list[ViewCamera], list[BodyUnknowns]]:
        matrix, right, solved = self._reduced(terms, cameras, damping)
        rows = np.arange(len(matrix))
        matrix[rows, rows] = matrix[rows, rows] * (1 + damping) + 1e-9
        shared = np.linalg.solve(matrix, right)
        move = np.zeros(self._freedom.free.size)
        move[self._free] = shared[: len(self._free)]
        moved = [
            _moved(camera, camera_step)
            for camera, camera_step in zip(cameras, move.reshape(self._freedom.free.shape), strict=True)
        ]
        changed = []
        for person, (body, answer) in enumerate(zip(bodies, solved, strict=True)):
            person_step = shared[self._columns(person)]
            points = body.points + (answer[..., -1] - answer[..., :-1] @ person_step).reshape(body.points.shape)
            changed.append(BodyUnknowns(points, body.bones + person_step[len(self._free) :]))
        return moved, changed

    def _deviation(self, terms: list[_Terms], cameras: list[ViewCamera]) -> tuple[F64, F64, RobustDeviation]:
        matrix, _, _ = self._reduced(terms, cameras, 0.0)
        rows, count = np.arange(len(matrix)), len(self._free)
        matrix[rows, rows] += 1e-9
        inverse = np.asarray(np.linalg.pinv(matrix, hermitian=True), np.float64)
        covariance = inverse[:count, :count]
        out, spread, freedom = np.zeros((3, *self._freedom.free.shape))
        out[self._freedom.free] = np.sqrt(np.maximum(np.diag(covariance), 0))
        spread[self._freedom.free], freedom[self._freedom.free] = self._robust(terms, inverse[:count])
        return out, covariance, RobustDeviation(spread, np.maximum(freedom, 0.5))

    def _robust(self, terms: list[_Terms], inverse: F64) -> tuple[F64, F64]:
        """Return standard deviations (F,) of the free camera parameters from independent blocks, and the freedom."""
        # The sandwich estimator: P. J. Huber, "The behavior of maximum likelihood estimates under nonstandard
        # conditions", 1967. A block is one person during `BLOCK_S`; its weight is its share of the information.
        total = inverse.shape[1]
        blocks, shares = [], []
        for person, term in enumerate(terms):
            number = ((self._people[person].knots - self._people[person].knots[0]) / BLOCK_S).astype(int)
            for block in range(number[-1] + 1):
                score, share = np.zeros((2, total))
                score[self._columns(person)] = term.scores[number == block].sum(axis=0)
                share[self._columns(person)] = term.shares[number == block].sum(axis=0)
                blocks.append(score)
                shares.append(share[: len(inverse)])
        spread = np.sqrt(((inverse @ np.array(blocks).T) ** 2).sum(axis=1))
        weight = np.array(shares)
        effective = weight.sum(axis=0) ** 2 / np.maximum((weight**2).sum(axis=0), 1e-300)
        return spread, effective - 1

    def _camera_cost(self, cameras: list[ViewCamera]) -> float:
        off = self._off_prior(cameras)
        return 0.5 * float((off**2 * self._freedom.precision).sum())

    def _off_prior(self, cameras: list[ViewCamera]) -> F64:
        values = np.zeros(self._freedom.free.shape)
        for row, camera in zip(values, cameras, strict=True):
            row[r.FOCAL], row[r.RADIAL] = np.log(camera.focal), camera.lens.coefficients[0]
            row[r.OFFSET], row[r.DRIFT] = camera.offset, camera.drift
        return np.where(self._freedom.precision > 0, values - self._freedom.prior, 0.0)


def start_body(points: F64) -> BodyUnknowns:
    """Return an initial body with points (K, N, 3) m in the world and their median bone lengths."""
    return BodyUnknowns(points, np.median(r.BONE_RESIDUALS.measure(points)[0], axis=0))


def _seen(one: Observed, index: int, camera: ViewCamera) -> F64:
    """Return a camera's observations (K, N, 2) px, corrected to first order for clock changes since `observe`."""
    moved = camera.own_time(one.knots) - one.own[index]
    seen: F64 = one.pixels[index] + one.velocity[index] * moved[:, None, None]
    return seen


def _squares(off: F64, noise: F64) -> F64:
    """Return squared distances (K, N) in units of the variance; 0 where not detected."""
    return np.where(np.isfinite(noise), (off * off).sum(axis=-1) * noise**-2.0, 0.0)


def _add_prior(frames: F64, right: F64, points: F64, prior: tuple[F64, F64, F64, F64]) -> None:
    """Add the lifter's prior to the normal equations (K, N, 3, N, 3) and (K, N, 3), in place."""
    limbs, precision, root, root_precision = prior
    middle = _HIPS @ points
    shape = np.eye(N) - _HIPS  # (N, N): maps points to points relative to the hips
    matrix = np.einsum("na,kn,nb->kab", shape, precision, shape, optimize=True)
    matrix += root_precision[:, None, None] * np.outer(_HIPS, _HIPS)
    for axis in range(3):
        frames[:, :, axis, :, axis] += matrix
    off = (points - middle[:, None] - limbs) * precision[..., None]
    right -= np.einsum("na,knc->kac", shape, off)
    right -= _HIPS[:, None] * ((middle - root) * root_precision[:, None])[:, None]


def _moved(camera: ViewCamera, move: F64) -> ViewCamera:
    return replace(
        camera,
        rotation=rotation_matrix(move[r.ROTATION]) @ camera.rotation,
        translation=camera.translation + move[r.TRANSLATION],
        focal=camera.focal * float(np.exp(np.clip(move[r.FOCAL], -0.5, 0.5))),
        lens=camera.lens.moved(float(move[r.RADIAL])),
        offset=camera.offset + float(move[r.OFFSET]),
        drift=camera.drift + float(move[r.DRIFT]),
    )


def rotation_matrix(vector: F64) -> F64:
    """Return the rotation matrix (3, 3) of a rotation vector (3,) in radians (Rodrigues' formula)."""
    angle = float(np.linalg.norm(vector))
    if angle < 1e-12:
        return np.eye(3)
    x, y, z = vector / angle
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    turned: F64 = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    return turned
