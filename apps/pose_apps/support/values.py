"""Values of options from the command line or a config file, with readable errors."""

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pose.errors import UsageError
from pose.utils.shown import shown

MAX_SHOWN = 60  # characters of a name or value in a message
MAX_LISTED = 30  # known names in a message
EXPECTED = {int: "a whole number", float: "a number", str: "text"}


@dataclass(frozen=True, slots=True)
class Value:
    """Converter of the value of an option, used as the `type` of a parser argument."""

    name: str  # option as typed on the command line, such as "--fps"
    kind: object  # type of the value: int, float or str, optionally None; or a Literal

    def __call__(self, value: object) -> object:
        """Convert a typed or configured value to the option's type.

        Raises:
            UsageError: If the value is invalid. The message names what is expected.
        """
        if value is None:
            return None  # `pose.utils.options.check_options` checks it
        kinds = kinds_of(self.kind)
        words = [kind for kind in kinds if isinstance(kind, str)]
        if words:
            if value not in words:
                raise UsageError(f"{self.name}: expected one of {', '.join(words)}, got {shown(value, MAX_SHOWN)}")
            return value
        if value == "null" and type(None) in kinds:
            return None
        (kind,) = (kind for kind in kinds if kind is not type(None))
        try:
            return _read(kind, value)
        except (ValueError, OverflowError) as error:
            raise UsageError(f"{self.name}: expected {EXPECTED[kind]}, got {shown(value, MAX_SHOWN)}") from error


def _read(kind: object, value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError
    if kind is str:
        return str(value)
    if kind is int:
        if isinstance(value, float):
            raise ValueError
        return int(value)
    number = float(value)
    if math.isnan(number):
        raise ValueError
    return number


def kinds_of(hint: object) -> list[Any]:
    """Return the types of a union, the values of a Literal, or a list with the type itself for other type hints."""
    if get_origin(hint) in (Union, UnionType):
        return [kind for part in get_args(hint) for kind in kinds_of(part)]
    return list(get_args(hint)) if get_origin(hint) is Literal else [hint]


def unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """Return the error message for an unknown option or key, which suggests the most similar known name."""
    words = {option.lstrip("-"): option for option in known}
    close = difflib.get_close_matches(name.lstrip("-").partition("=")[0], words, n=1)
    if close:
        hint = f"did you mean {words[close[0]]}?"
    elif len(known) > MAX_LISTED:
        hint = "--help-all lists all"
    else:
        hint = f"known: {', '.join(known)}"
    return f"unknown {kind} {shown(name, MAX_SHOWN)!r}: {hint}"
