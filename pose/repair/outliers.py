"""Joints far from where they were a moment ago and will be in a moment: a Hampel filter in time, not in frames.

A sample is an outlier where it lies further from a robust local line than `THRESHOLD` times the spread of its
neighbours about that line (Hampel, Journal of the American Statistical Association, 1974, with the median and the
median absolute deviation; the line is that of Theil and Sen). The line lets a limb in steady motion pass, and all
neighbours within `WINDOW_SECONDS` count, however many frames these are.
"""

import numpy as np
from numpy.typing import NDArray

from pose.types import F32

WINDOW_SECONDS = 0.21  # to either side: six frames at 30 a second
FEWEST = 5  # sightings in the window; with fewer nothing is judged
THRESHOLD = 4.0  # robust standard deviations
FLOOR = 0.05  # of the person's size: what is closer to the line is no outlier, however still the joint
TO_SIGMA = 1.4826  # from the median absolute deviation of a normal distribution


def find_outliers(keypoints: F32, scores: F32, times: NDArray[np.float64], row: int) -> NDArray[np.bool_]:
    """(J,) which joints of frame `row` are outliers among the frames around it.

    keypoints: (T, J, 2) px. scores: (T, J), 0 where not seen. times: (T,) s. Frames further away than
    `WINDOW_SECONDS` are left out.
    """
    near = np.abs(times - times[row]) <= WINDOW_SECONDS
    seen = scores[near] > 0
    xy = np.where(seen[..., None], keypoints[near], np.nan).astype(np.float64)
    when = times[near] - times[row]
    judged = (scores[row] > 0) & (seen.sum(axis=0) >= FEWEST)
    if not judged.any():
        result: NDArray[np.bool_] = judged
        return result
    xy = xy[:, judged]
    first, second = np.triu_indices(len(when), 1)
    slopes = (xy[second] - xy[first]) / (when[second] - when[first])[:, None, None]
    levelled = xy - np.nanmedian(slopes, axis=0) * when[:, None, None]
    away = np.linalg.norm(levelled - np.nanmedian(levelled, axis=0), axis=-1)
    size = max(float(np.ptp(keypoints[row][scores[row] > 0], axis=0).max()), 1.0)
    limit = FLOOR * size + THRESHOLD * TO_SIGMA * np.nanmedian(away, axis=0)
    found = np.zeros(len(judged), bool)
    found[judged] = away[near[:row].sum()] > limit
    return found
