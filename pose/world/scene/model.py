"""Posterior density of a scene, for many candidate scenes at once.

A candidate is a row of six numbers: pitch and roll (rad), logarithm of the focal length relative to the assumed one,
camera height (through `camera_heights`), the common error of body directions along the line of sight (rad), and the
heading of horizontal lines (rad). The sizes of people are integrated out in closed form: given a candidate, feet on the
floor are linear in a person's scale and in the height of the ground under the person, which both have normal priors.
Each person is an adult or a child, on the floor or on something else, or unrelated to the scene; these are the
components of a mixture. A person who does not fit therefore loses influence by the residual.

Axes: B candidates, N people, G directions or feet of a person.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pose.structures.types import F64
from pose.world.scene.lines import NO_LINES, LineEvidence


@dataclass(frozen=True, slots=True)
class PersonEvidence:
    """Measurements of one person at the lifted size, in the axes of the camera or of its path."""

    directions: F64  # (G, 3) unit vectors from the feet to the centre of mass while standing
    centres: F64  # (G, 3) m, position of the pelvis for each direction
    feet: F64  # (K, 3) m, positions of ankles that stand
    axes: F64  # (K, 3) unit vectors from the feet to the centre of mass in these frames
    height: float  # m
    height_given: bool
    child: float  # probability of a child, from the proportions
    seconds: float  # duration, for the weights of people


PITCH, ROLL, FOCAL, HEIGHT, BIAS, HEADING = range(6)
SIZE = 6  # numbers of a candidate

# Prior of the camera. Phones and webcams have horizontal fields of view of 50 to 80 degrees, broadcast cameras 5 to 40.
PITCH_MEAN, PITCH_SIGMA = np.radians([-12.0, 25.0])
ROLL_SIGMA = np.radians(6.0)
FOCAL_SIGMA = 0.3
HEIGHT_MEAN, HEIGHT_SIGMA = np.arcsinh(1.7 / 0.5), 0.7
# Body directions of standing people: standard deviations across and along the line of sight, and common bias along it;
# measured on training subjects (docs/studies/scene.md).
ACROSS_SIGMA, ALONG_SIGMA = np.radians([2.3, 4.4])
# Errors that all people of a scene have in common, beyond those of the model: of the vertical about one axis (rad), and
# of the logarithm of the focal length.
COMMON_TILT_SIGMA, COMMON_FOCAL_SIGMA = np.radians(1.0), 0.15
BIAS_MEAN, BIAS_SIGMA = np.radians([-0.5, 1.5])
_FREEDOM = 4.0  # degrees of freedom of the t distribution of body directions
# Body heights in m. Adults: C. C. Gordon et al., ANSUR II, 2014, both sexes.
ADULT_M, ADULT_LOG_SIGMA = 1.70, 0.058
CHILD_M, CHILD_LOG_SIGMA = 1.25, 0.12
# Standard deviation over people of the logarithm of the lifted distance, relative to the true distance, of a person of
# known height; measured on training subjects. If the logarithm of an adult's lifted height is off by more than
# `LIFTED_LIMIT`, the lifter erred, and the person is further away by `FAR_LOG_BIAS`.
DISTANCE_LOG_SIGMA, FAR_LOG_BIAS = 0.04, 0.125
LIFTED_LIMIT = 0.12
LIFTED_SLOPE = 0.1  # regression of an adult's height on the lifted one within the limit, in logarithms
ANKLE_HEIGHT_M = 0.08  # height of the ankle above the sole
# Errors of one group of feet relative to the person's others: of the logarithm of the distance, and of the height.
DEPTH_LOG_SIGMA, FOOT_SIGMA_M = 0.025, 0.02
# The scatter of one person's feet is unknown: as many observations as `_SCATTER_FREEDOM` support the errors above, and
# a group of feet counts as a fraction of an observation. Squared deviations approach `_MAX_SQUARE` variances.
_SCATTER_FREEDOM, _INDEPENDENT, _MAX_SQUARE = 2.0, 0.1, 16.0
_MIN_LEVEL_M = 0.1  # smallest distance of feet from the camera's height that counts
FLOOR_SIGMA_M = 0.03  # of the ground under one person who stands on the floor
RAISED_M, RAISED_SIGMA_M = 0.8, 0.8  # height of the ground under people who stand on something
RAISED, UNRELATED = 0.08, 0.04  # probabilities of people on something, and of people who do not fit at all
_LEVEL_ITERATIONS = 3
_IMPOSSIBLE = -1e9  # logarithm of the density where it is not a number, as for people behind the camera
_MAX_ELEMENTS = 16_000  # candidates x people x feet that are computed together, which limits the memory
_UNRELATED_SIGMA_M = 4.0  # of the ground under people who do not fit


@dataclass(frozen=True, slots=True)
class Component:
    """One interpretation of a person: normal priors of the inverse scale and of the ground's height."""

    log_weight: F64  # (N,)
    inverse: F64  # (N,) mean of the inverse scale of distances
    inverse_sigma: F64  # (N,)
    log_height: F64  # (N,) mean of the logarithm of the height, m
    log_height_sigma: F64  # (N,)
    ground: float  # m
    ground_sigma: float  # m
    on_floor: bool
    is_child: bool

    def log_heights(self, inverse: F64, sigma: F64) -> tuple[F64, F64]:
        """Return mean and sigma of the logarithm of the height (m), of people (..., N) with an inverse scale."""
        # The distance has an error of its own, so the height follows only in part.
        share = self.log_height_sigma**2 / (self.log_height_sigma**2 + DISTANCE_LOG_SIGMA**2)
        mean = self.log_height - share * np.log(inverse / self.inverse)
        return mean, np.hypot(share * sigma / inverse, np.sqrt(share) * DISTANCE_LOG_SIGMA)


