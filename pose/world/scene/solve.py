"""Sampling of the posterior of a scene: sequential Monte Carlo from many starts.

Candidates are drawn from a wide distribution. The likelihood is raised from 0 to 1 in steps (tempering), with
resampling and random-walk moves at each step (P. Del Moral et al., J. R. Stat. Soc. B 68, 2006). Several solutions
therefore survive where the evidence allows several, and the spread of the candidates is the uncertainty.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pose.structures.types import F64
from pose.world.scene import model
from pose.world.scene.model import FOCAL, PITCH, ROLL, SceneModel
from pose.world.scene.types import PersonEvidence
from pose.world.size import PersonSize

_CANDIDATES = 400
_MOVES = 3  # random-walk moves after each step
_MIN_EFFECTIVE = 0.5  # fraction of the candidates that stay effective in a step
_START_SIGMA = np.radians(20.0)  # of the vertical about the mean direction of bodies
_MAX_STEPS = 40
_SIZED = 100  # candidates that give the uncertainty of sizes
_NEWTON_STEPS, _DERIVATIVE_STEP = 20, 0.01  # steps at most, and step of numerical derivatives in standard deviations
_LINE_SEARCH = 0.5 ** np.arange(8)
_MIN_FOCAL_SIGMAS = 1.5  # smallest change of the focal length that is applied, in standard deviations


@dataclass(frozen=True, slots=True)
class SolvedScene:
    """The solved scene."""

    up: F64  # (3,) unit vector against gravity
    up_sigma: float  # rad, about each of two horizontal axes
    focal: float  # ratio of the focal length to the assumed one
    focal_sigma: float  # of its logarithm
    camera_height: float  # m above the floor
    people: tuple[PersonSize, ...]

    @property
    def focal_differs(self) -> bool:
        """Whether the assumed focal length is unlikely."""
        return abs(math.log(self.focal)) > _MIN_FOCAL_SIGMAS * self.focal_sigma > 0


def solve(
    people: Sequence[PersonEvidence], focal_sigma: float = model.FOCAL_SIGMA, up: F64 | None = None, seed: int = 0
) -> SolvedScene:
    """Estimate a scene from the evidence of its people.

    Args:
        people: Evidence of each person, at the lifted size.
        focal_sigma: Standard deviation of the logarithm of the assumed focal length; 0 if the intrinsics are known.
        up: (3,) vertical, if it is known.
        seed: Seed of the candidates; the same evidence gives the same result.
    """
    scene = SceneModel(people, focal_sigma, up)
    rng = np.random.default_rng(seed)
    candidates = _sampled(scene, _starts(scene, rng), rng)
    ups = scene.ups(candidates)
    mean = ups.mean(axis=0)
    best = mean / np.linalg.norm(mean)
    angles = np.arccos(np.clip(ups @ best, -1, 1))
    centre = candidates.mean(axis=0)
    if up is None:
        centre[PITCH], centre[ROLL] = np.arcsin(np.clip(best[2], -1, 1)), np.arctan2(-best[0], -best[1])
    centre = _refined(scene, centre, candidates.std(axis=0))
    best = scene.ups(centre[None])[0]
    return SolvedScene(
        best, 0.0 if up is not None else math.hypot(float(np.sqrt((angles**2).mean() / 2)), model.COMMON_TILT_SIGMA),
        math.exp(centre[FOCAL]),
        math.hypot(float(candidates[:, FOCAL].std()), model.COMMON_FOCAL_SIGMA) if focal_sigma else 0.0,
        float(model.camera_heights(centre[None])[0]), _sizes(scene, centre, candidates, rng),
    )  # fmt: skip


def _refined(scene: SceneModel, centre: F64, sigmas: F64) -> F64:
    """Return the most probable candidate near `centre` (5,), by Newton's method with numerical derivatives."""
    used = np.flatnonzero(sigmas > 1e-9)
    steps = np.zeros((len(used), model.SIZE))
    steps[np.arange(len(used)), used] = _DERIVATIVE_STEP * sigmas[used]
    value = float(scene.log_posterior(centre[None])[0])
    pairs = [(i, j) for i in range(len(used)) for j in range(i)]
    for _ in range(_NEWTON_STEPS):
        mixed = np.array([steps[i] + steps[j] for i, j in pairs]).reshape(-1, model.SIZE)
        around = scene.log_posterior(centre + np.concatenate([steps, -steps, mixed, -mixed]))
        up, down, both, neither = np.split(around, np.cumsum([len(used), len(used), len(pairs)]))
        gradient, hessian = (up - down) / 2, np.diag(up + down - 2 * value)
        for (i, j), plus, minus in zip(pairs, both, neither, strict=True):
            second = (plus + minus - 2 * value - hessian[i, i] - hessian[j, j]) / 2
            hessian[i, j] = hessian[j, i] = second
        values, axes = np.linalg.eigh(-hessian)
        change = axes @ (axes.T @ gradient / np.maximum(np.abs(values), _DERIVATIVE_STEP**2 / 4)) @ steps
        tried = centre + np.outer(_LINE_SEARCH, change)
        found = scene.log_posterior(tried)
        best = int(found.argmax())
        if found[best] <= value + 1e-9:
            break
        centre, value = tried[best], float(found[best])
    return centre


