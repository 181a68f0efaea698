"""Joint estimate of body sizes, floor and vertical.

A single camera cannot observe scale: a near child and a far adult give the same image. The lifter estimates the height
of an adult; this is the prior for a person, unless the proportions are those of a child. In addition, people mostly
stand on one floor: a height that is too large also places the person too far away and too low. The posterior of every
person's scale, of the floor's height below the camera and of the error of the vertical is evaluated on a grid:

- The prior of the log scale is a mixture of an adult and a child, weighted by the proportions that the lifter found.
  The prior for the estimate rarely takes an adult for a child, which would be the larger error; that for the
  uncertainty is wider.
- The likelihood is high if standing feet are on the floor. With a small probability, they are on an object above it, or
  at an arbitrary height.
- The prior of the vertical is normal, with the uncertainty of its estimate.

The floor is therefore the lowest level with standing feet. A single person keeps the prior.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pose.structures.skeletons import H36M17
from pose.structures.types import F64
from pose.world.rules import RULES, SizePrior, SizeRules

_U = np.linspace(-0.9, 0.6, 76)  # log scales of the grid, including 0
_STEP = 0.02  # spacing of the grid
_WIDTHS = np.linspace(0, 1.5, 301)  # half widths of intervals that are tried
_STARTS = 64  # positions of intervals that are tried
_WITHIN_SIGMA = math.erf(math.sqrt(0.5))  # probability within one standard deviation of a normal distribution, 68 %
_LEVELS = 160  # floor heights that are tried
_TILTS = (9, 5)  # numbers of errors of the vertical that are tried, about x and about z
_MAX_TILT_SIGMAS = 2.5  # largest of these errors, in standard deviations

_BONES = {H36M17.names[child]: bone for bone, (_, child) in enumerate(H36M17.edges)}
_LEG = [_BONES["left_knee"], _BONES["left_ankle"]]
_TRUNK = [_BONES["spine"], _BONES["thorax"]]
_HEAD = [_BONES["neck"], _BONES["head"]]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Measurements of one person."""

    bones: F64  # (16,) m, bone lengths as lifted
    height: float  # body height as lifted, or as given, m
    height_given: bool  # whether the height was given; the scale is then 1
    feet: F64 | None  # (3,) m, position of the standing feet as lifted, in world axes with the camera at 0