@dataclass(frozen=True, slots=True)
class SizePosterior:
    """Distribution of the sizes of N people for B candidates: a mixture of C normal distributions."""

    log_weights: F64  # (B, N, C), unnormalised
    inverse: F64  # (B, N, C) mean of the inverse scale of distances
    inverse_sigmas: F64  # (B, N, C)
    log_heights: F64  # (B, N, C) mean of the logarithm of the height, m
    log_height_sigmas: F64  # (B, N, C)


class SceneModel:
    """Posterior density of scenes, from the evidence of N people and of lines."""

    def __init__(
        self,
        people: Sequence[PersonEvidence],
        focal_sigma: float = FOCAL_SIGMA,
        up: F64 | None = None,
        lines: LineEvidence = NO_LINES,
    ) -> None:
        """Prepare padded arrays; `focal_sigma` 0 fixes the focal length, and `up` (3,) the vertical."""
        self.people, self.up, self.focal_sigma, self.lines = people, up, focal_sigma, lines
        self._local, self._centres, self._direction_weights = _padded(people, "directions", "centres")
        self._feet, axes, self._foot_weights = _padded(people, "feet", "axes")
        self._foot_rays = self._feet / np.maximum(np.abs(self._feet[..., 2:]), 1e-6) + (self._foot_weights == 0)[
            ..., None
        ] * [0.0, 0.0, 1.0]
        self._foot_axes = np.einsum("ngji,ngj->ngi", ray_frames(self._foot_rays), axes)
        self._foot_lengths = _image_lengths(self._foot_rays, axes)
        self.start = self._mean_up()
        level = np.maximum(np.abs(self._feet @ self.start), _MIN_LEVEL_M)
        self._foot_variances = DEPTH_LOG_SIGMA**2 + (FOOT_SIGMA_M / level) ** 2
        flat = self._centres / np.maximum(np.abs(self._centres[..., 2:]), 1e-6)
        self._rays = np.where(self._direction_weights[..., None] > 0, flat, [0.0, 0.0, 1.0])
        self._local = np.einsum("ngji,ngj->ngi", ray_frames(self._rays), self._local)
        self.components = _components(people)

    def _mean_up(self) -> F64:
        """Return the mean direction (3,) of the bodies; that of a level camera without any."""
        total = sum((one.directions.sum(axis=0) for one in self.people), np.zeros(3))
        size = float(np.linalg.norm(total))
        if self.up is not None:
            return self.up
        return np.asarray(total / size) if size > 1e-6 else np.array([0.0, -1.0, 0.0])

    def ups(self, candidates: F64) -> F64:
        """Return the vertical (B, 3) of each candidate."""
        if self.up is not None:
            return np.tile(self.up, (len(candidates), 1))
        pitch, roll = candidates[:, PITCH], candidates[:, ROLL]
        level = -np.cos(pitch)
        return np.stack([np.sin(roll) * level, np.cos(roll) * level, np.sin(pitch)], axis=1)

    def log_posterior(self, candidates: F64) -> F64:
        """Return the logarithm (B,) of the unnormalised posterior density."""
        most = max(16, _MAX_ELEMENTS // max(self._feet.shape[0] * self._feet.shape[1], 1))
        parts = [self._log_posterior(candidates[at : at + most]) for at in range(0, len(candidates), most)]
        result = np.concatenate(parts)
        return np.where(np.isfinite(result), result, _IMPOSSIBLE)

    def _log_posterior(self, candidates: F64) -> F64:
        ups = self.ups(candidates)
        result = self.log_prior(candidates) + self._log_directions(candidates, ups)
        result += self.lines.log_likelihood(ups, np.exp(candidates[:, FOCAL]), candidates[:, HEADING])
        sizes = self.sizes(candidates, ups)
        highest = sizes.log_weights.max(axis=-1)
        return np.asarray(
            result + (highest + np.log(np.exp(sizes.log_weights - highest[..., None]).sum(axis=-1))).sum(axis=1)
        )

    def log_prior(self, candidates: F64) -> F64:
        """Return the logarithm (B,) of the prior density of the camera."""
        pitch, roll = candidates[:, PITCH], candidates[:, ROLL]
        result = -0.5 * ((candidates[:, HEIGHT] - HEIGHT_MEAN) / HEIGHT_SIGMA) ** 2
        result = result - 0.5 * ((candidates[:, BIAS] - BIAS_MEAN) / BIAS_SIGMA) ** 2
        if self.focal_sigma:
            result = result - 0.5 * (candidates[:, FOCAL] / self.focal_sigma) ** 2
        if self.up is None:
            result = result - 0.5 * ((pitch - PITCH_MEAN) / PITCH_SIGMA) ** 2
            result = result - 6.0 * np.log1p((roll / ROLL_SIGMA) ** 2 / 11) - np.log(np.maximum(np.cos(pitch), 1e-3))
        return np.asarray(result)

    def _log_directions(self, candidates: F64, ups: F64) -> F64:
        """Return the logarithm (B,) of the likelihood of the body directions: a t distribution for each person."""
        if not self._direction_weights.any():
            return np.zeros(len(candidates))
        rays = np.broadcast_to(self._rays, (len(candidates), *self._rays.shape)).copy()
        rays[..., :2] /= np.exp(candidates[:, FOCAL])[:, None, None, None]
        lengths = np.linalg.norm(rays, axis=-1, keepdims=True)
        directions = np.einsum("bngij,ngj->bngi", ray_frames(rays), self._local)
        normal = np.cross(rays / lengths, directions)
        normal /= np.maximum(np.linalg.norm(normal, axis=-1, keepdims=True), 1e-6)
        up = ups[:, None, None]
        across = (normal * up).sum(axis=-1)
        along = np.arctan2((np.cross(normal, directions) * up).sum(axis=-1), (directions * up).sum(axis=-1))
        weights = self._direction_weights
        total = np.maximum(weights.sum(axis=1), 1e-9)
        across, along = ((part * weights).sum(axis=2) / total for part in (across, along))
        along = along - candidates[:, BIAS, None]
        square = (across / ACROSS_SIGMA) ** 2 + (along / ALONG_SIGMA) ** 2
        return np.asarray((-(_FREEDOM + 2) / 2 * np.log1p(square / _FREEDOM) * (weights.sum(axis=1) > 0)).sum(axis=1))

    def sizes(self, candidates: F64, ups: F64) -> SizePosterior:
        """Integrate over the scale of each person, and over the height of the ground under the person."""
        stretch = np.exp(candidates[:, FOCAL])[:, None, None]
        ups = ups[:, None, None]
        feet, weights = self._feet, self._foot_weights
        level = feet[..., 0] * ups[..., 0] + feet[..., 1] * ups[..., 1] + stretch * feet[..., 2] * ups[..., 2]
        if self.focal_sigma:  # a person off the axis appears longer with a shorter focal length
            rays = np.broadcast_to(self._foot_rays, (len(candidates), *self._foot_rays.shape)).copy()
            rays[..., :2] /= stretch[..., None]
            axes = np.einsum("bngij,ngj->bngi", ray_frames(rays), self._foot_axes)
            level = level * _image_lengths(rays, axes) / self._foot_lengths
        level = level - ANKLE_HEIGHT_M  # (B, N, G) height of the sole relative to the camera, at scale 1
        middle = self._middle(level)
        size = np.maximum(np.abs(middle), _MIN_LEVEL_M)
        off = (level - middle[..., None]) / size[..., None]
        # The feet of one person are on one level; a few are in the air, or wrong.
        square = off**2 / self._foot_variances
        square = square / (1 + square / _MAX_SQUARE)
        number = _INDEPENDENT * weights.sum(axis=1)
        mean = (square * weights).sum(axis=2) / np.maximum(weights.sum(axis=1), 1e-9)
        scatter = -(_SCATTER_FREEDOM + number) / 2 * np.log1p(number * mean / _SCATTER_FREEDOM)
        certain = (weights.sum(axis=1) > 0) / (self._foot_variances.mean(axis=1) * size**2)
        sums = certain, certain * middle, certain * middle**2
        heights = camera_heights(candidates)[:, None]
        parts = [_integrated(part, heights, sums, scatter) for part in self.components]
        return SizePosterior(*(np.stack(values, axis=-1) for values in zip(*parts, strict=True)))

    def _middle(self, level: F64) -> F64:
        """Return the common level (B, N) of the feet of each person: a mean with small weights of outliers."""
        middle: F64 = level.mean(axis=2)
        for _ in range(_LEVEL_ITERATIONS):
            scale = np.maximum(np.abs(middle), _MIN_LEVEL_M)[..., None]
            weights = 1 / (1 + ((level - middle[..., None]) / scale) ** 2 / (_FREEDOM * self._foot_variances))
            middle = (weights * level).sum(axis=2) / weights.sum(axis=2)
        return middle


def camera_heights(candidates: F64) -> F64:
    """Return the height (B,) m of the camera above the floor."""
    return np.asarray(0.5 * np.sinh(candidates[:, HEIGHT]))


def _integrated(part: Component, height: F64, sums: tuple[F64, ...], constant: F64) -> tuple[F64, ...]:
    """Return the fields (B, N) of `SizePosterior` for one component, from weighted sums over the feet (B, N)."""
    # A foot at height `level` relative to the camera, at scale 1, fulfils level + height * inverse scale - ground = 0,
    # with the ground in lifted units. The unknowns (inverse scale, ground) have 2 x 2 normal equations.
    p, q = 1 / part.inverse_sigma**2, 1 / part.ground_sigma**2
    zeroth, first, second = sums
    offset = height * part.inverse - part.ground
    pull = first + offset * zeroth
    square = second + 2 * offset * first + offset**2 * zeroth
    m11, m12, m22 = height**2 * zeroth + p, -height * zeroth, zeroth + q
    determinant = m11 * m22 - m12**2
    explained = pull**2 * (m22 * height**2 + 2 * m12 * height + m11) / determinant
    logs = part.log_weight + constant - 0.5 * (square - explained) - 0.5 * np.log(determinant / (p * q))
    means = part.inverse - pull * (m22 * height + m12) / determinant
    means = np.maximum(means, 0.05)
    sigmas = np.sqrt(m22 / determinant)
    return logs, means, sigmas, *part.log_heights(means, sigmas)


def _components(people: Sequence[PersonEvidence]) -> list[Component]:
    heights = np.array([one.height for one in people])
    given = np.array([one.height_given for one in people], bool)
    child = np.array([one.child for one in people])
    result = []
    for is_child, metres, log_sigma in ((False, ADULT_M, ADULT_LOG_SIGMA), (True, CHILD_M, CHILD_LOG_SIGMA)):
        chance = np.where(given, float(not is_child), child if is_child else 1 - child)
        apart = np.log(heights / metres)
        near = given | ((np.abs(apart) < LIFTED_LIMIT) & (not is_child))
        log_height = np.log(metres) + np.where(given, 1.0, np.where(near, LIFTED_SLOPE, 0.0)) * apart
        log_height_sigma = np.where(given, 1e-3, log_sigma)
        bias = np.where(near | is_child | (apart > 0), 0.0, FAR_LOG_BIAS)
        inverse = heights * np.exp(-log_height - bias)
        sigma = inverse * np.hypot(log_height_sigma, DISTANCE_LOG_SIGMA)
        for weight, ground, ground_sigma, on_floor in (
            (1 - RAISED - UNRELATED, 0.0, FLOOR_SIGMA_M, True),
            (RAISED, RAISED_M, RAISED_SIGMA_M, False),
            (UNRELATED, 0.0, _UNRELATED_SIGMA_M, False),
        ):
            logs = np.log(np.maximum(weight * chance, 1e-12))
            kind = ground, ground_sigma, on_floor, is_child
            result.append(Component(logs, inverse, sigma, log_height, log_height_sigma, *kind))
    return result


def _padded(people: Sequence[PersonEvidence], name: str, other: str) -> tuple[F64, F64, F64]:
    """Return arrays (N, G, 3) of two attributes of the people, and weights (N, G)."""
    # Persons with fewer rows repeat theirs, with smaller weights.
    longest = max([1, *(len(getattr(one, name)) for one in people)])
    first, second = np.zeros((2, len(people), longest, 3))
    weights = np.zeros((len(people), longest))
    for row, one in enumerate(people):
        count = len(getattr(one, name))
        if count:
            rows = np.arange(longest) * count // longest
            first[row], second[row], weights[row] = getattr(one, name)[rows], getattr(one, other)[rows], count / longest
    return first, second, weights


def _image_lengths(rays: F64, axes: F64) -> F64:
    """Return the lengths (...) in the image of unit vectors (..., 3) at distance 1 on rays (..., 3) with z = 1."""
    flat = axes[..., :2] - rays[..., :2] * axes[..., 2:]
    return np.asarray(np.maximum(np.linalg.norm(flat, axis=-1), 0.1))


def ray_frames(rays: F64) -> F64:
    """Return the smallest rotations (..., 3, 3) of the viewing direction to rays (..., 3) with z > 0."""
    x, y, z = np.moveaxis(rays / np.linalg.norm(rays, axis=-1, keepdims=True), -1, 0)
    k = 1 / np.maximum(1 + z, 1e-6)
    rows = [[1 - k * x * x, -k * x * y, x], [-k * x * y, 1 - k * y * y, y], [-x, -y, z]]
    return np.asarray(np.stack([np.stack(row, axis=-1) for row in rows], axis=-2))
