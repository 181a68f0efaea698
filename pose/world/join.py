"""Tracks that were one person's: one ends, another begins soon after, where, how and as large as the first would be.

A tracker forgets who is hidden for a second, and has to: it does not know what comes. After the run everything is
known. Nothing is joined across a cut, and two tracks that were there at the same time are two people.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pose.refine import lengths_of
from pose.world.person import Person
from pose.world.rules import RULES, JoinRules

F64 = NDArray[np.float64]

_NEAR_END = 0.5  # s at the ends of a track that say where and how fast somebody was
_ENOUGH = 10  # frames that say how large somebody is


def find_joins(
    people: Mapping[int, Person], scenes: Sequence[float], end: float, rules: JoinRules = RULES.joins
) -> tuple[dict[int, int], set[int]]:
    """What track, by its id, is which earlier person's, and which tracks show nobody.

    scenes: s, when each scene begins, the first included. end: s, of the last frame.
    """
    dropped = {number for number, person in people.items() if _fleeting(person, scenes, end, rules)}
    left = [number for number in people if number not in dropped]
    costs = {
        (one, other): cost
        for one in left
        for other in left
        if one != other and (cost := _cost(people[one], people[other], scenes, rules)) < 1
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
    return joined, dropped


def _fleeting(person: Person, scenes: Sequence[float], end: float, rules: JoinRules) -> bool:
    """Whether a track lasts a moment only; who comes in or goes as a scene ends or begins may do so."""
    first, last = float(person.times[0]), float(person.times[-1])
    ends = [*scenes, end]
    return last - first < rules.fleeting and all(min(abs(first - at), abs(last - at)) > rules.fleeting for at in ends)


def _cost(one: Person, other: Person, scenes: Sequence[float], rules: JoinRules) -> float:
    """Below 1 where the second track may go on with the person of the first."""
    gap = float(other.times[0] - one.times[-1])
    if not 0 < gap <= rules.longest or any(one.times[-1] < at <= other.times[0] for at in scenes):
        return np.inf
    before, speed = _end(one, -1)
    after, _ = _end(other, 0)
    off = np.abs(after - before - speed * min(gap, 1.0))
    across = float(np.hypot(off[0], off[1])) / (rules.across + rules.speed * gap)
    along = float(off[2]) / (rules.along + rules.speed * gap)
    pose = float(np.linalg.norm(one.joints[-1] - other.joints[0], axis=-1).mean())
    costs = [across, along, pose / (rules.pose + rules.turning * gap)]
    if min(len(one), len(other)) >= _ENOUGH:
        sizes = [float(lengths_of(person.joints, person.sigma).sum()) for person in (one, other)]
        costs.append(abs(np.log(sizes[1] / sizes[0])) / rules.size)
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
