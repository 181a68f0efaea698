"""Initialisation of bundle adjustment from the 3D poses of each camera: clock offsets, camera poses, matched people.

For a pair of cameras, each hypothesis is a lag and a rotation from one pair of tracks. The best hypothesis is that on
which the most other tracks agree. The rotation aligns the root-relative motions of the tracks, reweighted against
outliers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pose.multiview.sampling import comparison_times, sample
from pose.multiview.synchronise import Lag, Speeds, lags, speeds_of
from pose.multiview.types import LIMB_POINTS, POINTS, ViewTrack
from pose.structures.alignment import best_rotation
from pose.structures.assignment import best_pairs
from pose.structures.types import F64

RATE = 10.0  # samples/s for the comparison of motions
MIN_INSTANTS = 6  # minimum number of common instants of two tracks
MAX_RESIDUAL_M = 0.16  # m; maximum median residual of two tracks of one person
HALF_WEIGHT_M = 0.1  # m, residual at which a joint has half the weight
MIN_LAG_DIFFERENCE_S = 0.15  # s, minimum difference of two distinct lags


@dataclass(frozen=True, slots=True)
class Link:
    """Relative pose and lag of two cameras: x_second = rotation @ x_first + translation."""

    first: int  # index of the first camera
    second: int  # index of the second camera
    lag: float  # time in s that converts the second camera's clock to the first's when added to it
    rotation: F64  # (3, 3), from the axes of the first camera to those of the second
    translation: F64  # (3,) m
    pairs: tuple[tuple[int, int], ...]  # indices (first, second) of matched tracks of the first and the second camera
    quality: float  # sum over `pairs` of the duration in s that both tracks share, times their agreement (0 to 1)
    significance: float = np.inf  # significance of the lag from joint speeds, in standard deviations from chance
    other_lag: float = np.nan  # another lag that fits about equally well, s; NaN if there is none


def link_cameras(
    tracks: Sequence[ViewTrack],
    first: int,
    second: int,
    speeds: dict[int, Speeds],
    offset: float | None = None,
    near: tuple[float, float] | None = None,
) -> list[Link]:
    """Return links between two cameras with distinct lags, best first; an empty list if no tracks agree."""
    mine = [i for i, track in enumerate(tracks) if track.camera == first]
    theirs = [i for i, track in enumerate(tracks) if track.camera == second]
    found = []
    for lag in _candidates(mine, theirs, speeds, offset, near):
        link = _link_at(tracks, first, second, mine, theirs, lag.seconds)
        if link is not None and link.pairs:
            found.append(replace(link, significance=lag.significance))
    distinct: list[Link] = []
    for link in sorted(found, key=lambda link: -link.quality):
        if all(abs(link.lag - other.lag) > MIN_LAG_DIFFERENCE_S for other in distinct):
            distinct.append(link)
    return distinct


def _candidates(
    mine: list[int],
    theirs: list[int],
    speeds: dict[int, Speeds],
    offset: float | None,
    near: tuple[float, float] | None,
) -> list[Lag]:
    if offset is not None:
        return [Lag(offset, np.inf)]
    candidates = [lag for a in mine for b in theirs for lag in lags(speeds[a], speeds[b], near=near)]
    chosen: list[Lag] = []
    for lag in sorted(candidates, key=lambda lag: -lag.significance):
        if all(abs(lag.seconds - better.seconds) > 0.07 for better in chosen):
            chosen.append(lag)
    return chosen[:8]


def _link_at(
    tracks: Sequence[ViewTrack], first: int, second: int, mine: list[int], theirs: list[int], lag: float
) -> Link | None:
    """Find the best rotation at a lag (s), over all pairs of tracks; return None if no pair agrees."""
    motions = {
        (a, b): motion
        for a in mine
        for b in theirs
        if (motion := _common_motion(tracks[a], tracks[b], lag)) is not None
    }
    best: Link | None = None
    for pair in sorted(motions, key=lambda pair: -len(motions[pair][0]))[:12]:
        rotation, residual = align(motions[pair][0], motions[pair][1])
        if residual > MAX_RESIDUAL_M:
            continue
        weight = np.zeros((len(mine), len(theirs)))
        for (a, b), motion in motions.items():
            error = _residual(motion[0], motion[1], rotation)
            weight[mine.index(a), theirs.index(b)] = max(0.0, 1 - (error / MAX_RESIDUAL_M) ** 2) * motion[4]
        pairs = best_pairs(weight, min_similarity=1e-6)
        quality = float(sum(weight[row, column] for row, column in pairs))
        if best is None or quality > best.quality:
            named = tuple((mine[row], theirs[column]) for row, column in pairs)
            move = _translation([motions[one] for one in named], rotation)
            best = Link(first, second, lag, rotation, move, named, quality)
    return best


def _common_motion(one: ViewTrack, other: ViewTrack, lag: float) -> tuple[F64, F64, F64, F64, float] | None:
    """Return two tracks' limb joints (K, 12, 3) m and roots (K, 3) m at common times, and the duration, or None."""
    begin = max(one.times[0], other.times[0] + lag)
    end = min(one.times[-1], other.times[-1] + lag)
    instants = comparison_times(float(begin), float(end), RATE)
    if len(instants) < MIN_INSTANTS:
        return None
    a, b = sample(one, instants), sample(other, instants - lag)
    in_both = a.present & b.present
    if in_both.sum() < MIN_INSTANTS:
        return None
    limbs = POINTS[LIMB_POINTS]
    seconds = float(in_both.sum() * (instants[1] - instants[0]))
    return a.joints[in_both][:, limbs], b.joints[in_both][:, limbs], a.root[in_both], b.root[in_both], seconds


