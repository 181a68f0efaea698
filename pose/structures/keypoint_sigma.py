"""Uncertainty of 2D keypoints: the radius that contains the true point with a probability of 68 %.

The variance has a constant part, a part that falls with the score, and one from the distance between networks. The
constants were calibrated on two calibrated real views (`docs/studies/keypoints.md`), for BlazePose and MoveNet Thunder;
scores of other networks have other scales.
"""

import numpy as np

from pose.structures.types import F32

RADIUS_68_2D = 1.515  # standard deviations of an axis: the radius that holds 68.27 % of a two-dimensional normal
# Standard deviations of a coordinate relative to the person's height: with score 1, and the root of the added variance
# with score 0.
_CERTAIN, _UNCERTAIN = 0.011, 0.05
_PER_DISTANCE = 0.5  # standard deviation of a coordinate over the root mean square distance of networks from their mean


def score_sigma(xy: F32, scores: F32) -> F32:
    """Return the radius (P, J) px for keypoints (P, J, 2) px of one network with scores; 0 where not seen."""
    seen = scores > 0
    low = np.where(seen[..., None], xy, np.inf).min(axis=1, initial=np.inf)
    high = np.where(seen[..., None], xy, -np.inf).max(axis=1, initial=-np.inf)
    heights = np.where(seen.any(axis=1), (high - low).max(axis=-1, initial=0), 0)[:, None]
    deviation = heights * np.sqrt(_CERTAIN**2 + _UNCERTAIN**2 * (1 - scores))
    return np.where(seen, RADIUS_68_2D * deviation, 0).astype(np.float32)


def with_distance(sigma: F32, distance: F32) -> F32:
    """Return sigma (P, J) px of the mean of several networks, whose root mean square distance from it is in px."""
    return np.where(sigma > 0, np.hypot(sigma, RADIUS_68_2D * _PER_DISTANCE * distance), 0).astype(np.float32)
