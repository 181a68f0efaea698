"""Sampling of the posterior of a scene: sequential Monte Carlo from many starts.

Candidates are drawn from a wide distribution. The likelihood is raised from 0 to 1 in steps (tempering), with
resampling and random-walk moves at each step (P. Del Moral et al., J. R. Stat. Soc. B 68, 2006). Several solutions
therefore survive where the evidence allows several, and the spread of the candidates is the uncertainty.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pose.structures.types import F64
from pose.world.height import PersonSize
from pose.world.scene import model
from pose.world.scene.lines import NO_LINES, LineEvidence
from pose.world.scene.model import FOCAL, HEADING, HEIGHT, PITCH, ROLL, PersonEvidence, SceneModel

CANDIDATES = 400
_MOVES = 3  # random-walk moves after each step
_MIN_EFFECTIVE = 0.5  # fraction of the candidates that stay effective in a step
_START_SIGMA = np.radians(20.0)  # of the vertical about the mean direction of bodies
_MAX_SKEW = 0.5  # largest distance in standard deviations between median and maximum of one mode
_MIN_SECOND = 0.15  # smallest fraction of the candidates that are a second solution
_QUARTER = np.pi / 2  # rad; headings of lines repeat after a quarter turn
_MODE_RAD = np.radians(5.0)  # of verticals that belong to one solution
_MAX_STEPS = 40
_NEWTON_STEPS, _DERIVATIVE_STEP = 20, 0.01  # steps at most, and step of numerical derivatives in standard deviations
_QUANTILES = np.array([NormalDist().inv_cdf((n + 0.5) / 40) for n in range(40)])  # of the normal distribution
_LINE_SEARCH = 0.5 ** np.arange(8)
# Smallest change of the focal length that is applied: in standard deviations, and of the logarithm.
_MIN_FOCAL_SIGMAS, _MIN_FOCAL_CHANGE = 2.0, 0.02


@dataclass(frozen=True, slots=True)
class SolvedScene:
    """The solved scene."""

    up: F64  # (3,) unit vector against gravity
    up_sigma: float  # rad, about each of two horizontal axes
    focal: float  # ratio of the focal length to the assumed one
    focal_sigma: float  # of its logarithm
    camera_height: float  # m above the floor
    second_up: float  # rad, angle to the vertical of a second solution; 0 without one
    people: tuple[PersonSize, ...]

    @property
    def focal_differs(self) -> bool:
        """Whether the assumed focal length is unlikely."""
        return abs(math.log(self.focal)) > max(_MIN_FOCAL_SIGMAS * self.focal_sigma, _MIN_FOCAL_CHANGE)


def solve(
    people: Sequence[PersonEvidence],
    focal_sigma: float = model.FOCAL_SIGMA,
    up: F64 | None = None,
    lines: LineEvidence = NO_LINES,
    seed: int = 0,
    candidates: int = CANDIDATES,
) -> SolvedScene:
    """Estimate a scene from the evidence of its people at the lifted size, and the lines of the background.

    `focal_sigma` is the standard deviation of the logarithm of the assumed focal length; 0 if it is known. `up` (3,) is
    the vertical, if known. The same evidence and `seed` give the same result. Fewer `candidates` take less time, and
    their spread is less accurate.
    """
    scene = SceneModel(people, focal_sigma, up, lines)
    rng = np.random.default_rng(seed)
    found = _sampled(scene, _starts(scene, rng, candidates), rng)
    ups = scene.ups(found)
    # The most probable of several solutions: the mean of the candidates near the best one.
    highest = found[scene.log_posterior(found).argmax()]
    near = np.linalg.norm(ups - scene.ups(highest[None]), axis=1) < _MODE_RAD
    centre, best = found[near].mean(axis=0), ups[near].mean(axis=0)
    best /= np.linalg.norm(best)
    if up is None:
        centre[PITCH], centre[ROLL] = np.arcsin(np.clip(best[2], -1, 1)), np.arctan2(-best[0], -best[1])
    sigmas = found.std(axis=0)
    centre = _refined(scene, centre, sigmas)
    # The scale has two modes if a person may be a child: its median lies between them, its maximum in one.
    median = float(np.median(found[:, HEIGHT]))
    if abs(median - centre[HEIGHT]) > _MAX_SKEW * sigmas[HEIGHT]:
        sigmas[HEIGHT], centre[HEIGHT] = 0.0, median
        centre = _refined(scene, centre, sigmas)
    best = scene.ups(centre[None])[0]
    angles = np.arccos(np.clip(ups @ best, -1, 1))
    return SolvedScene(
        best, 0.0 if up is not None else _with_common(float(np.sqrt((angles**2).mean() / 2)), model.COMMON_TILT_SIGMA),
        math.exp(centre[FOCAL]), _with_common(float(found[:, FOCAL].std()), model.COMMON_FOCAL_SIGMA),
        float(model.camera_heights(centre[None])[0]), 0.0 if up is not None else _second(scene.ups(found), best),
        _sizes(scene, centre, found, rng),
    )  # fmt: skip


def _second(ups: F64, best: F64) -> float:
    """Return the angle from `best` to the mean of the candidates of a second solution, rad; 0 without one."""
    angles = np.arccos(np.clip(ups @ best, -1, 1))
    near, between = angles < _MODE_RAD * 1.6, angles < _MODE_RAD * 3.2
    first, gap, second = near.mean(), (between & ~near).mean(), (~between).mean()
    if second < _MIN_SECOND or gap > min(first, second) / 2:  # rare, or the edge of one wide solution
        return 0.0
    other = ups[~between].sum(axis=0)
    return float(np.arccos(np.clip(other @ best / np.linalg.norm(other), -1, 1)))


def _with_common(sigma: float, common: float) -> float:
    """Return a standard deviation with the errors that all people have in common; lines, if they decide, have none."""
    return math.hypot(sigma, min(common, sigma))


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
    there = scene.sizes(candidates, scene.ups(candidates))
    on_floor = np.array([part.on_floor for part in scene.components])
    child = np.array([part.is_child for part in scene.components])
    result = []
    for n in range(len(scene.people)):
        share = _normalised(there.log_weights[:, n])
        part = (share.cumsum(axis=1) > rng.random((len(share), 1))).argmax(axis=1)
        rows = np.arange(len(share))
        drawn = there.log_heights[rows, n, part]
        drawn = drawn + there.log_height_sigmas[rows, n, part] * rng.standard_normal(len(share))
        at = _normalised(here.log_weights[:1, n])[0]
        low, high = np.exp(np.percentile(drawn, [16, 84])).tolist()
        height = math.exp(_median(at, here.log_heights[0, n], here.log_height_sigmas[0, n]))
        distance = 1 / _median(at, here.inverse[0, n], here.inverse_sigmas[0, n])
        before = max(scene.components, key=lambda component: component.log_weight[n])
        alone = math.exp(before.log_height[n])
        far = np.log(there.inverse[rows, n, part])
        far = far + there.inverse_sigmas[rows, n, part] / there.inverse[rows, n, part] * rng.standard_normal(len(far))
        distance_sigma = float(np.ptp(np.percentile(far, [16, 84]))) / 2
        chances = float((share @ child).mean()), float((share @ on_floor).mean())
        result.append(PersonSize(height, (low, high), distance, distance_sigma, alone, *chances))
    return tuple(result)


def _median(weights: F64, means: F64, sigmas: F64) -> float:
    """Return the median of a mixture of C normal distributions; between adult and child if neither is certain."""
    values = (means[:, None] + sigmas[:, None] * _QUANTILES).ravel()
    order = values.argsort()
    shares = np.repeat(weights / len(_QUANTILES), len(_QUANTILES))[order].cumsum()
    return float(np.interp(0.5, shares, values[order]))


def _normalised(logs: F64) -> F64:
    weights = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def _starts(scene: SceneModel, rng: np.random.Generator, count: int) -> F64:
    """Draw the first candidates: verticals about the mean body, the rest from the prior."""
    x, y, z = scene.start.tolist()
    pitch, roll = math.asin(max(-1.0, min(1.0, z))), math.atan2(-x, -y)
    centre = np.array([pitch, roll, 0.0, model.HEIGHT_MEAN, model.BIAS_MEAN, 0.0])
    starts = centre + _start_sigmas(scene) * rng.standard_normal((count, model.SIZE))
    if len(scene.lines):
        starts[:, HEADING] = rng.uniform(-_QUARTER / 2, _QUARTER / 2, count)
    return np.asarray(starts)


def _start_sigmas(scene: SceneModel) -> F64:
    tilt = _START_SIGMA if scene.up is None else 0.0
    heading = _QUARTER if len(scene.lines) else 0.0
    return np.array([tilt, tilt, 1.2 * scene.focal_sigma, 1.2 * model.HEIGHT_SIGMA, 1.2 * model.BIAS_SIGMA, heading])


def _sampled(scene: SceneModel, candidates: F64, rng: np.random.Generator) -> F64:
    """Move candidates from their first distribution to the posterior."""
    sigmas = _start_sigmas(scene)
    used = sigmas > 0
    centre = candidates.mean(axis=0)

    def first(rows: F64) -> F64:
        parts = (rows - centre)[:, :HEADING] / np.where(used, sigmas, 1.0)[:HEADING]
        return np.asarray(-0.5 * (parts[:, used[:HEADING]] ** 2).sum(axis=1))

    share, before, after = 0.0, first(candidates), scene.log_posterior(candidates)
    for _ in range(_MAX_STEPS):
        step = _step(after - before, 1 - share)
        share += step
        chosen = _resampled(step * (after - before), rng)
        candidates, before, after = candidates[chosen], before[chosen], after[chosen]
        if used[HEADING]:
            turns = np.exp(2j * np.pi / _QUARTER * candidates[:, HEADING])
            middle = float(np.angle(turns.mean())) * _QUARTER / (2 * np.pi)
            candidates[:, HEADING] -= _QUARTER * np.round((candidates[:, HEADING] - middle) / _QUARTER)
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
