"""Observations of one person by all cameras, sampled at the knots of a common time line.

The errors of a detector depend on the image, so a motion that is repeated, such as a played loop, repeats its errors.
They then do not average out, and a calibration is as certain as one from the motion seen once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from pose.multiview.sampling import Samples, sample, sample_tracks
from pose.multiview.types import HIPS, LIMB_POINTS, POINTS, ViewCamera, ViewTrack
from pose.structures.types import F64, Flags

BODY_HEIGHT = 1.7  # m, reference for the noise of keypoints
Indices = NDArray[np.int64]
NOISE = 0.015  # standard deviation of a point with score 1, relative to the body's height in the image


@dataclass(frozen=True, slots=True)
class Observed:
    """Observations of one person by C cameras at K common times, the knots, with the N points of `types.POINTS`."""

    # For P people, the axes are (C, P, K, ...) instead of (C, K, ...), except for `knots` and `own`.

    knots: F64  # (K,) s, common times, evenly spaced
    pixels: F64  # (C, K, N, 2) px, 2D keypoints
    velocity: F64  # (C, K, N, 2) px/s, velocity of the keypoints
    noise: F64  # (C, K, N) px, standard deviation of each coordinate, inf where not detected
    limbs: F64  # (C, K, N, 3) m, lifted points relative to the midpoint of the hips, in camera axes
    limb_sigma: F64  # (C, K, N) m, uncertainty of the lifted points, inf where there are none
    root: F64  # (C, K, 3) m, midpoint of the hips in each camera's frame
    joints: F64  # (C, K, 17, 3) m, lifted skeleton relative to its root, in camera axes
    joint_sigma: F64  # (C, K, 17) mm, uncertainty of the lifted skeleton
    present: Flags  # (C, K) whether the camera has the person
    own: F64  # (C, K) s, each camera's clock at the knots

    def part(self, rows: slice) -> "Observed":
        """Return the observations at some of the K times, selected by the slice `rows`."""
        place = (*(slice(None),) * (self.present.ndim - 1), rows)
        return self._chosen(place, self.knots[rows], self.own[:, rows])

    def of_people(self, people: Indices) -> "Observed":
        """Return the observations of the people with the indices `people`, for observations of several people."""
        return self._chosen((slice(None), people), self.knots, self.own)

    def _chosen(self, place: tuple[slice | Indices, ...], knots: F64, own: F64) -> "Observed":
        names = [one.name for one in fields(self)[1:-1]]
        return replace(self, knots=knots, own=own, **{name: getattr(self, name)[place] for name in names})

    @property
    def step(self) -> float:
        """Time between two successive knots (common times), s."""
        return float(self.knots[1] - self.knots[0])

    @property
    def seen(self) -> Flags:
        """Mask (C, K, N) of detected points, by camera, time and point."""
        return np.isfinite(self.noise)


def observe(
    tracks: Mapping[int, ViewTrack], cameras: Sequence[ViewCamera], knots: F64, width: float | None = None
) -> Observed:
    """Sample the observations of one person at even common times (K,) s."""
    seen = _unseen((len(cameras), len(knots)), cameras, knots)
    for index, track in tracks.items():
        _fill(seen, index, sample(track, seen.own[index], width), cameras[index].focal)
    return seen


def observe_people(people: Sequence[Mapping[int, ViewTrack]], cameras: Sequence[ViewCamera], knots: F64) -> Observed:
    """Sample the observations of P people at a few common times (K,) s, with axes (C, P, K)."""
    seen = _unseen((len(cameras), len(people), len(knots)), cameras, knots)
    places = [(camera, person) for person, tracks in enumerate(people) for camera in tracks]
    at = tuple(np.array(places).T)
    found = sample_tracks([people[person][camera] for camera, person in places], seen.own[at[0]])
    _fill(seen, at, found, np.array([cameras[camera].focal for camera, _ in places])[:, None])
    return seen


def _unseen(shape: tuple[int, ...], cameras: Sequence[ViewCamera], knots: F64) -> Observed:
    """Return observations without any person; `shape` is (C, K) or (C, P, K)."""
    n = len(POINTS)
    return Observed(
        knots,
        np.zeros((*shape, n, 2)),
        np.zeros((*shape, n, 2)),
        np.full((*shape, n), np.inf),
        np.zeros((*shape, n, 3)),
        np.full((*shape, n), np.inf),
        np.zeros((*shape, 3)),
        np.zeros((*shape, 17, 3)),
        np.full((*shape, 17), 1000.0),
        np.zeros(shape, bool),
        np.stack([camera.own_time(knots) for camera in cameras]),
    )


def _fill(seen: Observed, at: int | tuple[Indices, ...], samples: Samples, focal: float | F64) -> None:
    """Write samples to the places of their cameras, or of their cameras and people."""
    seen.pixels[at], seen.velocity[at] = samples.pixels, samples.velocity
    seen.noise[at] = _noise(samples, focal)
    seen.limbs[at], seen.root[at] = _from_hips(samples)
    sigma = np.full(samples.scores.shape, np.inf)
    sigma[..., LIMB_POINTS] = np.where(
        samples.present[..., None], samples.sigma[..., POINTS[LIMB_POINTS]] / 1000, np.inf
    )
    seen.limb_sigma[at] = sigma
    seen.joints[at], seen.joint_sigma[at] = samples.joints, np.maximum(samples.sigma, 1.0)
    seen.present[at] = samples.present


def _noise(found: Samples, focal: float | F64) -> F64:
    """Return the standard deviations (..., K, N) px of the keypoints; inf where not detected."""
    size = focal * BODY_HEIGHT / np.maximum(found.root[..., 2], 0.3)
    deviation = NOISE * size[..., None] / np.sqrt(np.maximum(found.scores, 1e-6))
    return np.where(found.scores > 0.05, deviation, np.inf)


def _from_hips(found: Samples) -> tuple[F64, F64]:
    """Return lifted points (..., K, N, 3) m relative to the midpoint of the hips, and this in the camera frame."""
    points = found.joints.take(POINTS, axis=-2)
    middle = points.take(HIPS, axis=-2).mean(axis=-2)
    return points - middle[..., None, :], found.root + middle


def knots_of(tracks: Mapping[int, ViewTrack], cameras: Sequence[ViewCamera], grid: F64) -> F64:
    """Return the times of a grid from the person's first to last frame: an even number, at least two."""
    first = min(float(cameras[index].common_time(track.times[:1])[0]) for index, track in tracks.items())
    last = max(float(cameras[index].common_time(track.times[-1:])[0]) for index, track in tracks.items())
    low, high = np.searchsorted(grid, [first - 1e-9, last + 1e-9])
    inside = grid[low:high]
    step = grid[1] - grid[0]
    if len(inside) < 2:
        result: F64 = first + step * np.arange(2)
        return result
    return inside if len(inside) % 2 == 0 else np.append(inside, inside[-1] + step)