@dataclass(frozen=True, slots=True)
class Size:
    """Estimated size of one person."""

    scale: float  # estimated size divided by the lifted size
    sigma: float  # uncertainty of the logarithm of `scale`: an interval of +- sigma holds 68 % of the posterior
    on_floor: float  # probability that the person stands on the common floor
    scale_alone: float  # scale of the person estimated without the other people
    # Distances from the logarithm of `scale` down and up to the ends of the shortest interval that holds 68 %.
    interval_offsets: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of all people."""

    people: Mapping[int, Size]  # size of each person, by track id
    floor: float | None  # height of the common floor along the corrected vertical, m; None without standing feet
    tilt: tuple[float, float]  # (2,) rad, rotation of the vertical about x and z that gives a common floor


def child_probability(bones: F64, height: float, size_prior: SizePrior, rules: SizeRules = RULES.size) -> float:
    """Return the probability that a person is a child, by a logistic regression of lifted lengths."""
    leg, trunk, head = (float(bones[bone_rows].sum()) for bone_rows in (_LEG, _TRUNK, _HEAD))
    total = leg + trunk + head
    has_lengths = min(leg, head) > 0
    shares = [math.log(leg / total), math.log(head / total)] if has_lengths else rules.adult_log_means[:2]
    values = np.array([*shares, math.log(max(height, 1e-3))])
    apart = np.clip((values - rules.adult_log_means) / rules.adult_log_sigmas, -4, 4)
    return 1 / (1 + math.exp(-size_prior.child_log_odds - float(apart @ size_prior.child_slopes)))


def prior(one: Evidence, size_prior: SizePrior, rules: SizeRules = RULES.size) -> F64:
    """Return the prior (2, U) of one person alone, as adult and as child, at the U log scales that are searched."""
    if one.height_given:
        return np.stack([np.abs(_U) < 1e-9, np.zeros(len(_U), bool)]).astype(np.float64)
    share = child_probability(one.bones, one.height, size_prior, rules)
    log_height = math.log(max(one.height, 1e-3))
    usual = np.clip(log_height, *rules.adult_log_heights) - log_height
    adult = np.exp(-0.5 * ((_U - usual) / size_prior.adult_log_sigma) ** 2)
    child = np.exp(-0.5 * ((_U - size_prior.child_log_scale) / size_prior.child_log_sigma) ** 2)
    return np.stack([(1 - share) * adult / adult.sum(), share * child / child.sum()])


def find_sizes(people: Mapping[int, Evidence], tilt_sigma: float, rules: SizeRules = RULES.size) -> Sizes:
    """Estimate the scales of people, the floor and the error of the vertical."""
    # First, the posterior of floor and vertical is computed, with each person as adult or child. Each person is then
    # classified as the more probable of the two. With these classes, the most probable floor and the scales on it are
    # computed. The uncertainty of the scales comes from the first step, with the wider prior `rules.uncertainty`.
    priors = {number: prior(person, rules.estimate, rules) for number, person in people.items()}
    standing = {number: person.feet for number, person in people.items() if person.feet is not None}
    wide_prior = {number: prior(person, rules.uncertainty, rules).sum(axis=0) for number, person in people.items()}
    class_posterior = {n: chance[int(chance.sum(axis=1).argmax())] for n, chance in priors.items()}
    if len(standing) < 2:  # no other person to compare with
        return Sizes(
            {n: _size(class_posterior[n], wide_prior[n], 1.0, class_posterior[n]) for n in people}, None, (0.0, 0.0)
        )
    solo_posterior, class_prior = dict(class_posterior), {n: chance.sum(axis=0) for n, chance in priors.items()}
    grid = _Grid(standing, class_prior, tilt_sigma, rules)
    estimated, spread = grid.posteriors(class_prior, wide_prior)
    for n in standing:
        scale_likelihood, _ = grid.feet_likelihood(n)
        class_posterior[n] = priors[n][int((priors[n] @ estimated.scale_likelihood(n, scale_likelihood)).argmax())]
        wide_prior[n] = wide_prior[n] * spread.scale_likelihood(n, scale_likelihood)
    (grid_posterior,) = grid.posteriors(class_posterior)
    posterior = grid_posterior.probability
    best = int(posterior.sum(axis=0).argmax())
    floor_posterior = np.zeros_like(posterior)
    floor_posterior[:, best] = posterior[:, best] / posterior[:, best].sum()
    sizes = {}
    for n in people:
        chance, on_floor, factor = class_posterior[n], 1.0, 1.0
        if n in standing:
            scale_likelihood, floor_part = (
                _Posterior(floor_posterior, grid_posterior.marginals).scale_likelihood(n, feet_part)
                for feet_part in grid.feet_likelihood(n)
            )
            chance, on_floor, factor = (
                class_posterior[n] * scale_likelihood,
                float(class_posterior[n] @ floor_part),
                rules.group_sigma_factor,
            )
        sizes[n] = _size(chance, wide_prior[n], on_floor, solo_posterior[n], factor)
    tilt = float(floor_posterior[:, best] @ grid.about_x), float(floor_posterior[:, best] @ grid.about_z)
    return Sizes(sizes, float(grid.levels[best]), tilt)


class _Grid:
    """Grid of D errors of the vertical and H floor heights."""

    def __init__(self, feet: Mapping[int, F64], priors: Mapping[int, F64], tilt_sigma: float, rules: SizeRules) -> None:
        self.about_x, self.about_z, self._weight = _tilts(tilt_sigma)
        self._heights = {n: at[1] + self.about_x * at[2] + self.about_z * at[0] for n, at in feet.items()}
        self._distances = {n: float(np.linalg.norm(at)) for n, at in feet.items()}
        self.levels = np.linspace(*_span(self._heights, priors), _LEVELS)  # (H,) m, floor heights
        self._rules = rules

    def posteriors(self, *priors: Mapping[int, F64]) -> list["_Posterior"]:
        """Compute a posterior for each set of priors (U,) of the log scales, by track id."""
        marginals: list[dict[int, F64]] = [{} for _ in priors]
        for n in self._heights:
            whole, _ = self.feet_likelihood(n)
            for marginal, chances in zip(marginals, priors, strict=True):
                marginal[n] = whole @ chances[n] + 1e-300
        return [self._posterior(marginal) for marginal in marginals]

    def _posterior(self, marginals: Mapping[int, F64]) -> "_Posterior":
        total = np.log(self._weight)[:, None] + sum(np.log(marginal) for marginal in marginals.values())
        share = np.exp(total - total.max())
        return _Posterior(share / share.sum(), marginals)

    def feet_likelihood(self, number: int) -> tuple[F64, F64]:
        """Return the likelihood (D, H, U) of a person's feet, and the part of it that is due to the floor."""
        return _feet_likelihood(self._heights[number], self._distances[number], self.levels, self._rules)


