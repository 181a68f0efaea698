"""Live estimate of gravity and floor, updated repeatedly from past frames and displayed with smoothing.

The estimate changes over time. The displayed world follows it slowly, without jumps, and rotates about the feet, which
therefore keep their position on the screen.
"""

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from pose.structures.types import F64
from pose.world.floor import ANKLE_HEIGHT, common_floor, own_floor
from pose.world.frame import UNKNOWN, World, rotation_of
from pose.world.gravity import ANKLES, BodyMotion, find_gravity, given_gravity
from pose.world.live_rules import LIVE
from pose.world.rules import FLOOR

_MIN_ROTATION_DEGREES = 0.01  # degrees, smallest rotation that is applied


@dataclass(slots=True)
class _Seen:
    """Recent poses and positions of one person."""

    poses: deque[tuple[float, F64, F64]] = field(default_factory=deque)  # time (s)
    last: float = 0.0  # time of the last frame of the person, s
    target_shift: float = 0.0  # shift along the displayed vertical that puts the person on the common floor, m
    shift: float = 0.0  # current shift of the person, m
    has_target: bool = False  # whether `target_shift` has been computed


class LiveGround:
    """Estimate of the world of one camera, from all recently seen people; `found_by` is 'unknown' at first."""

    def __init__(self, up: F64 | None) -> None:
        """Start without people; `up` (3,) is opposite to gravity in camera axes, None estimates it."""
        self._given = up is not None
        self._found = given_gravity(up) if up is not None else find_gravity([])
        self._found_at = 0.0
        self._up = self._found.up.copy()
        self._common = 0.0  # m, height of the common floor along the estimated vertical
        self._feet: F64 | None = None  # (3,) m, a point of the displayed floor, camera axes
        self._goal: F64 | None = None  # (3,) m, target of `_feet`
        self._people: dict[int, _Seen] = {}
        self._time: float | None = None
        self._due = self._level_due = -np.inf
        self._first_time: float | None = None
        self._rotation = self._found.rotation
        self.world = self._found  # world to display, after the last frame

    def update(self, ids: list[int], joints: F64, root: F64, time: float) -> list[float]:
        """Add the people of the next frame, and return the smooth upward shifts in m that put them on the floor."""
        # Shifts approach 0 for people too far above or below the floor.
        elapsed = 0.0 if self._time is None else time - self._time
        self._time = time
        if len(ids) and self._first_time is None:
            self._first_time = time
        for row, number in enumerate(ids):
            one = self._people.setdefault(number, _Seen())
            if not one.poses or time - one.poses[-1][0] >= LIVE.store_interval_s - 1e-6:
                one.poses.append((time, joints[row].copy(), root[row].copy()))
                while one.poses[0][0] < time - LIVE.memory_s:
                    one.poses.popleft()
            one.last = time
        new = any(not self._people[number].has_target for number in ids)
        if ids and (new or time >= self._due):
            self._estimate(time)
        if ids and (new or time >= self._level_due):
            self._level(ids, time)
        return self._move(ids, elapsed)

    def _estimate(self, time: float) -> None:
        """Estimate the world again from the stored poses."""
        self._forget(time)
        assert self._first_time is not None
        self._due = time + min(max(time - self._first_time, LIVE.first_update_s), LIVE.update_interval_s)
        people = {number: _motion_since(person) for number, person in self._people.items() if person.poses}
        if not self._given:
            gravity = find_gravity(list(people.values()))
            before = self._found.sigma_degrees * (1 + (time - self._found_at) / LIVE.memory_s)
            if gravity.found_by != UNKNOWN and (self._found.found_by == UNKNOWN or gravity.sigma_degrees <= before):
                self._found, self._found_at = gravity, time
        floors = [self._floor(person) for person in people.values()]
        self._common = common_floor(floors, [float(len(person.times)) for person in people.values()])
        feet = [person.joints[:, ANKLES] + person.root[:, None] for person in people.values()]
        middle, up = np.mean([ankles.reshape(-1, 3).mean(axis=0) for ankles in feet], axis=0), self._found.up
        self._goal = middle + (self._common - middle @ up) * up

    def _level(self, ids: list[int], time: float) -> None:
        """Update the shift of the people `ids` that places their recent feet on the common floor."""
        self._level_due = time + LIVE.floor_update_interval_s
        for number in ids:
            one = self._people[number]
            off = self._common - self._floor(_motion_since(one, time - LIVE.floor_window_s))
            one.target_shift = off if abs(off) <= FLOOR.max_step_m else 0.0
            if not one.has_target:
                one.has_target, one.shift = True, one.target_shift

    def _floor(self, one: BodyMotion) -> float:
        """Return the height of the floor under a person along the estimated vertical, m."""
        ankles = (one.joints[:, ANKLES] + one.root[:, None]) @ self._found.rotation.T
        floor = own_floor(ankles, one.times)
        return float(ankles[..., 1].min()) - ANKLE_HEIGHT if floor is None else floor

    def _move(self, ids: list[int], elapsed: float) -> list[float]:
        """Move the displayed world towards the estimate, and return the upward shifts in m of the people `ids`."""
        if self._goal is not None:
            share = -math.expm1(-elapsed / LIVE.blend_s)
            if self._feet is None:
                self._feet = self._goal
            self._feet = self._feet + share * (self._goal - self._feet)
            apart = self._found.up - self._up
            off = math.degrees(math.sqrt(apart @ apart))
            if off > _MIN_ROTATION_DEGREES:
                self._up = self._up + share * apart
                self._up /= math.sqrt(self._up @ self._up)
                self._rotation = rotation_of(self._up)
            sigma = self._found.sigma_degrees
            self.world = World(
                self._rotation,
                float(self._up @ self._feet),
                self._found.found_by,
                math.hypot(sigma, off) if off > 0.1 else sigma,
            )
            for person in self._people.values():
                person.shift += share * (person.target_shift - person.shift)
        return [self._people[number].shift for number in ids]

    def _forget(self, time: float) -> None:
        """Remove old poses, and surplus people who have left."""
        kept = {n: one for n, one in self._people.items() if one.last >= time - LIVE.memory_s}
        for one in kept.values():
            while one.poses and one.poses[0][0] < time - LIVE.memory_s:
                one.poses.popleft()
        latest = sorted(kept, key=lambda n: kept[n].last)[-LIVE.max_people :]
        self._people = {n: kept[n] for n in latest}


def _motion_since(one: _Seen, since: float = -np.inf) -> BodyMotion:
    """Return the stored poses of a person from `since` s on; at least the last pose."""
    kept = [pose for pose in one.poses if pose[0] >= since] or [one.poses[-1]]
    times, joints, root = zip(*kept, strict=True)
    return BodyMotion(np.array(joints), np.array(root), np.array(times))
