"""How large people are: heights, distances, floor and vertical of all people together.

A single camera cannot observe scale: a near child and a far adult give the same image. What is known of a person is the
lifter's height, which is that of an adult unless the proportions are a child's, and what is known of all people is that
they mostly stand on one floor: who is taken for too tall is also put too far away and too low. The posterior of every
person's scale, of the floor's height below the camera and of the error of the vertical is evaluated on a grid:

- prior of log scale: a mixture of an adult and a child, weighted by the proportions that the lifter found
- likelihood: standing feet are on the floor; with a small probability on something above it, or nowhere near it
- prior of the vertical: its own uncertainty

The floor is therefore the lowest level on which somebody stands. A person alone keeps the prior.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.skeletons import H36M17
from pose.world.rules import RULES, SizeRules

F64 = NDArray[np.float64]

_U = np.linspace(-0.9, 0.6, 76)  # log scale; one of them is 0
_LEVELS = 160  # floor heights that are tried
_TILTS = (9, 5)  # errors of the vertical that are tried, towards the camera's view and across it
_TILT_REACH = 2.5  # standard deviations of the vertical that they span

_BONES = {H36M17.names[child]: bone for bone, (_, child) in enumerate(H36M17.edges)}
_LEG = [_BONES["left_knee"], _BONES["left_ankle"]]
_TRUNK = [_BONES["spine"], _BONES["thorax"]]
_HEAD = [_BONES["neck"], _BONES["head"]]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one person says. bones: (16,) m as lifted. height: m as lifted. given: whether the height is known.

    feet: (3,) m, where the feet stand as lifted, in the world's axes, the camera at 0; None where that is not known.
    """

    bones: F64
    height: float
    given: bool
    feet: F64 | None


@dataclass(frozen=True, slots=True)
class Size:
    """scale: factor for the person as lifted. sigma: of its logarithm. on_floor: probability that the person stands on
    the common floor. alone: scale of the person if nobody else were there.
    """

    scale: float
    sigma: float
    on_floor: float
    alone: float


@dataclass(frozen=True, slots=True)
class Sizes:
    """people: by id. floor: m, height of the common floor, in the axes of the corrected vertical; None where nobody's
    feet tell. tilt: (2,) rad, rotation of the vertical about x and about z that makes the floor common.
    """

    people: Mapping[int, Size]
    floor: float | None
    tilt: tuple[float, float]


def child_likelihood(bones: F64, height: float, rules: SizeRules = RULES.size) -> tuple[float, float]:
    """The probability that a person with these bones (16,) m is a child, and the mean log scale of such a child."""
    leg, trunk, head = (float(bones[part].sum()) for part in (_LEG, _TRUNK, _HEAD))
    whole = leg + trunk + head
    if min(leg, head) <= 0:
        return rules.child_share, rules.child_log_scale
    values = np.array([math.log(leg / whole), math.log(head / whole), math.log(height)])
    apart = np.clip((values - rules.adult_means) / rules.adult_sigmas, -4, 4)
    before = math.log(rules.child_share / (1 - rules.child_share))
    odds = before + rules.child_offset + float(apart @ rules.child_slopes)
    return 1 / (1 + math.exp(-odds)), rules.child_log_scale


def prior(one: Evidence, rules: SizeRules = RULES.size) -> F64:
    """(2, U) the probability of each log scale of one person alone, as an adult and as a child."""
    if one.given:
        return np.stack([np.abs(_U) < 1e-9, np.zeros(len(_U), bool)]).astype(np.float64)
    share, mean = child_likelihood(one.bones, one.height, rules)
    usual = np.clip(math.log(max(one.height, 1e-3)), *rules.adult_log_heights) - math.log(max(one.height, 1e-3))
    adult = np.exp(-0.5 * ((_U - usual) / rules.adult_sigma) ** 2)
    child = np.exp(-0.5 * ((_U - mean) / rules.child_sigma) ** 2)
    return np.stack([(1 - share) * adult / adult.sum(), share * child / child.sum()])


def find_sizes(people: Mapping[int, Evidence], tilt_sigma: float, rules: SizeRules = RULES.size) -> Sizes:
    """Scales of people (by id), the floor and the error of the vertical.

    First the posterior of everybody as adults and children; then, with everybody as what they more probably are, the
    most probable floor and the scales on it. The uncertainty is that of the first. tilt_sigma: rad, 0 where the
    vertical is known.
    """
    priors = {number: prior(one, rules) for number, one in people.items()}
    standing = {number: one.feet for number, one in people.items() if one.feet is not None}
    chances = {n: chance.sum(axis=0) for n, chance in priors.items()}
    likely = {n: chance[int(chance.sum(axis=1).argmax())] for n, chance in priors.items()}
    if len(standing) < 2:  # nobody to compare with
        return Sizes({n: _size(likely[n], chances[n], 1.0, likely[n]) for n in people}, None, (0.0, 0.0))
    alone = dict(likely)
    grid = _Grid(standing, chances, tilt_sigma, rules)
    posterior, marginal = grid.posterior(chances)
    for n in standing:
        both = np.stack([part * grid.scales(n, posterior / marginal[n])[0] for part in priors[n]])
        likely[n], chances[n] = priors[n][int(both.sum(axis=1).argmax())], both.sum(axis=0)
    posterior, marginal = grid.posterior(likely)
    best = int(posterior.sum(axis=0).argmax())
    there = np.zeros_like(posterior)
    there[:, best] = posterior[:, best] / posterior[:, best].sum()
    sizes = {}
    for n in people:
        chance, on_floor, factor = likely[n], 1.0, 1.0
        if n in standing:
            whole, on = grid.scales(n, there / marginal[n])
            chance, on_floor, factor = likely[n] * whole, float(likely[n] @ on), rules.group_sigma_factor
        sizes[n] = _size(chance, chances[n], on_floor, alone[n], factor)
    tilt = float(there[:, best] @ grid.about_x), float(there[:, best] @ grid.about_z)
    return Sizes(sizes, float(grid.levels[best]), tilt)