MIN_GAP_S = 1.0  # time between two observations of which one may repeat the other; the solver expects longer errors
MAX_DIFFERENCE = 1.0  # RMS difference of repeated keypoints, in standard deviations of a keypoint
MIN_POINTS = 6  # compared keypoints


def distinct_share(people: Sequence[Observed]) -> float:
    """Return the share (0 to 1) of the instants of all people whose keypoints do not repeat those of an earlier one."""
    repeated = [_repeated(one) for one in people]
    every = np.concatenate(repeated) if repeated else np.zeros(0, bool)
    return 1.0 - float(every.mean()) if len(every) else 1.0


def _repeated(seen: Observed) -> Flags:
    """Return whether each instant (K,) repeats an earlier one in all cameras that see the person at both."""
    count = len(seen.knots)
    same = seen.knots[:, None] - seen.knots > MIN_GAP_S
    both = np.zeros((count, count), bool)
    for pixels, noise in zip(seen.pixels, seen.noise, strict=True):
        weights = np.isfinite(noise) / np.where(np.isfinite(noise), noise, 1.0)
        square, number = _differences(np.where(weights[..., None] > 0, pixels, 0.0), weights)
        compared = number >= MIN_POINTS
        same &= ~compared | (square < MAX_DIFFERENCE**2 * np.maximum(number, 1))
        both |= compared
    return np.asarray((same & both).any(axis=1))


def _differences(pixels: F64, weights: F64) -> tuple[F64, F64]:
    """Return sums (K, K) of squares of weighted differences of keypoints (K, N, 2) px per axis, and their numbers."""
    square, number = np.zeros((2, len(pixels), len(pixels)))
    for at, (own, weight) in enumerate(zip(pixels, weights, strict=True)):
        shared = np.minimum(weight, weights)
        off = shared[..., None] * (pixels - own)
        square[at], number[at] = 0.5 * (off * off).sum(axis=(1, 2)), (shared > 0).sum(axis=1)
    return square, number
