"""Parsing of untrusted JSON, and checks of its values against Python types."""

import json
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Any,
    Literal,
    NoReturn,
    NotRequired,
    Required,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from pose.errors import PoseError
from pose.utils.shown import in_brief, shown
from pose.utils.whole_file import file_errors

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"  # what a JSON file can hold


def strict_json(content: str | bytes) -> Json:
    """Parse standard JSON, without NaN or infinity; ValueError of one line if it is invalid."""
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
    """Return the value under `key` of a JSON object; KeyError if missing, TypeError if it is not an object."""
    if not isinstance(value, Mapping):
        raise TypeError(f"expected an object with {key!r}, got {type(value).__name__}")
    return value[key]


def items(value: Json) -> Sequence[Json]:
    """Return `value` after checking that it is a list; TypeError if it is not a list."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value


def number(value: Json) -> float:
    """Return a finite number below 1e300 in size, not a boolean; else TypeError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"expected a number, got {type(value).__name__}")
    if not abs(value) < 1e300:
        raise TypeError("expected a finite number of moderate size")
    return value


def text(value: Json) -> str:
    """Return `value` after checking that it is a string; TypeError if it is not a string."""
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


MAX_FILE_BYTES = 64 << 20  # maximum size of a file


def read_text_file(path: Path, max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a regular file of at most `max_bytes` bytes; else PoseError."""
    with file_errors(path):
        if not path.is_file():
            raise PoseError(f"{path}: not a file" if path.exists() else f"{path}: no such file")
        if (size := path.stat().st_size) > max_bytes:
            raise PoseError(f"{path}: too large: {size} bytes; maximum: {max_bytes}")
        return path.read_bytes()


def check_type(value: Any, hint: Any, where: str = "") -> None:
    """Check that a value parsed from JSON has the type `hint`; TypeError with the position otherwise."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return
    if origin in (Union, UnionType):
        _check_union(value, arguments, where)
    elif origin in (NotRequired, Required):
        check_type(value, arguments[0], where)
    elif origin is Literal:
        _require(
            any(value is argument or (type(value) is type(argument) and value == argument) for argument in arguments),
            value,
            hint,
            where,
        )
    elif is_typeddict(hint):
        _check_members(value, hint, hint.__required_keys__, where)
    elif is_dataclass(hint):
        required = {one.name for one in fields(hint) if one.default is MISSING and one.default_factory is MISSING}
        _check_members(value, hint, required, where)
    elif origin in (dict, Mapping):
        _require(isinstance(value, dict), value, "an object", where)
        for key, entry in value.items():
            check_type(entry, arguments[1], f"{where}.{key}")
    elif origin in (list, Sequence, tuple):
        _require(isinstance(value, list), value, "a list", where)
        for index, entry in enumerate(value):
            check_type(entry, arguments[0], f"{where}[{index}]")
    else:
        _check_plain(value, hint, where)


def _check_union(value: Any, hints: tuple[Any, ...], where: str) -> None:
    first: TypeError | None = None
    for hint in hints:
        try:
            return check_type(value, hint, where)
        except TypeError as error:
            first = first or error
    assert first is not None
    raise first


def _check_members(value: Any, hint: Any, required: Collection[str], where: str) -> None:
    _require(isinstance(value, dict), value, "an object", where)
    for key, kind in get_type_hints(hint).items():
        if key in value:
            check_type(value[key], kind, f"{where}.{key}")
        elif key in required:
            raise TypeError(f"{shown(f'{where}.{key}'.lstrip('.'), 80)}: is missing")


def _check_plain(value: Any, hint: Any, where: str) -> None:
    if hint is None or hint is NoneType:
        _require(value is None, value, "null", where)
    elif hint is float:
        number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
        _require(number and math.isfinite(value), value, "a number", where)
    elif hint is int:
        _require(
            isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63,
            value,
            "a whole number",
            where,
        )
    else:
        _require(isinstance(value, hint), value, {str: "a text", bool: "true or false"}.get(hint, hint), where)


def _require(condition: bool, value: Any, expected: object, where: str) -> None:
    if not condition:
        raise TypeError(
            f"{shown(where.lstrip('.') or 'it', 80)}: expected {expected}, got {shown(repr(value)[:200], 60)}"
        )
