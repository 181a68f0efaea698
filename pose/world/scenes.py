"""Gravity and floor of each scene of a clip with cuts.

After a cut the camera may have another tilt and height. Each scene therefore has its own vertical, floor and body
sizes, from the people in it; tracks end at cuts. The views of the camera are then aligned: all scenes have one vertical
and one floor. Headings and horizontal positions of two scenes remain unrelated, because nothing connects them.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from pose.structures.types import F64
from pose.world.camera_motion.path import CameraPath, scene_numbers
from pose.world.frame import UNKNOWN, World
from pose.world.ground import Ground, find_world
from pose.world.scene.lines import NO_LINES, LineEvidence
from pose.world.work import Work


@dataclass(frozen=True, slots=True)
class Scene:
    """One scene with people."""

    number: int  # number of the scene in the clip; 0 for the first one
    begin: float  # start of the scene, s
    ground: Ground  # common world of its people
    # Source of its vertical, as in `World`; 'unknown' if its own people do not determine it. A vertical from all scenes
    # is then used, if there is one.
    found_by: str
    # Whether its own people determine the floor. Otherwise the camera is assumed to have its median height over the
    # other scenes.
    floor_known: bool


@dataclass(frozen=True, slots=True)
class SceneWorlds:
    """The worlds of all scenes with people; `first` has the clip's world, if possible a known one."""

    begins: F64  # (N,) s, start of each scene, increasing
    scenes: Mapping[int, Scene]  # scenes with people, by number
    first: Scene  # the scene whose world is that of the clip

    def at(self, time: float) -> Scene:
        """Return the scene that contains `time` (s); there must be people in it."""
        return self.scenes[int(scene_numbers(self.begins, np.array([time]))[0])]

    @property
    def world(self) -> World:
        """World of the first scene."""
        return self.first.ground.world

    def refound(self, before: World) -> Self:
        """See `Ground.refound`."""
        scenes = {n: replace(one, ground=one.ground.refound(before)) for n, one in self.scenes.items()}
        return replace(self, scenes=scenes, first=scenes[self.first.number])

    def aligned(self, path: CameraPath) -> CameraPath:
        """Return the path with one vertical and one floor for all scenes, those of `first`."""
        world, numbers = self.first.ground.world, scene_numbers(self.begins, path.times)
        rotations, positions = path.rotations.copy(), np.zeros((len(path.times), 3))
        if path.positions is not None:
            positions += path.positions
        for number, scene in self.scenes.items():
            rows, own = numbers == number, scene.ground.world
            between = world.rotation.T @ own.rotation
            rotations[rows] = between @ path.rotations[rows]
            positions[rows] = positions[rows] @ between.T + (world.floor - own.floor) * world.up
        return replace(path, rotations=rotations, positions=positions)

    def scaled(self, path: CameraPath) -> CameraPath:
        """Return the path with the positions of each scene at the scale of its people."""
        if path.positions is None or path.metric:
            return path
        factors, numbers = np.ones(len(path.times)), scene_numbers(self.begins, path.times)
        for number, scene in self.scenes.items():
            factors[numbers == number] = scene.ground.path_scale
        sigmas = None if path.position_sigmas is None else factors * path.position_sigmas
        return replace(path, positions=factors[:, None] * path.positions, position_sigmas=sigmas)


def find_scenes(
    works: Mapping[int, Work],
    begins: Sequence[float],
    up: F64 | None = None,
    doubtful: Collection[int] = (),
    camera_known: bool = True,
    given: Mapping[int, tuple[float, float]] | None = None,
    lines: Callable[[int], LineEvidence] = lambda scene: NO_LINES,
) -> SceneWorlds:
    """Estimate the world of each scene with people, of at least one person.

    The focal length is estimated if it is not known and all people are in one scene. `lines` returns the line segments
    of a scene, by number.
    """
    # Unless all tracks of a scene are doubtful, doubtful ones do not affect the other people in it. A vertical from all
    # scenes includes them.
    members: dict[int, list[int]] = {}
    for number, work in works.items():
        members.setdefault(int(scene_numbers(begins, work.times[:1])[0]), []).append(number)
    scenes: dict[int, Scene] = {}
    common: World | None = None
    for number in sorted(members):
        people = _Subset(works, members[number])
        known = camera_known or len(members) > 1
        ground = find_world(people, up, doubtful, known, given, lines(number))
        found_by = ground.world.found_by
        if found_by == UNKNOWN and len(members) > 1:
            common = common or find_world(works, None).world
            if common.found_by != UNKNOWN:
                ground = find_world(people, common.up, doubtful, given=given)
        scenes[number] = Scene(number, float(begins[number]), ground, found_by, ground.world.floor_known)
    known_floors = [scene.ground.world.floor for scene in scenes.values() if scene.floor_known]
    if known_floors:
        level = float(np.median(known_floors))
        scenes = {n: one if one.floor_known else _with_floor(one, level) for n, one in scenes.items()}
    first = min(scenes.values(), key=lambda one: (one.found_by == UNKNOWN, not one.floor_known, one.number))
    return SceneWorlds(np.asarray(begins, np.float64), scenes, first)


def _with_floor(scene: Scene, floor: float) -> Scene:
    world = replace(scene.ground.world, floor=floor, floor_known=True)
    return replace(scene, ground=replace(scene.ground, world=world))


class _Subset(Mapping[int, Work]):
    """Mapping of some of the people, read when needed."""

    def __init__(self, works: Mapping[int, Work], numbers: Sequence[int]) -> None:
        self._works, self._numbers = works, numbers

    def __getitem__(self, number: int) -> Work:
        return self._works[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)