class _Grid:
    """Errors of the vertical (D) and floor heights (H) that are tried. levels: (H,) m. about_x, about_z: (D,) rad."""

    def __init__(self, feet: Mapping[int, F64], priors: Mapping[int, F64], tilt_sigma: float, rules: SizeRules) -> None:
        self.about_x, self.about_z, self._weight = _tilts(tilt_sigma)
        self._heights = {n: at[1] + self.about_x * at[2] + self.about_z * at[0] for n, at in feet.items()}
        self._away = {n: float(np.linalg.norm(at)) for n, at in feet.items()}
        self.levels = np.linspace(*_span(self._heights, priors), _LEVELS)
        self._rules = rules

    def posterior(self, priors: Mapping[int, F64]) -> tuple[F64, dict[int, F64]]:
        """(D, H) of all people together, and of each one's feet by themselves."""
        marginal = {n: self._given(n)[0] @ priors[n] + 1e-300 for n in self._heights}
        total = np.log(self._weight)[:, None] + sum(np.log(part) for part in marginal.values())
        posterior = np.exp(total - total.max())
        return posterior / posterior.sum(), marginal

    def scales(self, number: int, share: F64) -> tuple[F64, F64]:
        """(U,) a person's likelihood for each scale, weighted by `share` (D, H); and what of it is on the floor."""
        whole, on = self._given(number)
        return np.tensordot(share, whole, 2), np.tensordot(share, on, 2)

    def _given(self, number: int) -> tuple[F64, F64]:
        return _feet_given(self._heights[number], self._away[number], self.levels, self._rules)


def _tilts(sigma: float) -> tuple[F64, F64, F64]:
    """Errors of the vertical about x and about z, (D,) rad, and how likely each is."""
    if sigma == 0:
        return np.zeros(1), np.zeros(1), np.ones(1)
    one, other = (np.linspace(-_TILT_REACH, _TILT_REACH, count) for count in _TILTS)
    about_x, about_z = (part.ravel() for part in np.meshgrid(one, other, indexing="ij"))
    return sigma * about_x, sigma * about_z, np.exp(-0.5 * (about_x**2 + about_z**2))


def _span(heights: Mapping[int, F64], priors: Mapping[int, F64]) -> tuple[float, float]:
    """The range of floor heights, m: that of all feet, at all scales that are possible."""
    ends = []
    for n, height in heights.items():
        scales = np.exp(_U[priors[n] > 1e-4 * priors[n].max()])
        ends += [np.outer(height, scales).min(), np.outer(height, scales).max()]
    return min(ends) - 0.2, max(ends) + 0.2


def _feet_given(height: F64, away: float, levels: F64, rules: SizeRules) -> tuple[F64, F64]:
    """(D, H, U) density of a person's feet being where they are, 1 / m, for each tilt, floor and scale; and the part of
    it that is due to standing on the floor. height: (D,) m as lifted, away: m from the camera.
    """
    scale = np.exp(_U)
    above = height[:, None, None] * scale - levels[:, None]  # m above the floor
    sigma = np.hypot(rules.floor_sigma_m, rules.floor_sigma_share * away * scale)
    share = 1 - rules.step_share - rules.stray_share
    on = share * np.exp(-0.5 * (above / sigma) ** 2) / (sigma * math.sqrt(2 * math.pi))
    step = np.where(above > 0, rules.step_share * np.exp(-np.abs(above) / rules.step_m) / rules.step_m, 0)
    return on + step + rules.stray_share / rules.stray_m, on


def _size(chance: F64, whole: F64, on_floor: float, alone: F64, factor: float = 1.0) -> Size:
    """The size of one person.

    Args:
        chance: (U,) posterior of the log scale on the most probable floor.
        whole: (U,) posterior on all floors, adult or child.
        on_floor: probability that the person stands on the common floor.
        alone: (U,) posterior if nobody else were there.
        factor: on the standard deviation of `whole`.
    """
    middle = _median(chance)
    sigma = math.sqrt(max(float(whole @ (_U - middle) ** 2 / whole.sum()), 0.0))
    return Size(math.exp(middle), factor * sigma, on_floor, math.exp(_median(alone)))


def _median(chance: F64) -> float:
    """The median of a log scale, between the grid's values."""
    below = (np.cumsum(chance) - chance / 2) / chance.sum()
    return float(np.interp(0.5, below, _U))
