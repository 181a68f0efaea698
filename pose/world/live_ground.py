"""Live estimate of the scene, updated repeatedly from past frames and displayed with smoothing.

The estimate changes over time. The displayed world and the sizes of people follow it slowly, without jumps. The world
rotates about the feet, which therefore keep their position on the screen.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from pose.structures.types import F64, Flags
from pose.world.frame import UNKNOWN, World, rotation_of
from pose.world.gravity import ANKLES, find_gravity, given_gravity
from pose.world.ground import Ground
from pose.world.height import PersonSize, scale_to
from pose.world.live_scene import SceneSolver, StoredPerson, StoredPose, floor_under, joined_lines
from pose.world.moving import refocused
from pose.world.rules import FLOOR, LIVE, SIZE
from pose.world.scene.lines import LineEvidence
from pose.world.work import Work, resized

_MIN_ROTATION_DEGREES = 0.01  # degrees, smallest rotation that is applied
_MAX_LINE_FRAMES = 12
_MIN_SCALE = 0.1  # of bodies and distances; degenerate 3D gives less


@dataclass(frozen=True, slots=True)
class ShownPerson:
    """How one person is displayed in one frame."""

    shift: float = 0.0  # m, upwards
    log_scale: float = 0.0  # logarithm of the factor of the body
    log_far: float = 0.0  # logarithm of the factor of the distance
    size: PersonSize | None = None  # estimated size
    height_given: bool = False


_NEW_PERSON = ShownPerson()


@dataclass(frozen=True, slots=True)
class ShownScene:
    """The scene as it is displayed with one frame. It refers to the people of the frame at the lifted size."""

    world: World
    people: Mapping[int, ShownPerson]  # by track id

    def shifts(self, ids: list[int]) -> F64:
        """Return the upward shifts (P, 1) m that put people on the floor."""
        return np.array([self.people.get(number, _NEW_PERSON).shift for number in ids]).reshape(-1, 1)

    def sized(self, ids: list[int], joints: F64, root: F64) -> tuple[F64, F64]:
        """Return joints (P, 17, 3) and root (P, 3) m at the displayed sizes and focal length."""
        if not ids:
            return joints, root
        if self.world.focal != 1.0:
            joints, root = refocused(joints, root, np.full(len(ids), self.world.focal))
        people = [self.people.get(number, _NEW_PERSON) for number in ids]
        scale = np.exp([one.log_scale for one in people])
        return joints * scale[:, None, None], root * np.exp([one.log_far for one in people])[:, None]

    def height(self, number: int, own: float) -> tuple[float, float] | None:
        """Return the height of a person of lifted height `own`, and its sigma, m; None while unknown."""
        one = self.people.get(number, _NEW_PERSON)
        if one.size is None or one.height_given:
            return None
        fixed = SIZE.ankle_height_m + SIZE.crown_height_m
        return fixed + math.exp(one.log_scale) * (own - fixed), (one.size.interval[1] - one.size.interval[0]) / 2

    def distance_sigma(self, number: int) -> float | None:
        """Return the standard deviation of the logarithm of a person's distance scale; None while unknown."""
        size = self.people.get(number, _NEW_PERSON).size
        return None if size is None else size.distance_sigma


@dataclass(slots=True)
class _Seen:
    """One person."""

    stored: StoredPerson = field(default_factory=StoredPerson)
    last: float = 0.0  # time of the last frame of the person, s
    target_shift: float = 0.0  # shift along the displayed vertical that puts the person on the common floor, m
    shift: float = 0.0  # current shift of the person, m
    has_target: bool = False  # whether `target_shift` has been computed
    size: PersonSize | None = None  # estimated size
    log_scale: float = 0.0  # logarithm of the current factor of the body
    log_far: float = 0.0  # logarithm of the current factor of the distance

    def shown(self) -> ShownPerson:
        """Return how the person is displayed now."""
        return ShownPerson(self.shift, self.log_scale, self.log_far, self.size, self.stored.height_given)

    def target_logs(self) -> tuple[float, float]:
        """Return the logarithms of the estimated factors of body and distance."""
        if self.size is None:
            return 0.0, 0.0
        height = self.stored.height if self.stored.height_given else self.size.height
        scale = max(scale_to(height, self.stored.height), _MIN_SCALE)
        far = 1.0 if self.stored.size_sigma else max(self.size.distance_scale, _MIN_SCALE)
        return math.log(scale), math.log(far)


