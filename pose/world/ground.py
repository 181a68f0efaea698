"""The common world of people: vertical, floor, focal length and body sizes in one estimate: `pose.world.scene`."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol, Self, TypeVar

import numpy as np

from pose.structures.types import F64
from pose.world.contacts import ANKLE_HEIGHT, common_floor, own_floor
from pose.world.frame import BODIES, FEET, GIVEN, LEVEL_UP, LINES, UNKNOWN, World, rotation_of
from pose.world.gravity import ANKLES
from pose.world.height import PersonSize
from pose.world.rules import FLOOR, GRAVITY
from pose.world.scene.evidence import evidence_of
from pose.world.scene.lines import NO_LINES, LineEvidence
from pose.world.scene.model import ALONG_SIGMA, BIAS_SIGMA, FOCAL_SIGMA, PersonEvidence
from pose.world.scene.solve import CANDIDATES, SolvedScene, solve
from pose.world.work import Work, resized

_GIVEN_WITHIN_S = 0.1  # s around the time of a given floor in which the lower foot stands on it
# Maximum standard deviation of a vertical whose source is the lines; bodies and feet have larger ones.
_MAX_LINES_DEGREES = 1.5
_MAX_SOLVED = 24  # people who determine the scene; the sizes of further people follow from it


@dataclass(frozen=True, slots=True)
class Ground:
    """The common world of people."""

    world: World  # vertical and floor
    floors: Mapping[int, float]  # height of the floor under each person along the vertical, m
    sizes: Mapping[int, PersonSize]  # sizes by track id
    # The path of a carried camera was scaled with people at their lifted size; `path_scale` is the geometric mean of
    # the scales of their distances.
    path_scale: float = 1.0

    def refound(self, before: World) -> Self:
        """Return this ground, at the focal length of the world `before`, with the uncertainties of the latter.

        If the vertical was unknown before, it counts as the least certain one that is known.
        """
        world = replace(self.world, focal=before.focal, focal_sigma=before.focal_sigma)
        if world.found_by not in (GIVEN, UNKNOWN):
            was_known = before.found_by != UNKNOWN
            world = replace(world, sigma_degrees=before.sigma_degrees if was_known else GRAVITY.max_sigma_degrees)
        return replace(self, world=world)


class FoundWorld(Protocol):
    """Worlds of people, as those of one or of several scenes."""

    @property
    def world(self) -> World:
        """World of all people, or of the first scene."""
        ...

    def refound(self, before: World) -> Self:
        """See `Ground.refound`."""
        ...


Input = TypeVar("Input")
Found = TypeVar("Found", bound=FoundWorld)


def find_world(
    works: Mapping[int, Work],
    up: F64 | None = None,
    doubtful: Collection[int] = (),
    camera_known: bool = True,
    given: Mapping[int, tuple[float, float]] | None = None,
    lines: LineEvidence = NO_LINES,
    candidates: int = CANDIDATES,
) -> Ground:
    """Estimate vertical, floor, focal length and body sizes from all people of a run, by track id.

    People are read one after another, so `works` may read them from a file. Tracks in `doubtful` do not affect other
    people, unless all are doubtful. An unknown focal length is estimated; the world's `focal` is not 1 if it differs
    clearly from the assumed one, and the world then refers to people at that focal length. `given` are time in s and
    height in m at which a person stands above the floor. `candidates` is their number in `solve`.
    """
    evidence = {number: evidence_of(work) for number, work in works.items()}
    trusted = [n for n in works if n not in doubtful] or list(works)
    chosen = sorted(trusted, key=lambda n: -evidence[n].seconds)[:_MAX_SOLVED]
    up = None if up is None else up / np.linalg.norm(up)
    people = [evidence[n] for n in chosen]
    solution = solve(people, 0.0 if camera_known else FOCAL_SIGMA, up, lines, candidates=candidates)
    if not camera_known and not solution.focal_differs:
        solution = replace(
            solve(people, 0.0, up, lines, candidates=candidates),
            up_sigma=solution.up_sigma,
            focal_sigma=solution.focal_sigma,
        )
    world = _world(solution, people, up, lines)
    sizes = dict(zip(chosen, solution.people, strict=True))
    for n in evidence.keys() - sizes.keys():
        alone = evidence[n] if n in trusted else replace(evidence[n], feet=np.zeros((0, 3)), axes=np.zeros((0, 3)))
        sizes[n] = solve([*people[: _MAX_SOLVED // 4], alone], 0.0, world.up, candidates=candidates).people[-1]
    given = {n: floor for n, floor in (given or {}).items() if n in works}
    levels = {n: _own_floor(work, sizes[n], world, given.get(n)) for n, work in works.items()}
    floors = {n: level for n, level in levels.items() if level is not None}
    standing = {n: floors[n] for n in given or trusted if n in floors} or floors
    seconds = {n: evidence[n].seconds for n in works}
    if floors:
        several = world.found_by != UNKNOWN and len(standing) > 1 and not given
        expected = -solution.camera_height if several else None
        world = replace(world, floor=_floor_height(standing, seconds, expected), floor_known=True)
    logs = [math.log(sizes[n].distance_scale) for n in trusted]
    weights = [max(seconds[n], 1e-3) for n in trusted]
    path_scale = math.exp(float(np.average(logs, weights=weights))) if logs else 1.0
    world = replace(
        world, focal=solution.focal, focal_sigma=solution.focal_sigma, second_degrees=math.degrees(solution.second_up)
    )
    return Ground(world, floors, sizes, path_scale)


def find_at_focal(
    people: Input, find: Callable[[Input], Found], at_focal: Callable[[float], Input]
) -> tuple[Input, Found]:
    """Find the world; if its focal length differs from the assumed one, find it again from the people at that length.

    `at_focal` returns the people at a focal length relative to the assumed one, which is then known.
    """
    first = find(people)
    if first.world.focal == 1.0:
        return people, first
    people = at_focal(first.world.focal)
    return people, find(people).refound(first.world)


def _world(solution: SolvedScene, people: list[PersonEvidence], up: F64 | None, lines: LineEvidence) -> World:
    """Return the vertical of a solution, without a floor."""
    if up is not None:
        return World(rotation_of(up), 0.0, GIVEN, 0.0, floor_known=False)
    degrees = math.degrees(solution.up_sigma)
    if len(lines) and degrees < _MAX_LINES_DEGREES:
        return World(rotation_of(solution.up), 0.0, LINES, degrees, floor_known=False)
    bodies = sum(len(one.directions) > 0 for one in people)
    if not bodies or degrees > GRAVITY.max_sigma_degrees:
        return World(rotation_of(LEVEL_UP), 0.0, UNKNOWN, float("nan"), floor_known=False)
    by_feet = solution.up_sigma < 0.7 * math.hypot(ALONG_SIGMA / math.sqrt(bodies), BIAS_SIGMA)
    return World(rotation_of(solution.up), 0.0, FEET if by_feet else BODIES, degrees, floor_known=False)


def _floor_height(floors: Mapping[int, float], seconds: Mapping[int, float], expected: float | None) -> float:
    """Return the common floor, m: the median over people close to the most probable one."""
    near = [n for n, floor in floors.items() if expected is None or abs(floor - expected) <= FLOOR.max_step_m]
    chosen = near or list(floors)
    return common_floor([floors[n] for n in chosen], [seconds[n] for n in chosen])


def _own_floor(work: Work, size: PersonSize, world: World, given: tuple[float, float] | None) -> float | None:
    """Return the height (m) along the vertical of the floor under a person, with the camera at 0."""
    scaled = resized(work, size)
    ankles = (scaled.joints[:, ANKLES] + scaled.root[:, None]) @ world.rotation.T
    if given is not None:
        near = np.abs(work.times - given[0])
        rows = near <= max(_GIVEN_WITHIN_S, float(near.min()))
        return float(np.median(ankles[rows, :, 1].min(axis=1))) - ANKLE_HEIGHT - given[1]
    return own_floor(ankles, work.times, work.feet_seen)
