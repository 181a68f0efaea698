"""Sampling of a track's 2D keypoints and lifted 3D poses at given times, by local linear regression over time.

Linear interpolation has less noise between frames than at frames, which would bias the estimate of a camera's clock
offset. A kernel wider than a frame avoids this.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pose.multiview.types import POINTS, ViewTrack
from pose.structures.types import F32, F64, Flags

MAX_GAP_S = 0.15  # s; longest gap of detections around a sampled time

BATCH_TIMES = 2048  # times per batch, to bound the memory
MAX_COMPARED = 4096  # times at which two tracks are compared; long ones are compared at a lower rate


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of a track at K times."""

    pixels: F64  # (K, N, 2) px, 2D keypoints of the points `types.POINTS`
    velocity: F64  # (K, N, 2) px/s, velocity of the keypoints
    scores: F64  # (K, N), 0 where not detected
    joints: F64  # (K, 17, 3) m, root-relative lifted joints in the camera frame
    root: F64  # (K, 3) m, position of the root in the camera frame
    sigma: F64  # (K, 17) mm, uncertainty of the lifted joints
    present: Flags  # (K,) whether the track has frames near the time


def bandwidth(track: ViewTrack, min_width: float = 0.02) -> float:
    """Return the standard deviation in s of the kernel that smooths a track: 0.7 of its median frame interval."""
    count = len(track) - 1
    if count < 1:
        return max(min_width, 0.7 / 30)
    middle = [(count - 1) // 2, count // 2]
    low, high = np.partition(track.times[1:] - track.times[:-1], middle)[middle]  # faster than np.median
    return max(min_width, 0.7 * min(0.5 * (float(low) + float(high)), MAX_GAP_S))


def comparison_times(begin: float, end: float, rate: float) -> F64:
    """Return evenly spaced times from `begin` to `end`, s, at `rate` per second, at most `MAX_COMPARED`."""
    count = int((end - begin) * rate) + 1
    if count > MAX_COMPARED:
        return np.linspace(begin, end, MAX_COMPARED)
    return begin + np.arange(max(count, 0)) / rate


def sample(track: ViewTrack, instants: F64, width: float | None = None) -> Samples:
    """Sample the track at times on its own clock."""
    width = bandwidth(track) if width is None else width
    firsts = range(0, max(len(instants), 1), BATCH_TIMES)
    parts = [sample_tracks([track], instants[None, first : first + BATCH_TIMES], width) for first in firsts]
    columns = zip(
        *([getattr(part, column_field.name)[0] for column_field in fields(Samples)] for part in parts), strict=True
    )
    return Samples(*(column[0] if len(parts) == 1 else np.concatenate(column) for column in columns))


def sample_tracks(tracks: Sequence[ViewTrack], instants: F64, width: float | None = None) -> Samples:
    """Sample T tracks at once at instants (T, K) s of their clocks; `sample` bounds the memory for many."""
    widths = np.array([bandwidth(track) if width is None else width for track in tracks])
    frames, rows, inside = _neighbours(tracks, instants, widths)
    ahead = frames.times[rows] - instants.reshape(-1, 1)
    apart = np.abs(ahead)
    nearest = np.where(inside, apart, np.inf).min(axis=1, keepdims=True)
    nearest = np.where(np.isfinite(nearest), nearest, 0.0)
    # Relative to the nearest frame, so that both ends of a gap count and nothing underflows.
    kernel = np.repeat(widths, instants.shape[1])[:, None]
    weight = np.exp(-0.5 * (ahead**2 - nearest**2) / kernel**2) * inside
    scores = frames.scores[rows].take(POINTS, axis=-1).astype(np.float64)
    seen = weight[..., None] * (scores > 0)
    values, slopes = _local_line(frames.keypoints[rows].take(POINTS, axis=-2).astype(np.float64), seen, ahead)
    distance = np.where(seen > 0, apart[..., None], np.inf).min(axis=1)
    total = seen.sum(axis=1)
    score = np.divide((seen * scores).sum(axis=1), total, out=np.zeros_like(total), where=total > 0)
    present = np.where(weight > 0, apart, np.inf).min(axis=1) <= MAX_GAP_S
    body = np.concatenate([frames.joints.reshape(-1, 51), frames.root, frames.sigma], axis=1)
    share = weight / np.maximum(weight.sum(axis=1, keepdims=True), 1e-300)
    mean = np.einsum("kn,knd->kd", share, body[rows])
    shape = instants.shape
    return Samples(
        values.reshape(*shape, -1, 2),
        slopes.reshape(*shape, -1, 2),
        np.where((distance <= MAX_GAP_S) & present[:, None], score, 0.0).reshape(*shape, -1),
        mean[:, :51].reshape(*shape, 17, 3),
        mean[:, 51:54].reshape(*shape, 3),
        mean[:, 54:].reshape(*shape, 17),
        present.reshape(shape),
    )


class _Frames(NamedTuple):
    """Frames of several tracks, one track after another; arrays as of `ViewTrack`."""

    times: F64
    keypoints: F32
    scores: F32
    joints: F32
    root: F32
    sigma: F32


def _neighbours(tracks: Sequence[ViewTrack], instants: F64, widths: F64) -> tuple[_Frames, NDArray[np.int64], Flags]:
    """Find the frames around instants (T, K) s: indices (T K, n), and which of them count."""
    reach = np.maximum(3 * widths, MAX_GAP_S)[:, None]
    begin, end = instants - reach, instants + reach
    first = np.stack([np.searchsorted(track.times, own) for track, own in zip(tracks, begin, strict=True)])
    last = np.stack([np.searchsorted(track.times, own, side="right") for track, own in zip(tracks, end, strict=True)])
    count = max(int((last - first).max(initial=0)), 1)
    # At most 24 frames per time: at high frame rates, a subset is sufficient.
    stride = np.maximum(1, -(-(last - first) // 24))
    rows = first[..., None] + stride[..., None] * np.arange(min(count, 24))
    inside = rows < last[..., None]
    rows = np.minimum(rows, np.array([len(track) - 1 for track in tracks])[:, None, None])
    # Only these frames are copied: a track may be long, and in a file.
    low, high = rows.min(axis=(1, 2), initial=np.iinfo(np.int64).max), rows.max(axis=(1, 2), initial=-1) + 1
    spans = [slice(*span) for span in zip(low.tolist(), high.tolist(), strict=True)]
    frames = [
        [getattr(track, name)[span] for track, span in zip(tracks, spans, strict=True)] for name in _Frames._fields
    ]
    begins = np.cumsum([0, *(len(times) for times in frames[0][:-1])])
    rows = rows + (begins - low)[:, None, None]
    joined = _Frames(*(parts[0] if len(parts) == 1 else np.concatenate(parts) for parts in frames))
    return joined, rows.reshape(-1, rows.shape[-1]), inside.reshape(-1, rows.shape[-1])


def _local_line(values: F64, weight: F64, ahead: F64) -> tuple[F64, F64]:
    """Fit weighted lines to values (K, n, N, 2), and return values and slopes at time 0, (K, N, 2) each."""
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
