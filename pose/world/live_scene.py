"""The scene of a live stream: the estimator of offline runs (`pose.world.ground`), on recent poses, now and then.

A solution takes tenths of a second, so a live loop computes it in a thread of its own, and uses it when it is ready.
"""

import threading
import time
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from pose.structures.skeletons import H36M17, LIMBS
from pose.structures.types import F64, Flags
from pose.world.contacts import ANKLE_HEIGHT, common_floor, own_floor
from pose.world.frame import UNKNOWN, World
from pose.world.gravity import ANKLES, BodyMotion, find_gravity, given_gravity
from pose.world.ground import Ground, find_at_focal, find_world
from pose.world.moving import refocused
from pose.world.scene.lines import MIN_SEGMENTS, NO_LINES, LineEvidence, lines_per_frame
from pose.world.work import Work

_CANDIDATES = 150  # of a live solution: offline 400
_MAX_PEOPLE = 6  # who are solved together, beside those of the last frame
_MAX_SHARE = 0.1  # of the time of one core


@dataclass(frozen=True, slots=True)
class StoredPose:
    """One pose of a person at the lifted size, in the axes of the camera's first frame."""

    time: float
    joints: F64  # (17, 3) m relative to the pelvis
    root: F64  # (3,) m, position of the pelvis
    feet_seen: Flags  # (2,) whether the image shows the left and the right ankle


@dataclass(slots=True)
class StoredPerson:
    """Recent poses of one person, and the lifted size."""

    poses: deque[StoredPose] = field(default_factory=deque)
    bones: F64 = field(default_factory=lambda: np.zeros(16))  # m
    height: float = 0.0  # m
    height_given: bool = False
    size_sigma: float = 0.0  # as in `Work`

    def work(self, since: float = -np.inf, focal: float = 1.0) -> Work:
        """Return the poses from `since` s on, at least the last one, at a focal length relative to the assumed one."""
        kept = [pose for pose in self.poses if pose.time >= since] or [self.poses[-1]]
        times, count = np.array([pose.time for pose in kept]), len(kept)
        joints, root = np.array([pose.joints for pose in kept]), np.array([pose.root for pose in kept])
        if focal != 1.0:
            joints, root = refocused(joints, root, np.full(count, focal))
        none = np.zeros(count, bool)
        return Work(
            self.bones, self.height, times, joints, root, np.zeros((count, len(H36M17))), joints + root[:, None],
            np.array([pose.feet_seen for pose in kept]), ~none, none, np.zeros((count, len(LIMBS)), bool),
            np.zeros(count), np.zeros((count, len(H36M17)), np.uint8), height_given=self.height_given,
            size_sigma=self.size_sigma,
        )  # fmt: skip


class SceneSolver:
    """Solver of the scene, one solution at a time."""

    def __init__(self, up: F64 | None, *, measured: bool, background: bool) -> None:
        """Start without a solution; `up` (3,) and `measured` sizes are known, `background` computes in a thread."""
        self._up, self._measured, self._background = up, measured, background
        self._thread: threading.Thread | None = None
        self._found: Ground | None = None
        self._seconds = 0.0  # processor time of the last solution in a thread

    @property
    def pause(self) -> float:
        """Time in s before the next solution, which limits the use of the processor."""
        return self._seconds / _MAX_SHARE

    @property
    def busy(self) -> bool:
        """Whether a solution is being computed."""
        return self._thread is not None and self._thread.is_alive()

    def start(
        self,
        people: Mapping[int, StoredPerson],
        now: Collection[int],
        lines: LineEvidence,
        focal_known: bool,
        before: World | None,
    ) -> None:
        """Start a solution for the sizes of people with the ids `now`, from these and people who have left.

        The world `before` is kept unless the new vertical is at least as certain.
        """
        chosen = sorted(people, key=lambda n: (n not in now, -len(people[n].poses)))[: max(_MAX_PEOPLE, len(now))]
        works = {number: people[number].work() for number in chosen}

        def work() -> None:
            begin = time.thread_time()
            self._found = self._solved(works, lines, focal_known, before)
            self._seconds = time.thread_time() - begin if self._background else 0.0

        if not self._background:
            work()
            return
        self._thread = threading.Thread(target=work, name="scene", daemon=True)
        self._thread.start()

    def take(self) -> Ground | None:
        """Return the solution that has become ready since the last call, if any."""
        found, self._found = self._found, None
        return found

    def _solved(self, works: Mapping[int, Work], lines: LineEvidence, known: bool, before: World | None) -> Ground:
        up = self._up
        if self._measured:
            return _measured(works, up, before)

        def find(seen: tuple[Mapping[int, Work], LineEvidence, bool]) -> Ground:
            return find_world(seen[0], up, camera_known=seen[2], lines=seen[1], candidates=_CANDIDATES)

        def turned(focal: float) -> tuple[Mapping[int, Work], LineEvidence, bool]:
            people = {
                n: replace(one, joints=joints, root=root)
                for n, one in works.items()
                for joints, root in [refocused(one.joints, one.root, np.full(len(one.root), focal))]
            }
            return people, replace(lines, ends=lines.ends / focal), True

        (people, _, _), found = find_at_focal((works, lines, known), find, turned)
        if _replaces(found.world, before):
            return found
        assert before is not None
        kept = find_world(people, before.up, candidates=_CANDIDATES)
        world = replace(found.world, rotation=before.rotation, floor=kept.world.floor, found_by=before.found_by)
        return replace(kept, world=replace(world, sigma_degrees=before.sigma_degrees))


def _replaces(world: World, before: World | None) -> bool:
    return before is None or before.found_by == UNKNOWN or world.sigma_degrees <= before.sigma_degrees


def _measured(works: Mapping[int, Work], up: F64 | None, before: World | None) -> Ground:
    """Estimate vertical and floor of people at known sizes."""
    bodies = [BodyMotion(work.joints, work.root, work.times) for work in works.values()]
    world = find_gravity(bodies) if up is None else given_gravity(up)
    world = world if _replaces(world, before) or before is None else before
    floors = {n: floor_under(work, world.rotation) for n, work in works.items()}
    common = common_floor(list(floors.values()), [float(len(work.times)) for work in works.values()])
    return Ground(replace(world, floor=common, floor_known=True), floors, {})


def floor_under(work: Work, rotation: F64) -> float:
    """Return the height of the floor under a person along y after a rotation, m; that of the lower foot otherwise."""
    ankles = (work.joints[:, ANKLES] + work.root[:, None]) @ rotation.T
    floor = own_floor(ankles, work.times, work.feet_seen)
    return float(ankles[..., 1].min()) - ANKLE_HEIGHT if floor is None else floor


def joined_lines(parts: list[LineEvidence]) -> LineEvidence:
    """Return the longest lines of each frame together, about as many as offline; none if there are few."""
    if sum(map(len, parts)) < MIN_SEGMENTS:
        return NO_LINES
    most = lines_per_frame(len(parts))  # the longest ones come first
    return LineEvidence(
        *(np.concatenate([getattr(part, name)[:most] for part in parts]) for name in ("ends", "sigmas", "rotations"))
    )