@dataclass(frozen=True, slots=True)
class LivePeople:
    """People of one frame at the lifted size, in the axes of the camera's first frame, for P people."""

    ids: list[int]
    joints: F64  # (P, 17, 3) m relative to the pelvis
    root: F64  # (P, 3) m
    feet_seen: Flags  # (P, 2)
    bones: F64  # (P, 16) m
    heights: list[float]  # m
    given: list[bool]  # whether the height was given or measured
    size_sigmas: list[float]  # as in `Work`


class LiveGround:
    """Estimate of the scene of one camera, from all recently seen people; `found_by` is 'unknown' at first."""

    def __init__(self, up: F64 | None, *, camera_known: bool, measured: bool = False, background: bool = False) -> None:
        """Start without people; `up` (3,), the focal length, or sizes and distances (`measured`) may be known."""
        self._measured = measured
        self._solver = SceneSolver(up, measured=measured, background=background)
        self._focal_known = camera_known or measured
        self._found = given_gravity(up) if up is not None else find_gravity([])
        self._given, self._found_at = up is not None, 0.0
        self._up = self._found.up.copy()
        self._log_focal = 0.0  # logarithm of the displayed focal length relative to the assumed one
        self._lines: list[LineEvidence] = []
        self._feet: F64 | None = None  # (3,) m, a point of the displayed floor, camera axes
        self._goal: F64 | None = None  # (3,) m, target of `_feet`
        self._people: dict[int, _Seen] = {}
        self._time: float | None = None
        self._due = self._soon = self._level_due = -np.inf
        self._interval = LIVE.update_interval_s  # until the next estimate
        self._first_time: float | None = None
        self._rotation = self._found.rotation
        self.shown = ShownScene(self._found, {})  # with the last frame

    @property
    def focal(self) -> float:
        """Displayed focal length relative to the assumed one."""
        return math.exp(self._log_focal)

    def fix_focal(self) -> None:
        """Keep the assumed focal length from now on: the camera turns, which measures its own."""
        self._focal_known = True

    def add_lines(self, lines: LineEvidence) -> None:
        """Add the line segments of a frame; a static camera sees the same ones again."""
        new = lines.without(self._lines)
        if len(self._lines) < _MAX_LINE_FRAMES and len(new):
            self._lines.append(new)

    def update(self, people: LivePeople, time: float) -> ShownScene:
        """Add the people of the next frame, and return the scene to display with it, which changes smoothly."""
        ids = people.ids
        elapsed = 0.0 if self._time is None else time - self._time
        self._time = time
        if len(ids) and self._first_time is None:
            self._first_time = time
        for row, number in enumerate(ids):
            one = self._people.setdefault(number, _Seen())
            stored = one.stored
            stored.bones, stored.height, stored.height_given = people.bones[row], people.heights[row], people.given[row]
            stored.size_sigma = people.size_sigmas[row]
            if not stored.poses or time - stored.poses[-1].time >= LIVE.store_interval_s - 1e-6:
                pose = StoredPose(time, people.joints[row].copy(), people.root[row].copy(), people.feet_seen[row])
                stored.poses.append(pose)
                while stored.poses[0].time < time - LIVE.memory_s:
                    stored.poses.popleft()
            one.last = time
        new = any(not self._people[number].has_target for number in ids)
        if ids and (time >= self._due or (new and time >= self._soon)) and not self._solver.busy:
            self._start(ids, time)
        found = self._solver.take()
        if found is not None:
            self._due, self._soon = (max(due, time + self._solver.pause) for due in (self._due, self._soon))
            self._use(found, time)
        if ids and (new or time >= self._level_due):
            self._level(ids, time)
        self.shown = ShownScene(self._moved_world(elapsed), {n: one.shown() for n, one in self._people.items()})
        return self.shown

    def _start(self, now: list[int], time: float) -> None:
        """Start to estimate the scene again from the stored poses."""
        self._forget(time)
        assert self._first_time is not None
        self._due = time + min(max(time - self._first_time, LIVE.first_update_s), self._interval)
        self._soon = time + LIVE.new_person_interval_s
        people = {number: one.stored for number, one in self._people.items() if one.stored.poses}
        before = None
        if not self._given and self._found.found_by != UNKNOWN:
            aged = self._found.sigma_degrees * (1 + (time - self._found_at) / LIVE.memory_s)
            before = World(self._found.rotation, 0.0, self._found.found_by, aged)
        self._solver.start(people, now, joined_lines(self._lines), self._focal_known, before)

    def _use(self, found: Ground, time: float) -> None:
        """Use a new solution as the target of the display."""
        longer = min(2 * self._interval, LIVE.max_update_interval_s)
        self._interval = longer if self._is_settled(found) else LIVE.update_interval_s
        if not np.array_equal(found.world.rotation, self._found.rotation):
            self._found_at = time
        self._found = found.world
        for number, size in found.sizes.items():
            if number in self._people:
                self._people[number].size = size
        works = [self._work(one) for one in self._people.values() if one.stored.poses]
        if not self._found.floor_known:
            floor = float(np.median([floor_under(work, self._found.rotation) for work in works]))
            self._found = replace(self._found, floor=floor)
        feet = [work.joints[:, ANKLES] + work.root[:, None] for work in works]
        middle, up = np.mean([ankles.reshape(-1, 3).mean(axis=0) for ankles in feet], axis=0), self._found.up
        self._goal = middle + (self._found.floor - middle @ up) * up
        if self._feet is None:
            self._feet = self._goal
        self._level_due = -np.inf

    def _is_settled(self, found: Ground) -> bool:
        """Return whether a new solution is about the one before."""
        new, old = found.world, self._found
        if UNKNOWN in (new.found_by, old.found_by):
            return False
        sigmas = [math.hypot(*(new.up - old.up)) / max(math.radians(new.sigma_degrees), 1e-3)]
        sigmas.append(abs(math.log(new.focal / old.focal)) / max(new.focal_sigma, 1e-3))
        for number, size in found.sizes.items():
            before = self._people[number].size if number in self._people else None
            change = math.inf if before is None else abs(size.height - before.height)
            sigmas.append(2 * change / max(size.interval[1] - size.interval[0], 1e-3))
        return max(sigmas) <= LIVE.max_settled_sigmas

    def _work(self, one: _Seen) -> Work:
        """Return the stored poses of a person at the estimated size and focal length."""
        work = one.stored.work(-np.inf, 1.0 if self._measured else self._found.focal)
        return work if one.size is None else resized(work, one.size)

    def _level(self, ids: list[int], time: float) -> None:
        """Update the shift of the people `ids` that places their recent feet on the common floor, as displayed."""
        self._level_due = time + LIVE.floor_update_interval_s
        for number in ids:
            one = self._people[number]
            if not one.has_target and (self._measured or one.size is not None):
                one.has_target, one.shift = True, np.nan
                one.log_scale, one.log_far = one.target_logs()
            work = one.stored.work(time - LIVE.floor_window_s, self.focal)
            work = replace(work, joints=math.exp(one.log_scale) * work.joints, root=math.exp(one.log_far) * work.root)
            off = self._displayed_floor - floor_under(work, self._rotation)
            on_floor = one.size is not None and one.size.on_floor > 0.5
            one.target_shift = off if on_floor or abs(off) <= FLOOR.max_step_m else 0.0
            if math.isnan(one.shift):
                one.shift = one.target_shift

    @property
    def _displayed_floor(self) -> float:
        return 0.0 if self._feet is None else float(self._up @ self._feet)

    def _moved_world(self, elapsed: float) -> World:
        """Move the displayed world and people towards the estimate, and return the world."""
        if self._goal is None:
            return self.shown.world
        share, near = (-math.expm1(-elapsed / seconds) for seconds in (LIVE.blend_s, LIVE.shift_blend_s))
        assert self._feet is not None
        self._feet = self._feet + share * (self._goal - self._feet)
        apart = self._found.up - self._up
        off = math.degrees(math.sqrt(apart @ apart))
        if off > _MIN_ROTATION_DEGREES:
            self._up = self._up + share * apart
            self._up /= math.sqrt(self._up @ self._up)
            self._rotation = rotation_of(self._up)
        self._log_focal += share * (math.log(self._found.focal) - self._log_focal)
        # Shifts approach 0 for people too far above or below the floor.
        for person in self._people.values():
            person.shift += near * (person.target_shift - person.shift)
            scale, far = person.target_logs()
            person.log_scale += share * (scale - person.log_scale)
            person.log_far += share * (far - person.log_far)
        sigma = self._found.sigma_degrees
        return World(
            self._rotation,
            self._displayed_floor,
            self._found.found_by,
            math.hypot(sigma, off) if off > 0.1 else sigma,
            focal=self.focal,
            second_degrees=self._found.second_degrees,
            focal_sigma=self._found.focal_sigma,
        )

    def _forget(self, time: float) -> None:
        """Remove old poses, and surplus people who have left."""
        kept = {n: one for n, one in self._people.items() if one.last >= time - LIVE.memory_s}
        for one in kept.values():
            while one.stored.poses and one.stored.poses[0].time < time - LIVE.memory_s:
                one.stored.poses.popleft()
        latest = sorted(kept, key=lambda n: kept[n].last)[-LIVE.max_people :]
        self._people = {n: kept[n] for n in latest}