def align(source: F64, target: F64) -> tuple[F64, float]:
    """Return the robust rotation (3, 3) with target = R source, (K, J, 3) m each, and the median residual in m."""
    weight = np.ones(source.shape[:2])
    rotation = np.eye(3)
    for _ in range(10):
        rotation = best_rotation(np.einsum("kjc,kj,kjd->cd", source, weight, target)[None])[0].T
        error = np.linalg.norm(source @ rotation.T - target, axis=-1)
        weight = 1 / (1 + (error / HALF_WEIGHT_M) ** 2)
    return rotation, _residual(source, target, rotation)


def _residual(source: F64, target: F64, rotation: F64) -> float:
    return float(np.median(np.linalg.norm(source @ rotation.T - target, axis=-1)))


def _translation(motions: list[tuple[F64, F64, F64, F64, float]], rotation: F64) -> F64:
    moves = np.concatenate([theirs - mine @ rotation.T for _, _, mine, theirs, _ in motions])
    middle: F64 = np.median(moves, axis=0)
    return middle


def all_speeds(tracks: Sequence[ViewTrack]) -> dict[int, Speeds]:
    """Return the joint speeds of each track, by its index."""
    return {row: speeds_of(track) for row, track in enumerate(tracks)}


def spanning_links(links: Sequence[Link], cameras: int) -> list[Link]:
    """Choose links from connected to new cameras, best first, to connect as many as possible to the first one."""
    reached, chosen = {0}, []
    while len(reached) < cameras:
        open_links = [link for link in links if (link.first in reached) != (link.second in reached)]
        if not open_links:
            break
        link = max(open_links, key=lambda link: link.quality)
        chosen.append(link if link.first in reached else reverse(link))
        reached.add(chosen[-1].second)
    return chosen


def reverse(link: Link) -> Link:
    """Return the link in the opposite direction, from the second camera to the first."""
    rotation = link.rotation.T
    return replace(
        link,
        first=link.second,
        second=link.first,
        lag=-link.lag,
        rotation=rotation,
        translation=-rotation @ link.translation,
        pairs=tuple((b, a) for a, b in link.pairs),
        other_lag=-link.other_lag,
    )
