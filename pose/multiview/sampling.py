"""Sampling of a track's 2D keypoints and lifted 3D poses at given times, by local linear regression over time.

Linear interpolation has less noise between frames than at frames, which would bias the estimate of a camera's clock
offset. A kernel wider than a frame avoids this.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from pose.multiview.types import POINTS, ViewTrack
from pose.types import F64, Flags

LONGEST_GAP = 0.15  # s; longest gap of detections around a sampled time

AT_ONCE = 2048  # times per batch, to bound the memory
MAX_COMPARED = 4096  # times at which two tracks are compared; long ones are compared at a lower rate


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of a track at K times.

    Attributes:
        pixels: (K, N, 2) px, 2D keypoints of the points `types.POINTS`.
        velocity: (K, N, 2) px/s, velocity of the keypoints.
        scores: (K, N), 0 where not detected.
        joints: (K, 17, 3) m, root-relative lifted joints in the camera frame.
        root: (K, 3) m, position of the root in the camera frame.
        sigma: (K, 17) mm, uncertainty of the lifted joints.
        present: (K,) whether the track has frames around the time.
    """

    pixels: F64
    velocity: F64
    scores: F64
    joints: F64
    root: F64
    sigma: F64
    present: Flags


def bandwidth(track: ViewTrack, least: float = 0.02) -> float:
    """Return the width in s of a kernel that includes one frame on each side at the track's frame rate.

    Args:
        track: The track.
        least: Minimum width, s.
    """
    step = float(np.median(np.diff(track.times))) if len(track) > 1 else 1 / 30
    return max(least, 0.7 * min(step, LONGEST_GAP))


def comparison_times(begin: float, end: float, rate: float) -> F64:
    """Return evenly spaced times from `begin` to `end`, s, at `rate` samples/s.

    The rate is reduced if there would be more than `MAX_COMPARED` times.
    """
    count = int((end - begin) * rate) + 1
    if count > MAX_COMPARED:
        return np.linspace(begin, end, MAX_COMPARED)
    return begin + np.arange(max(count, 0)) / rate


def sample(track: ViewTrack, instants: F64, width: float | None = None) -> Samples:
    """Sample the track at times on its own clock.

    Args:
        track: The track.
        instants: (K,) s, times of the samples.
        width: Standard deviation of the Gaussian smoothing kernel, s; None for the result of `bandwidth`.
    """
    width = bandwidth(track) if width is None else width
    if len(instants) <= AT_ONCE:
        return _sample(track, instants, width)
    parts = [_sample(track, instants[first : first + AT_ONCE], width) for first in range(0, len(instants), AT_ONCE)]
    return Samples(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Samples)))


def _sample(track: ViewTrack, instants: F64, width: float) -> Samples:
    rows, weight, ahead = _neighbours(track.times, instants, width)
    near = weight > 0
    scores = track.scores[rows][..., POINTS].astype(np.float64)
    seen = weight[..., None] * (scores > 0)
    values, slopes = _local_line(track.keypoints[rows][:, :, POINTS].astype(np.float64), seen, ahead)
    distance = np.where(seen > 0, np.abs(ahead)[..., None], np.inf).min(axis=1)
    total = seen.sum(axis=1)
    score = np.divide((seen * scores).sum(axis=1), total, out=np.zeros_like(total), where=total > 0)
    present = near.any(axis=1) & (np.where(near, np.abs(ahead), np.inf).min(axis=1) <= LONGEST_GAP)
    used = slice(int(rows.min(initial=len(track))), int(rows.max(initial=0)) + 1)  # avoids a copy of a long track
    part = track[used]
    body = np.concatenate([part.joints.reshape(len(part), 51), part.root, part.sigma], axis=1)
    share = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    mean = np.einsum("kn,knd->kd", share, body[rows - used.start])
    return Samples(
        values,
        slopes,
        np.where((distance <= LONGEST_GAP) & present[:, None], score, 0.0),
        mean[:, :51].reshape(-1, 17, 3),
        mean[:, 51:54],
        mean[:, 54:],
        present,
    )


def _neighbours(times: F64, instants: F64, width: float) -> tuple[NDArray[np.int64], F64, F64]:
    """Return the indices (K, n) of the frames around each time, their Gaussian weights, and their times relative to it
    in s.

    Frames that are too far have weight 0.
    """
    reach = max(3 * width, LONGEST_GAP)
    first = np.searchsorted(times, instants - reach)
    last = np.searchsorted(times, instants + reach, side="right")
    count = max(int((last - first).max(initial=0)), 1)
    # At most 24 frames per time: at high frame rates, a subset is sufficient.
    stride = np.maximum(1, -(-(last - first) // 24))
    rows = first[:, None] + stride[:, None] * np.arange(min(count, 24))
    inside = rows < last[:, None]
    rows = np.minimum(rows, len(times) - 1)
    ahead = times[rows] - instants[:, None]
    nearest = np.where(inside, np.abs(ahead), np.inf).min(axis=1, keepdims=True, initial=np.inf)
    nearest = np.where(np.isfinite(nearest), nearest, 0.0)
    # Relative to the nearest frame, so that both ends of a gap count and nothing underflows.
    weight = np.exp(-0.5 * (ahead**2 - nearest**2) / width**2) * inside
    return rows, weight, ahead


def _local_line(values: F64, weight: F64, ahead: F64) -> tuple[F64, F64]:
    """Fit weighted lines to values over time, and return their values and slopes at time 0, (K, N, 2) each.

    Args:
        values: (K, n, N, 2) values.
        weight: (K, n, N) weights.
        ahead: (K, n) s, times of the values.
    """
    at = ahead[..., None]
    s0, s1, s2 = weight.sum(axis=1), (weight * at).sum(axis=1), (weight * at * at).sum(axis=1)
    m0 = np.einsum("knj,knjc->kjc", weight, values)
    m1 = np.einsum("knj,kn,knjc->kjc", weight, ahead, values)
    spread = s0 * s2 - s1 * s1
    line = spread > 1e-9 * np.maximum(s0 * s0, 1e-300)  # False if there is only one frame
    spread = np.where(line, spread, 1.0)[..., None]
    mean = m0 / np.maximum(s0, 1e-300)[..., None]
    value = np.where(line[..., None], (s2[..., None] * m0 - s1[..., None] * m1) / spread, mean)
    slope = np.where(line[..., None], (s0[..., None] * m1 - s1[..., None] * m0) / spread, 0.0)
    return value, slope
