"""Parsing of untrusted JSON, and access to its values with checks of their types."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from pose.utils.shown import in_brief

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"  # what a JSON file can hold


def strict_json(content: str | bytes) -> Json:
    """Parse JSON according to the standard.

    Raises:
        ValueError: If the content is not valid JSON, which has no NaN or infinity. The message is one line.
    """
    try:
        value: Json = json.loads(content, parse_constant=_refuse, parse_float=_finite)
        return value
    except RecursionError as error:
        raise ValueError("not JSON: nested too deeply") from error
    except ValueError as error:  # also for bytes that are not text, and numbers with too many digits
        raise ValueError(f"not JSON ({in_brief(error)})") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")


def _finite(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _refuse(digits[:40])


def member(value: Json, key: str) -> Json:
    """Return the value under `key` of a JSON object.

    Raises:
        TypeError: If `value` is not an object.
        KeyError: If the key is missing.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"expected an object with {key!r}, got {type(value).__name__}")
    return value[key]


def items(value: Json) -> Sequence[Json]:
    """Return `value` after checking that it is a list.

    Raises:
        TypeError: If it is not a list.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value


def number(value: Json) -> float:
    """Return `value` after checking that it is a finite number.

    Raises:
        TypeError: If it is not a number, is a boolean, or is 1e300 or more in size.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, got {type(value).__name__}")
    if not abs(value) < 1e300:
        raise TypeError("expected a finite number of moderate size")
    return value


def text(value: Json) -> str:
    """Return `value` after checking that it is a string.

    Raises:
        TypeError: If it is not a string.
    """
    if not isinstance(value, str):
        raise TypeError(f"expected a string, got {type(value).__name__}")
    return value


def check_config(values: object, defaults: Mapping[str, object]) -> dict[str, Any]:
    """Return `values` after checking that its keys are in `defaults` and its values have the types in `defaults`.

    Raises:
        TypeError: If `values` is not a mapping.
        ValueError: If a key is unknown or a value has another type.
    """
    if not isinstance(values, dict):
        raise TypeError("expected a mapping")
    for name, value in values.items():
        if name not in defaults:
            raise ValueError(f"unknown key {str(name)[:40]!r}")
        if type(value) is not type(defaults[name]):
            raise ValueError(f"{name}: expected {type(defaults[name]).__name__}, got {str(value)[:40]!r}")
    return values
