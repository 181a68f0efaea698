"""What a user says about the world of a run: floors under people, contacts, vertical lines, and tracks to keep."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from pose.structures.types import F64, Flags
from pose.world.camera_motion.path import CameraPath
from pose.world.frame import UNKNOWN, World

LINE_SIGMA = 0.01  # rad, standard deviation of the direction of a line that a user draws
MIN_UP_SIGMA = 0.02  # rad, lower bound of the standard deviation of the estimated vertical


@dataclass(frozen=True, slots=True)
class GivenContact:
    """Whether a foot of a person touches the ground in a range of time."""

    person: int  # track id
    side: int  # 0 for the left foot, 1 for the right one
    begin: float  # start, s, inclusive
    end: float  # end, s, inclusive
    on: bool  # whether the foot touches the ground


@dataclass(frozen=True, slots=True)
class Corrections:
    """What a user says about the world of a run, by track id."""

    heights: Mapping[int, float] = field(default_factory=dict)  # body heights, m
    # Time in s, and height in m of the ground under the lower foot above the floor at this time.
    floors: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    contacts: tuple[GivenContact, ...] = ()
    # Lines in the image that are vertical in the room: time in s, and (2, 2) rays of two points, x / z and y / z.
    lines: tuple[tuple[float, F64], ...] = ()
    kept: frozenset[int] = frozenset()  # tracks that show a person, whatever the rules say
    apart: frozenset[tuple[int, int]] = frozenset()  # pairs of tracks that are not one person

    def renumbered(self, joined: Mapping[int, int]) -> "Corrections":
        """Return the corrections with the new ids of joined tracks."""
        name: Callable[[int], int] = lambda number: joined.get(number, number)  # noqa: E731
        return replace(
            self,
            heights={name(number): metres for number, metres in self.heights.items()},
            floors={name(number): floor for number, floor in self.floors.items()},
            contacts=tuple(replace(one, person=name(one.person)) for one in self.contacts),
            kept=frozenset(map(name, self.kept)),
        )

    def of_tracks(self, ids: Mapping[int, int]) -> "Corrections":
        """Return the corrections of people with a new id, without the others."""
        return replace(
            self,
            heights={ids[number]: metres for number, metres in self.heights.items() if number in ids},
            floors={ids[number]: floor for number, floor in self.floors.items() if number in ids},
            contacts=tuple(replace(one, person=ids[one.person]) for one in self.contacts if one.person in ids),
            kept=frozenset(ids[number] for number in self.kept if number in ids),
        )

    def with_contacts(self, person: int, times: F64, contacts: Flags, probability: F64) -> Flags:
        """Apply the contacts of a person at times (T,) to `contacts` and `probability`, (T, 2) each, in place.

        Returns:
            (T, 2) where the contacts are given.
        """
        given = np.zeros(contacts.shape, bool)
        for one in self.contacts:
            if one.person == person:
                rows = (times >= one.begin - 1e-6) & (times <= one.end + 1e-6)
                contacts[rows, one.side], probability[rows, one.side] = one.on, float(one.on)
                given[rows, one.side] = True
        return given


def up_from_lines(lines: Iterable[tuple[float, F64]], world: World, path: CameraPath | None) -> F64:
    """Return the direction (3,) against gravity that agrees best with vertical lines and an estimated world."""
    planes = []
    for time, rays in lines:
        normal = plane_of(np.asarray(rays, np.float64) / world.focal)
        planes.append(normal if path is None else path.rotations[path.rows(np.array([time]))[0]] @ normal)
    return up_from_planes(planes, world)


def up_from_planes(planes: Iterable[F64], world: World) -> F64:
    """Return the direction (3,) against gravity that agrees best with planes and an estimated world.

    A vertical line and the optical centre span a plane, given by its normal (3,), that contains the vertical. The least
    squares of the angles to these planes and to the estimate, each over its standard deviation, give the vertical, also
    from a single line.
    """
    sigma = 0.5 if world.found_by == UNKNOWN else max(np.radians(world.sigma_degrees), MIN_UP_SIGMA)
    system, right = np.eye(3) / sigma**2, world.up / sigma**2
    for normal in planes:
        system += np.outer(normal, normal) / LINE_SIGMA**2
    up = np.linalg.solve(system, right)
    return np.asarray(up / np.linalg.norm(up))


def plane_of(rays: F64) -> F64:
    """Return the normal (3,) of the plane through the optical centre and a line, from rays (2, 2) at z = 1."""
    normal = np.cross(*np.column_stack([np.asarray(rays, np.float64), np.ones(2)]))
    return np.asarray(normal / max(float(np.linalg.norm(normal)), 1e-12))
