"""The common world of people: vertical, floor, and all body scales (`pose.world.gravity`, `pose.world.sizes`)."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from pose.structures.types import F64
from pose.world.floor import common_floor, own_floor
from pose.world.frame import GIVEN, UNKNOWN, World, rotation_of
from pose.world.gravity import ANKLES, BodyMotion, find_gravity, given_gravity
from pose.world.rules import RULES, Rules
from pose.world.sizes import Evidence, Size, find_sizes
from pose.world.work import Work

_MAX_ABOVE_FLOOR_M = 0.15  # m above a person's lowest standing feet; ankles below it define the position of the feet


@dataclass(frozen=True, slots=True)
class Ground:
    """The common world of people."""

    # The path of a carried camera was scaled with people at their lifted size; `path_scale` is the geometric mean of
    # their scales.

    world: World  # vertical and floor
    floors: Mapping[int, float]  # height of the floor under each person along the vertical, m
    sizes: Mapping[int, Size]  # sizes by track id
    path_scale: float = 1.0  # factor on the path of a carried camera


def find_world(
    works: Mapping[int, Work], up: F64 | None = None, rules: Rules = RULES, doubtful: Collection[int] = ()
) -> Ground:
    """Estimate vertical, floor and body sizes from all people of a run.

    People are read one after another, so `works` may read them from a file.

    Args:
        works: People by track id, at the size from the lifter.
        up: (3,) vector opposite to gravity in the axes of `works`; None estimates it.
        doubtful: Ids of tracks that may not show a person. Unless all tracks are doubtful, they do not affect the other
            people, and their own size is estimated alone.
    """
    trusted = dict.fromkeys(n for n in works if n not in doubtful) or dict.fromkeys(works)
    if up is None:
        people = (works[number] for number in trusted)
        world = find_gravity((BodyMotion(w.joints, w.root, w.times) for w in people), rules.gravity)
    else:
        world = given_gravity(up)
    vertical_known = world.found_by != UNKNOWN
    feet = {number: _feet_centre(work, world, rules) for number, work in works.items()}
    evidence, seconds = {}, {}
    for number, work in works.items():
        compared = vertical_known and number in trusted
        evidence[number] = Evidence(work.bones, work.height, work.height_given, feet[number] if compared else None)
        seconds[number] = float(len(work.times))
    tilt_sigma = 0.0 if world.found_by == GIVEN or not vertical_known else math.radians(world.sigma_degrees)
    sizes = find_sizes(evidence, tilt_sigma, rules.size)
    about_x, about_z = sizes.tilt
    vertical = np.array([about_z, 1.0, about_x])
    if sizes.tilt != (0.0, 0.0):
        world = replace(world, rotation=rotation_of(world.rotation.T @ vertical))
    floors = {
        number: sizes.people[number].scale * float(feet_centre @ vertical) / float(np.linalg.norm(vertical))
        for number, feet_centre in feet.items()
        if feet_centre is not None
    }
    standing = {number: floors[number] for number in trusted if number in floors} or floors
    if floors:
        level = _floor_height(standing, seconds, sizes.floor, rules)
        world = replace(world, floor=level, floor_known=True)
    logs = [0.0 if evidence[n].height_given else math.log(sizes.people[n].scale) for n in trusted]
    path_scale = math.exp(float(np.average(logs, weights=[seconds[n] for n in trusted]))) if logs else 1.0
    return Ground(world, floors, sizes.people, path_scale)


def _floor_height(
    floors: Mapping[int, float], seconds: Mapping[int, float], expected: float | None, rules: Rules
) -> float:
    """Return the common floor, m: the median over people close to the most probable one."""
    near = [n for n, floor in floors.items() if expected is None or abs(floor - expected) <= rules.floor.max_step_m]
    chosen = near or list(floors)
    return common_floor([floors[n] for n in chosen], [seconds[n] for n in chosen])


def _feet_centre(work: Work, world: World, rules: Rules) -> F64 | None:
    """Return the centre (3,) m of a person's standing feet at sole height, in world axes with the camera at 0."""
    ankles = (work.joints[:, ANKLES] + work.root[:, None]) @ world.rotation.T
    floor = own_floor(ankles, work.times, rules.floor, work.feet_seen)
    if floor is None:
        return None
    lowest = ankles[..., 1] <= floor + rules.size.ankle_height_m + _MAX_ABOVE_FLOOR_M
    middle = np.median(ankles[lowest] if lowest.any() else ankles.reshape(-1, 3), axis=0)
    return np.array([middle[0], floor, middle[2]])
