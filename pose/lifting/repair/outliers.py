"""Outliers among the keypoints of a joint over time: a Hampel filter in time, not in frames.

A sample is an outlier if it is far from a robust local line. The limit is `MAX_SIGMAS` times the spread of its
neighbours about this line, plus a minimum distance. The spread is the median absolute deviation (Hampel, Journal of the
American Statistical Association, 1974); the line is that of Theil and Sen, which follows steady motion. All samples
within `WINDOW_SECONDS` are neighbours, independent of the frame rate.
"""

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F32, F64

WINDOW_SECONDS = 0.21  # s to either side: six frames at 30 frames/s
MIN_NEIGHBOURS = 5  # minimum observations in the window; with fewer, no sample is an outlier
MAX_SIGMAS = 4.0  # robust standard deviations
MIN_DISTANCE = 0.05  # minimum distance of an outlier, relative to the person's size in the image
MAD_TO_SIGMA = 1.4826  # standard deviation of a normal distribution over its median absolute deviation


def find_outliers(keypoints: F32, scores: F32, times: NDArray[np.float64], row: int) -> NDArray[np.bool_]:
    """Return (J,) whether each joint is an outlier in frame `row`, compared with frames within `WINDOW_SECONDS`."""
    near = np.abs(times - times[row]) <= WINDOW_SECONDS
    seen = scores[near] > 0
    xy = np.where(seen[..., None], keypoints[near], np.nan).astype(np.float64)
    when = times[near] - times[row]
    tested = (scores[row] > 0) & (seen.sum(axis=0) >= MIN_NEIGHBOURS)
    if not tested.any():
        result: NDArray[np.bool_] = tested
        return result
    xy = np.ascontiguousarray(xy[:, tested].transpose(1, 2, 0))  # (joints, 2, T)
    first, second = np.triu_indices(len(when), 1)
    slopes = (xy[..., second] - xy[..., first]) / (when[second] - when[first])
    levelled = xy - _median(slopes)[..., None] * when
    away = np.linalg.norm(levelled - _median(levelled)[..., None], axis=1)
    size = max(float(np.ptp(keypoints[row][scores[row] > 0], axis=0).max()), 1.0)
    limit = MIN_DISTANCE * size + MAX_SIGMAS * MAD_TO_SIGMA * _median(away)
    found = np.zeros(len(tested), bool)
    found[tested] = away[:, near[:row].sum()] > limit
    return found


def _median(values: F64) -> F64:
    """Return the medians over the last axis without NaN. `numpy.nanmedian` takes three times as long."""
    ordered = np.sort(values, axis=-1)  # NaN last
    count = (~np.isnan(values)).sum(axis=-1, keepdims=True)
    low, high = (np.take_along_axis(ordered, place, axis=-1)[..., 0] for place in ((count - 1) // 2, count // 2))
    return np.asarray((low + high) / 2)
