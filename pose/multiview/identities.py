"""Matching of people across calibrated cameras: tracks whose rays meet and whose motions agree are one person.

Clusters of tracks grow from the best match. Two tracks of one camera that overlap in time are two people, and so are
tracks of two cameras whose rays do not meet. Such tracks never share a cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pose.multiview.sampling import comparison_times, sample
from pose.multiview.stored import joined_track
from pose.multiview.types import LIMB_POINTS, POINTS, ViewCamera, ViewTrack
from pose.structures.types import F64

RATE = 10.0  # samples/s for the comparison
MIN_SAMPLES = 4  # minimum samples
RAY_DISTANCE_M = 0.06  # m, typical distance of the rays of one joint
JOINT_DISTANCE_M = 0.10  # m, typical distance between two cameras' lifted positions of one joint
MAX_RAY_DISTANCE_M = 0.16  # m, maximum distance of rays of one person, median over joints and time
MAX_JOINT_DISTANCE_M = 0.24  # m, maximum distance between lifted positions of one person, median likewise
MAX_OVERLAP_S = 0.3  # s, maximum overlap of two tracks of one person in one camera


@dataclass(frozen=True, slots=True)
class Agreement:
    """Result of the comparison of two tracks."""

    # The cost is (r / `RAY_DISTANCE_M`)^2 + (d / `JOINT_DISTANCE_M`)^2. Here r is the median distance between both
    # cameras' rays to a joint, and d that between both lifted positions relative to the root. It is inf if r or d is
    # too large for one person.

    cost: float  # mismatch of the tracks: (r / `RAY_DISTANCE_M`)^2 + (d / `JOINT_DISTANCE_M`)^2
    overlap_s: float  # time for which both tracks exist, s


def find_people(tracks: Sequence[ViewTrack], cameras: Sequence[ViewCamera]) -> list[list[int]]:
    """Return the indices of the tracks of each person; the person with the most frames is first."""
    agreements = _agreements(tracks, cameras)
    clusters = [[row] for row in range(len(tracks))]
    while True:
        best, pair = np.inf, (0, 0)
        for i, cluster in enumerate(clusters):
            for j in range(i):
                cost = _cost(cluster, clusters[j], agreements)
                if cost < best:
                    best, pair = cost, (j, i)
        if not np.isfinite(best):
            break
        clusters[pair[0]] += clusters.pop(pair[1])
    return sorted((sorted(cluster) for cluster in clusters), key=lambda one: -sum(len(tracks[row]) for row in one))


def merge_tracks(tracks: Sequence[ViewTrack], rows: Sequence[int]) -> dict[int, ViewTrack]:
    """Merge the tracks (rows) of one person into one per camera; where two overlap, the longer one counts."""
    merged: dict[int, ViewTrack] = {}
    for row in sorted(rows, key=lambda row: -len(tracks[row])):
        track = tracks[row]
        if track.camera not in merged:
            merged[track.camera] = track
            continue
        base = merged[track.camera]
        new = ~np.isin(track.times, base.times)
        if new.any():
            merged[track.camera] = joined_track(base, track if new.all() else track[new])
    return merged


def _agreements(tracks: Sequence[ViewTrack], cameras: Sequence[ViewCamera]) -> dict[tuple[int, int], Agreement]:
    """Return the agreement of all pairs of tracks that overlap in time, by their indices in increasing order."""
    agreements = {}
    for i, track in enumerate(tracks):
        for j in range(i):
            other = tracks[j]
            if track.camera == other.camera:
                overlap = min(track.times[-1], other.times[-1]) - max(track.times[0], other.times[0])
                if overlap > MAX_OVERLAP_S:
                    agreements[j, i] = Agreement(np.inf, float(overlap))
                continue
            agreement = compare_tracks(track, other, cameras[track.camera], cameras[other.camera])
            if agreement is not None:
                agreements[j, i] = agreement
    return agreements


def _cost(one: list[int], other: list[int], agreements: dict[tuple[int, int], Agreement]) -> float:
    """Return the mean cost over overlapping tracks of two clusters; inf if none overlap or any is two people."""
    pairs = [agreements[key] for a in one for b in other if (key := (min(a, b), max(a, b))) in agreements]
    total = sum(pair.overlap_s for pair in pairs)
    if not total or any(pair.cost == np.inf for pair in pairs):
        return np.inf
    return sum(pair.cost * pair.overlap_s for pair in pairs) / total


def compare_tracks(one: ViewTrack, other: ViewTrack, first: ViewCamera, second: ViewCamera) -> Agreement | None:
    """Compare tracks of two cameras; return None if too few times have detections in both."""
    begin = max(first.common_time(one.times[:1])[0], second.common_time(other.times[:1])[0])
    end = min(first.common_time(one.times[-1:])[0], second.common_time(other.times[-1:])[0])
    instants = comparison_times(begin, end, RATE)
    if len(instants) < MIN_SAMPLES:
        return None
    a, b = sample(one, first.own_time(instants)), sample(other, second.own_time(instants))
    seen = (a.scores[:, LIMB_POINTS] > 0.1) & (b.scores[:, LIMB_POINTS] > 0.1)
    if seen.any(axis=1).sum() < MIN_SAMPLES:
        return None
    rays_a = world_rays(a.pixels[:, LIMB_POINTS], first)
    rays_b = world_rays(b.pixels[:, LIMB_POINTS], second)
    apart, front = ray_distance(first.position, rays_a, second.position, rays_b)
    ray_gap = float(np.median(np.where(front, apart, 10.0)[seen]))
    limbs = POINTS[LIMB_POINTS]
    in_both = a.present & b.present
    lifted = a.joints[in_both][:, limbs] @ first.rotation - b.joints[in_both][:, limbs] @ second.rotation
    unlike = float(np.median(np.linalg.norm(lifted, axis=-1)))
    cost = (ray_gap / RAY_DISTANCE_M) ** 2 + (unlike / JOINT_DISTANCE_M) ** 2
    return Agreement(
        np.inf if ray_gap > MAX_RAY_DISTANCE_M or unlike > MAX_JOINT_DISTANCE_M else cost,
        len(instants) * float(instants[1] - instants[0]),
    )


def world_rays(pixels: F64, camera: ViewCamera) -> F64:
    """Return unit vectors (..., 3) along the rays of pixels (..., 2), in world axes."""
    ray = camera.unproject(pixels)
    whole = np.concatenate([ray, np.ones_like(ray[..., :1])], axis=-1) @ camera.rotation
    unit: F64 = whole / np.linalg.norm(whole, axis=-1, keepdims=True)
    return unit


def ray_distance(start_a: F64, a: F64, start_b: F64, b: F64) -> tuple[F64, np.ndarray]:
    """Return distances (...) m between rays of two cameras, and whether they are closest in front of both."""
    between = start_b - start_a
    cosine = (a * b).sum(axis=-1)
    along_a, along_b = a @ between, b @ between
    spread = np.maximum(1 - cosine**2, 1e-6)
    s = (along_a - cosine * along_b) / spread
    t = (cosine * along_a - along_b) / spread
    gap = between + t[..., None] * b - s[..., None] * a
    return np.linalg.norm(gap, axis=-1), (s > 0) & (t > 0)
