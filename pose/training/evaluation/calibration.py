"""Calibration of uncertainties: errors compared with the predicted sigma.

The sigma of a joint is the radius that contains the true joint with probability 0.68. Errors are counted in a 2D
histogram over sigma and error / sigma. It gives the fraction of errors within any multiple of sigma.
"""

import itertools
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F64

EXPECTED_SHARE = 0.68
SIGMA_EDGES = np.geomspace(2, 512, 25)  # mm
RATIO_EDGES = np.linspace(0, 5, 101)


class Bin(TypedDict):
    """One bin of sigma."""

    sigma: float  # geometric mean of the bin's edges, mm
    joints: int  # number of joint errors in the bin
    error_68: NotRequired[float]  # 68th percentile of the errors, mm


class SigmaCalibration(TypedDict):
    """Fractions of errors within multiples of sigma."""

    expected_inside_one_sigma: float  # fraction of errors within 1 sigma of a calibrated prediction, 0.68
    inside_one_sigma: float  # fraction of errors within 1 sigma
    multiples_of_sigma: list[float]  # multiples of sigma, 0.05 to 5
    inside: list[float]  # fraction of errors within each of these multiples
    by_sigma: list[Bin]  # bins of sigma that contain errors


def count(errors: F64, sigma: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return counts (24, 101) of errors over bins of sigma and of error / sigma, the last beyond 5 sigma."""
    sigma_bins, ratio_bins = len(SIGMA_EDGES) - 1, len(RATIO_EDGES)
    per_bin = np.log(SIGMA_EDGES[1] / SIGMA_EDGES[0])
    row = np.clip(np.log(sigma.ravel() / SIGMA_EDGES[0]) / per_bin, 0, sigma_bins - 1).astype(np.int64)
    column = np.minimum(errors.ravel() / sigma.ravel() / RATIO_EDGES[1], ratio_bins - 1).astype(np.int64)
    return np.bincount(row * ratio_bins + column, minlength=sigma_bins * ratio_bins).reshape(sigma_bins, ratio_bins)


def summarize(counts: NDArray[np.int64]) -> SigmaCalibration:
    """Summarise the counts returned by `count`."""
    total = counts.sum()
    inside = np.cumsum(counts.sum(axis=0)[:-1]) / total
    one_sigma = int(np.argmin(np.abs(RATIO_EDGES - 1)))
    rows = [_row(low, high, row) for (low, high), row in zip(itertools.pairwise(SIGMA_EDGES), counts, strict=True)]
    return {
        "expected_inside_one_sigma": EXPECTED_SHARE,
        "inside_one_sigma": float(inside[one_sigma - 1]),
        "multiples_of_sigma": RATIO_EDGES[1:].round(6).tolist(),
        "inside": inside.tolist(),
        "by_sigma": [row for row in rows if row["joints"]],
    }


def _row(low: float, high: float, row: NDArray[np.int64]) -> Bin:
    middle = float(np.sqrt(low * high))
    joints = int(row.sum())
    if not joints:
        return {"sigma": middle, "joints": 0}
    shares = np.cumsum(row[:-1]) / joints
    multiple = float(np.interp(EXPECTED_SHARE, [0, *shares], RATIO_EDGES))
    return {"sigma": middle, "joints": joints, "error_68": multiple * middle}