@dataclass(frozen=True, slots=True)
class _Posterior:
    """Posterior on a grid of D errors of the vertical and H floor heights."""

    probability: F64  # (D, H) probability, given all people
    marginals: Mapping[int, F64]  # (D, H) by id, likelihood of the feet of one person alone

    def scale_likelihood(self, number: int, feet: F64) -> F64:
        """Return the likelihood (U,) of a person's log scales, weighted with the floors that others make probable."""
        return np.asarray(np.tensordot(self.probability / self.marginals[number], feet, 2))


def _tilts(sigma: float) -> tuple[F64, F64, F64]:
    """Return the errors of the vertical about x and about z, (D,) rad, and their probabilities."""
    if sigma == 0:
        return np.zeros(1), np.zeros(1), np.ones(1)
    x_steps, z_steps = (np.linspace(-_MAX_TILT_SIGMAS, _MAX_TILT_SIGMAS, count) for count in _TILTS)
    about_x, about_z = (values.ravel() for values in np.meshgrid(x_steps, z_steps, indexing="ij"))
    return sigma * about_x, sigma * about_z, np.exp(-0.5 * (about_x**2 + about_z**2))


def _span(heights: Mapping[int, F64], priors: Mapping[int, F64]) -> tuple[float, float]:
    """Return the range of floor heights, m: that of all feet at all possible scales."""
    ends = []
    for n, height in heights.items():
        scales = np.exp(_U[priors[n] > 1e-4 * priors[n].max()])
        ends += [np.outer(height, scales).min(), np.outer(height, scales).max()]
    return min(ends) - 0.2, max(ends) + 0.2


def _feet_likelihood(height: F64, distance: float, levels: F64, rules: SizeRules) -> tuple[F64, F64]:
    """Return the density (tilt D, floor height H, scale U) 1/m of a person's feet, and its part due to the floor."""
    scale = np.exp(_U)
    above = height[:, None, None] * scale - levels[:, None]  # height above the floor, m
    sigma = np.hypot(rules.floor_sigma_m, rules.floor_sigma_share * distance * scale)
    share = 1 - rules.step_probability - rules.stray_probability
    on = share * np.exp(-0.5 * (above / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
    step = np.where(
        above > 0, rules.step_probability * np.exp(-np.abs(above) / rules.step_height_m) / rules.step_height_m, 0
    )
    return on + step + rules.stray_probability / rules.stray_range_m, on


def _size(chance: F64, whole: F64, on_floor: float, alone: F64, factor: float = 1.0) -> Size:
    """Return the size of one person from posteriors (U,) of the log scale."""
    middle = _median(chance)
    down, up = _interval_offsets(whole, middle)
    sigma = factor * _half_width(whole, middle)
    return Size(math.exp(middle), sigma, on_floor, math.exp(_median(alone)), (factor * down, factor * up))


def _half_width(chance: F64, middle: float) -> float:
    """Return half the width of the interval about `middle` that holds 68 % of the posterior of a log scale."""
    if np.count_nonzero(chance) == 1:  # a given height
        return 0.0
    edges, below = _cumulative(chance)
    inside = np.interp(middle + _WIDTHS, edges, below) - np.interp(middle - _WIDTHS, edges, below)
    return float(np.interp(_WITHIN_SIGMA, inside, _WIDTHS))


def _interval_offsets(chance: F64, middle: float) -> tuple[float, float]:
    """Return the distances from `middle` to the ends of the shortest interval around it with 68 % of the posterior."""
    if np.count_nonzero(chance) == 1:
        return 0.0, 0.0
    edges, below = _cumulative(chance)
    here = float(np.interp(middle, edges, below))
    outside = np.linspace(max(0.0, here - _WITHIN_SIGMA), min(here, 1 - _WITHIN_SIGMA), _STARTS)
    low, high = np.interp(outside, below, edges), np.interp(outside + _WITHIN_SIGMA, below, edges)
    best = int((high - low).argmin())
    return max(0.0, middle - float(low[best])), max(0.0, float(high[best]) - middle)


def _cumulative(chance: F64) -> tuple[F64, F64]:
    """Return the edges of the grid's cells, (U + 1,), and the cumulative posterior at each edge."""
    edges = np.append(_U - _STEP / 2, _U[-1] + _STEP / 2)
    return edges, np.append(0, np.cumsum(chance)) / chance.sum()


def _median(chance: F64) -> float:
    """Return the median of a log scale, interpolated between grid values."""
    below = (np.cumsum(chance) - chance / 2) / chance.sum()
    return float(np.interp(0.5, below, _U))