def _sizes(scene: SceneModel, centre: F64, candidates: F64, rng: np.random.Generator) -> tuple[PersonSize, ...]:
    """Return the sizes of people at the central candidate, with intervals from all candidates."""
    here = scene.sizes(centre[None], scene.ups(centre[None]))
    candidates = candidates[:: len(candidates) // _SIZED]
    there = scene.sizes(candidates, scene.ups(candidates))
    on_floor = np.array([part.on_floor for part in scene.components])
    result = []
    for n in range(len(scene.people)):
        share = _normalised(there.log_weights[:, n])
        part = (share.cumsum(axis=1) > rng.random((len(share), 1))).argmax(axis=1)
        rows = np.arange(len(share))
        drawn = there.log_heights[rows, n, part]
        drawn = drawn + there.log_height_sigmas[rows, n, part] * rng.standard_normal(len(share))
        at = _normalised(here.log_weights[:1, n])[0]
        low, high = np.exp(np.percentile(drawn, [16, 84])).tolist()
        best = int(at.argmax())
        height, distance = math.exp(here.log_heights[0, n, best]), 1 / float(here.inverse[0, n, best])
        before = max(scene.components, key=lambda component: component.log_weight[n])
        alone = math.exp(before.log_height[n])
        far = np.log(there.inverse[rows, n, part])
        far = far + there.inverse_sigmas[rows, n, part] / there.inverse[rows, n, part] * rng.standard_normal(len(far))
        distance_sigma = float(np.ptp(np.percentile(far, [16, 84]))) / 2
        result.append(
            PersonSize(height, (low, high), distance, distance_sigma, alone, float((share @ on_floor).mean()))
        )
    return tuple(result)


def _normalised(logs: F64) -> F64:
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _starts(scene: SceneModel, rng: np.random.Generator) -> F64:
    """Draw the first candidates: verticals about the mean body, the rest from the prior."""
    x, y, z = scene.start.tolist()
    pitch, roll = math.asin(max(-1.0, min(1.0, z))), math.atan2(-x, -y)
    centre = np.array([pitch, roll, 0.0, model.HEIGHT_MEAN, model.BIAS_MEAN])
    return np.asarray(centre + _start_sigmas(scene) * rng.standard_normal((_CANDIDATES, model.SIZE)))


def _start_sigmas(scene: SceneModel) -> F64:
    tilt = _START_SIGMA if scene.up is None else 0.0
    return np.array([tilt, tilt, 1.2 * scene.focal_sigma, 1.2 * model.HEIGHT_SIGMA, 1.2 * model.BIAS_SIGMA])


def _sampled(scene: SceneModel, candidates: F64, rng: np.random.Generator) -> F64:
    """Move candidates from their first distribution to the posterior."""
    sigmas = _start_sigmas(scene)
    used = sigmas > 0
    centre = candidates.mean(axis=0)

    def first(rows: F64) -> F64:
        return np.asarray(-0.5 * (((rows - centre)[:, used] / sigmas[used]) ** 2).sum(axis=1))

    share, before, after = 0.0, first(candidates), scene.log_posterior(candidates)
    for _ in range(_MAX_STEPS):
        step = _step(after - before, 1 - share)
        share += step
        chosen = _resampled(step * (after - before), rng)
        candidates, before, after = candidates[chosen], before[chosen], after[chosen]
        for move in range(_MOVES):
            spread = np.cov(candidates[:, used].T) + 1e-12 * np.eye(int(used.sum()))
            factor = (0.9, 0.5, 0.25)[move % 3]
            walk = np.zeros_like(candidates)
            walk[:, used] = factor * rng.multivariate_normal(
                np.zeros(int(used.sum())), spread, len(candidates), method="cholesky"
            )
            proposed = candidates + walk
            new_before, new_after = first(proposed), scene.log_posterior(proposed)
            gain = share * (new_after - after) + (1 - share) * (new_before - before)
            taken = np.log(rng.random(len(candidates))) < gain
            candidates = np.where(taken[:, None], proposed, candidates)
            before, after = np.where(taken, new_before, before), np.where(taken, new_after, after)
        if share >= 1:
            break
    return candidates


def _step(ratio: F64, most: float) -> float:
    """Return the largest step of the temperature that keeps enough candidates effective."""

    def effective(step: float) -> float:
        weights = np.exp(step * (ratio - ratio.max()))
        return float(weights.sum() ** 2 / (weights**2).sum() / len(ratio))

    if effective(most) > _MIN_EFFECTIVE:
        return most
    low, high = 0.0, most
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if effective(middle) > _MIN_EFFECTIVE else (low, middle)
    return max(low, 1e-3)


def _resampled(logs: F64, rng: np.random.Generator) -> F64:
    """Return row numbers (B,) drawn in proportion to exp(logs), with systematic resampling."""
    weights = np.exp(logs - logs.max())
    points = (np.arange(len(logs)) + rng.random()) / len(logs)
    return np.searchsorted(np.cumsum(weights) / weights.sum(), points).clip(max=len(logs) - 1)
