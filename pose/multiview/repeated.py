"""Share of the observations that do not repeat earlier ones.

The errors of a detector depend on the image, so a motion that is repeated, such as a played loop, repeats its errors.
They then do not average out, and a calibration is as certain as one from the motion seen once.
"""

from collections.abc import Sequence

import numpy as np

from pose.multiview.observations import Observed
from pose.structures.types import F64, Flags

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
