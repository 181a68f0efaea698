"""Tracks that were one person's: one ends, another begins soon after, where, how and as large as the first would be.

A tracker forgets who is hidden for a second, and has to: it does not know what comes. After the run everything is
known. Nothing is joined across a cut, and two tracks that were there at the same time are two people.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.refine import lengths_of
from pose.world.person import Person
from pose.world.rules import RULES, JoinRules

F64 = NDArray[np.float64]

_NEAR_END = 0.5  # s at the ends of a track that say where and how fast somebody was
_ENOUGH = 10  # frames that say how large somebody is


def find_joins(people: Mapping[int, Person], scenes: Sequence[float], rules: JoinRules = RULES.joins) -> dict[int, int]:
    """What track, by its id, is which earlier person's.

    scenes: s, when each scene begins, the first included.
    """
    tracks = {number: _track(person) for number, person in people.items()}
    costs = {
        (one, other): cost
        for one, before in tracks.items()
        for other, after in tracks.items()
        if one != other and (cost := _cost(before, after, scenes, rules)) < 1
    }
    following: dict[int, int] = {}
    preceding: dict[int, int] = {}
    for one, other in sorted(costs, key=lambda pair: costs[pair]):
        if one not in following and other not in preceding:
            following[one], preceding[other] = other, one
    joined = {}
    for number in preceding:
        first = number
        while first in preceding:
            first = preceding[first]
        joined[number] = first
    return joined


@dataclass(frozen=True, slots=True)
class _Track:
    """What a track says of who it may be. begin, end: s. came: (3,) m, where it begins; went, speed: (3,) m and m/s,
    where and how it ends. first, last: (17, 3) m, the poses. size: m, the sum of the bones; None of too few frames.
    """

    begin: float
    end: float
    came: F64
    went: F64
    speed: F64
    first: F64
    last: F64
    size: float | None


def _track(person: Person) -> _Track:
    came, _ = _end(person, 0)
    went, speed = _end(person, -1)
    size = float(lengths_of(person.joints, person.sigma).sum()) if len(person) >= _ENOUGH else None
    begin, end = float(person.times[0]), float(person.times[-1])
    return _Track(begin, end, came, went, speed, person.joints[0].copy(), person.joints[-1].copy(), size)


def _cost(one: _Track, other: _Track, scenes: Sequence[float], rules: JoinRules) -> float:
    """Below 1 where the second track may go on with the person of the first."""
    gap = other.begin - one.end
    if not 0 < gap <= rules.longest_gap_s or any(one.end < at <= other.begin for at in scenes):
        return np.inf
    off = np.abs(other.came - one.went - one.speed * min(gap, 1.0))
    across = float(np.hypot(off[0], off[1])) / (rules.across_m + rules.growth_mps * gap)
    along = float(off[2]) / (rules.along_m + rules.growth_mps * gap)
    pose = float(np.linalg.norm(one.last - other.first, axis=-1).mean())
    costs = [across, along, pose / (rules.pose_m + rules.pose_growth_mps * gap)]
    if one.size is not None and other.size is not None:
        costs.append(abs(np.log(other.size / one.size)) / rules.bone_share)
    return max(costs)


def _end(person: Person, at: int) -> tuple[F64, F64]:
    """Where (3,) m somebody is at the first (0) or last (-1) frame, and how fast (3,) m/s, by a line through the frames
    near it; depth by its median, since single frames err most in it.
    """
    near = np.abs(person.times - person.times[at]) <= _NEAR_END
    times, roots = person.times[near] - person.times[at], person.root[near]
    place = np.append(person.root[at, :2], np.median(roots[:, 2]))
    if len(times) < 4 or np.ptp(times) < _NEAR_END / 2:
        return place, np.zeros(3)
    speed = np.polyfit(times, roots, 1)[0]
    return place, np.append(speed[:2], 0.0)
