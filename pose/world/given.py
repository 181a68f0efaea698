"""Checks of what the user says about people and camera, the same for commands and the Python API."""

import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pose.errors import UsageError
from pose.structures.defaults import MAX_ID
from pose.utils.shown import shown

if TYPE_CHECKING:
    from pose.structures.types import F64

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
