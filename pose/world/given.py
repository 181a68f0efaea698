"""What the user says about people, camera and world, and its checks."""

import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from pose.errors import UsageError
from pose.structures.defaults import MAX_ID
from pose.structures.types import F64, Flags
from pose.utils.shown import shown
from pose.world.camera_motion.path import CameraPath
from pose.world.frame import UNKNOWN, World

MAX_HEIGHT_M, MIN_HEIGHT_M = 2.75, 0.4  # range of body heights, m
MAX_PITCH_DEGREES, MAX_ROLL_DEGREES = 90.0, 180.0


def check_heights(heights: Mapping[int | None, float]) -> None:
    """Check body heights in m by track id, None for all; UsageError if out of the human range."""
    if not isinstance(heights, Mapping):
        raise UsageError(f"heights: expected a mapping from ids to metres, got {type(heights).__name__}")
    for person, metres in heights.items():
        if person is not None:
            check_id(person, "heights")
        _check_number("height", metres, MIN_HEIGHT_M, MAX_HEIGHT_M, "m")


def check_id(person: object, name: str = "keypoints") -> None:
    """Raise a UsageError that names the argument unless `person` is a track id."""
    if isinstance(person, bool) or not isinstance(person, numbers.Integral) or not 0 <= int(person) < MAX_ID:
        raise UsageError(f"{name}: expected track ids from 0 to 2**53 - 1 as keys, got {shown(repr(person), 60)}")


def checked_up(pitch: float | None, roll: float | None) -> "F64 | None":
    """Return the direction (3,) opposite to gravity in the camera frame, if pitch or roll are given.

    Pitch is positive if the camera looks up, roll is clockwise, both in degrees; a value out of range is a UsageError.
    """
    if pitch is None and roll is None:
        return None
    _check_number("pitch", pitch or 0.0, -MAX_PITCH_DEGREES, MAX_PITCH_DEGREES, "degrees")
    _check_number("roll", roll or 0.0, -MAX_ROLL_DEGREES, MAX_ROLL_DEGREES, "degrees")
    from pose.world.frame import up_of  # loads NumPy

    return up_of(pitch or 0.0, roll or 0.0)


def checked(heights: Mapping[int | None, float] | None, pitch: float | None, roll: float | None) -> "F64 | None":
    """Check heights and angles as `check_heights` and `checked_up` do, and return the direction of `checked_up`."""
    check_heights({} if heights is None else heights)
    return checked_up(pitch, roll)


def _check_number(name: str, value: object, least: float, most: float, unit: str) -> None:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise UsageError(f"{name}: expected a number of {unit}, got {type(value).__name__}")
    if not least <= float(value) <= most:
        raise UsageError(f"{name}: {float(value):g} {unit} is out of range; allowed: {least:g} to {most:g}")


def height_text(heights: Mapping[int | None, float]) -> str | None:
    """Format heights as a value of the option --height; return None if there are no heights."""
    return ",".join(f"{value}" if one is None else f"{one}:{value}" for one, value in heights.items()) or None


def read_heights(text: str | None) -> dict[int | None, float]:
    """Parse body heights in m, `1.82` (key None: all people) or `1:1.82,2:1.65` by id."""
    heights: dict[int | None, float] = {}
    for word in [] if text is None else str(text).split(","):
        number, colon, value = word.strip().rpartition(":")
        try:
            person = int(number) if colon else None
            metres = float(value)
        except ValueError:
            raise UsageError(
                "height: expected metres, such as 1.82, or by id of the person, such as 1:1.82,2:1.65; "
                f"got {shown(text, 60)!r}"
            ) from None
        check_heights({person: metres})
        if person in heights:
            whose = "all people" if person is None else person
            raise UsageError(f"height: {shown(text, 60)!r} contains two heights for {whose}")
        heights[person] = metres
    return heights


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
        """Apply a person's contacts at times (T,) to `contacts` and `probability` (T, 2) in place; return where."""
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
