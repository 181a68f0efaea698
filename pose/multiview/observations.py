"""Observations of one person by all cameras, sampled at the knots of a common time line."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from pose.multiview.sampling import Samples, sample
from pose.multiview.types import HIPS, LIMB_POINTS, POINTS, ViewCamera, ViewTrack
from pose.types import F64, Flags

BODY_HEIGHT = 1.7  # m, reference for the noise of keypoints
NOISE = 0.015  # standard deviation of a point with score 1, relative to the body's height in the image


@dataclass(frozen=True, slots=True)
class Observed:
    """Observations of one person at K knots in C cameras, with the N points of `types.POINTS`.

    Attributes:
        knots: (K,) s, common times, evenly spaced.
        pixels: (C, K, N, 2) px, 2D keypoints.
        velocity: (C, K, N, 2) px/s, velocity of the keypoints.
        noise: (C, K, N) px, standard deviation of each coordinate, inf where not detected.
        limbs: (C, K, N, 3) m, lifted points relative to the midpoint of the hips, in camera axes.
        limb_sigma: (C, K, N) m, uncertainty of the lifted points, inf where there are none.
        root: (C, K, 3) m, midpoint of the hips in each camera's frame.
        joints: (C, K, 17, 3) m, lifted skeleton relative to its root, in camera axes.
        joint_sigma: (C, K, 17) mm, uncertainty of the lifted skeleton.
        present: (C, K) whether the camera has the person.
        own: (C, K) s, each camera's clock at the knots.
    """

    knots: F64
    pixels: F64
    velocity: F64
    noise: F64
    limbs: F64
    limb_sigma: F64
    root: F64
    joints: F64
    joint_sigma: F64
    present: Flags
    own: F64

    def part(self, rows: slice) -> "Observed":
        """Return the observations at the knots in `rows`."""
        parts = [getattr(self, one.name) for one in fields(self)[1:]]
        return Observed(self.knots[rows], *(part[:, rows] for part in parts))

    @property
    def step(self) -> float:
        """Time between knots, s."""
        return float(self.knots[1] - self.knots[0])

    @property
    def seen(self) -> Flags:
        """Mask (C, K, N) of detected points."""
        return np.isfinite(self.noise)


def observe(
    tracks: Mapping[int, ViewTrack], cameras: Sequence[ViewCamera], knots: F64, width: float | None = None
) -> Observed:
    """Sample the observations of one person.

    Args:
        tracks: Tracks of the person, by camera index.
        cameras: The cameras.
        knots: (K,) s, common times, evenly spaced.
        width: Width of the smoothing kernel in s, as in `sampling.sample`.
    """
    c, k, n = len(cameras), len(knots), len(POINTS)
    seen = Observed(
        knots,
        np.zeros((c, k, n, 2)),
        np.zeros((c, k, n, 2)),
        np.full((c, k, n), np.inf),
        np.zeros((c, k, n, 3)),
        np.full((c, k, n), np.inf),
        np.zeros((c, k, 3)),
        np.zeros((c, k, 17, 3)),
        np.full((c, k, 17), 1000.0),
        np.zeros((c, k), bool),
        np.stack([camera.own_time(knots) for camera in cameras]),
    )
    for index, track in tracks.items():
        found = sample(track, seen.own[index], width)
        seen.pixels[index], seen.velocity[index] = found.pixels, found.velocity
        seen.noise[index] = _noise(found, cameras[index])
        seen.limbs[index], seen.root[index] = _from_hips(found)
        seen.limb_sigma[index][:, LIMB_POINTS] = found.sigma[:, POINTS[LIMB_POINTS]] / 1000
        seen.limb_sigma[index][~found.present] = np.inf
        seen.joints[index], seen.joint_sigma[index] = found.joints, np.maximum(found.sigma, 1.0)
        seen.present[index] = found.present
    return seen


def _noise(found: Samples, camera: ViewCamera) -> F64:
    """Return the standard deviations (K, N) px of the keypoints; inf where not detected."""
    size = camera.focal * BODY_HEIGHT / np.maximum(found.root[:, 2], 0.3)
    deviation = NOISE * size[:, None] / np.sqrt(np.maximum(found.scores, 1e-6))
    return np.where(found.scores > 0.05, deviation, np.inf)


def _from_hips(found: Samples) -> tuple[F64, F64]:
    """Return lifted points (K, N, 3) m relative to the midpoint of the hips, and this midpoint (K, 3) m in the camera
    frame.
    """
    points = found.joints[:, POINTS]
    middle = points[:, list(HIPS)].mean(axis=1)
    return points - middle[:, None], found.root + middle


def knots_of(tracks: Mapping[int, ViewTrack], cameras: Sequence[ViewCamera], grid: F64) -> F64:
    """Return the part of an evenly spaced grid (K,) s in which any camera has the person.

    The result has an even number of knots, at least two.
    """
    first = min(float(cameras[index].common_time(track.times[:1])[0]) for index, track in tracks.items())
    last = max(float(cameras[index].common_time(track.times[-1:])[0]) for index, track in tracks.items())
    low, high = np.searchsorted(grid, [first - 1e-9, last + 1e-9])
    inside = grid[low:high]
    step = grid[1] - grid[0]
    if len(inside) < 2:
        result: F64 = first + step * np.arange(2)
        return result
    return inside if len(inside) % 2 == 0 else np.append(inside, inside[-1] + step)
