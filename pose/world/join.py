"""Joining of tracks of one person: one ends, and another starts soon after with matching position, pose and size.

A causal tracker must drop a person who is occluded for a second. After the run all frames are known, and the tracks of
the whole clip are joined in one assignment. Tracks are not joined across a cut, nor if they overlap in time.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pose.structures.assignment import best_pairs
from pose.structures.refine import lengths_of
from pose.structures.types import F64
from pose.world.person import Person
from pose.world.rules import JOINS

_END_S = 0.5  # s at the ends of a track from which position and velocity are estimated
_MIN_SCORE = 1e-9  # of tracks that may be one person
_MIN_FRAMES = 10  # minimum frames to estimate the size


def find_joins(
    people: Mapping[int, Person],
    scenes: Sequence[float],
    apart: Collection[tuple[int, int]] = (),
) -> dict[int, int]:
    """Return the id of a person's first track, by the id of each later track of the same person, not in `apart`."""
    tracks = {number: _track(person) for number, person in people.items()}
    scores = {
        (one, other): 1 - cost
        for one, before in tracks.items()
        for other, after in tracks.items()
        if one != other and (one, other) not in apart and (cost := _cost(before, after, scenes)) < 1
    }
    firsts, seconds = (sorted({pair[side] for pair in scores}) for side in (0, 1))
    matrix = np.array([[scores.get((one, other), 0.0) for other in seconds] for one in firsts])
    pairs = best_pairs(matrix, min_similarity=_MIN_SCORE) if scores else []  # of all tracks of the clip together
    preceding = {seconds[column]: firsts[row] for row, column in pairs}
    joined = {}
    for number in preceding:
        first = number
        while first in preceding:
            first = preceding[first]
        joined[number] = first
    return joined


@dataclass(frozen=True, slots=True)
class _Track:
    """Properties of a track."""

    begin: float  # time of the first frame, s
    end: float  # time of the last frame, s
    first_position: F64  # (3,) m, first position
    last_position: F64  # (3,) m, last position
    velocity: F64  # (3,) m/s, last velocity
    first_pose: F64  # (17, 3) m, first pose
    last_pose: F64  # (17, 3) m, last pose
    size: float | None  # sum of the bone lengths, m; None with too few frames


def _track(person: Person) -> _Track:
    first_position, _ = _end(person, 0)
    last_position, speed = _end(person, -1)
    size = float(lengths_of(person.joints, person.sigma).sum()) if len(person) >= _MIN_FRAMES else None
    begin, end = float(person.times[0]), float(person.times[-1])
    return _Track(
        begin, end, first_position, last_position, speed, person.joints[0].copy(), person.joints[-1].copy(), size
    )


def _cost(one: _Track, other: _Track, scenes: Sequence[float]) -> float:
    """Return the cost of joining two tracks; below 1 if they may be one person."""
    gap = other.begin - one.end
    if not 0 < gap <= JOINS.max_gap_s or any(one.end < at <= other.begin for at in scenes):
        return np.inf
    off = np.abs(other.first_position - one.last_position - one.velocity * min(gap, 1.0))
    across = float(np.hypot(off[0], off[1])) / (JOINS.max_across_m + JOINS.position_growth_mps * gap)
    along = float(off[2]) / (JOINS.max_along_m + JOINS.position_growth_mps * gap)
    pose = float(np.linalg.norm(one.last_pose - other.first_pose, axis=-1).mean())
    costs = [across, along, pose / (JOINS.max_pose_distance_m + JOINS.pose_growth_mps * gap)]
    if one.size is not None and other.size is not None:
        costs.append(abs(np.log(other.size / one.size)) / JOINS.max_size_difference_share)
    return max(costs)


def _end(person: Person, at: int) -> tuple[F64, F64]:
    """Return position (3,) m and velocity (3,) m/s at one end of a track (0 or -1), from a line through frames."""
    # The depth is the median of the neighbouring frames, since single frames have large depth errors.
    near = np.abs(person.times - person.times[at]) <= _END_S
    times, roots = person.times[near] - person.times[at], person.root[near]
    place = np.append(person.root[at, :2], np.median(roots[:, 2]))
    if len(times) < 4 or np.ptp(times) < _END_S / 2:
        return place, np.zeros(3)
    speed = np.polyfit(times, roots, 1)[0]
    return place, np.append(speed[:2], 0.0)
