"""Options as fields of a dataclass: type, default, help text and allowed values in one place.

`pose_apps.support.options` makes command-line options and keys of config files from them. This module has no heavy
imports, so that commands parse their options before any network is loaded.
"""

import math
import numbers
from dataclasses import MISSING, dataclass, field, fields
from types import UnionType
from typing import TYPE_CHECKING, Any, Union, get_args, get_origin, get_type_hints

from pose.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

REQUIRED: Any = MISSING  # default of options that must be given
EXPECTED = {bool: "True or False", int: "a whole number", float: "a number"}  # phrases for messages, by type


def option(
    default: Any,
    text: str,
    *,
    choices: tuple[str, ...] = (),
    minimum: float | None = None,
    maximum: float | None = None,
    metavar: str | None = None,
    name: str | None = None,
) -> Any:
    """Make a dataclass field with the metadata of its command-line option."""
    rules = {"choices": choices, "minimum": minimum, "maximum": maximum}
    return _field(default, {"help": text, "metavar": metavar, "name": name, "positional": False, **rules})


def argument(default: Any, text: str, *, metavar: str | None = None) -> Any:
    """Make a dataclass field for a positional argument; a field of type list[str] takes several arguments."""
    rules = {"choices": (), "minimum": None, "maximum": None}
    return _field(default, {"help": text, "metavar": metavar, "name": None, "positional": True, **rules})


def same_option(config: "type[DataclassInstance]", name: str, text: str | None = None) -> Any:
    """Make a dataclass field that repeats an option of another dataclass: its default, rules and help."""
    entry = config.__dataclass_fields__[name]
    return _field(entry.default, {**entry.metadata, "help": text or entry.metadata["help"]})


def default_of(config: "type[DataclassInstance]", name: str) -> Any:
    """Return the default of an option, for a function with an argument of the same meaning."""
    return config.__dataclass_fields__[name].default


def overwrite_option(replaced: str = "existing results") -> Any:
    """Make the dataclass field of the option `--overwrite`."""
    return option(False, f"replace {replaced}")


def depth_offset_option() -> Any:
    """Make the dataclass field of the option `--depth-offset`."""
    text = "second of the video at which the depth images begin"
    return option(0.0, text, minimum=-86400.0, maximum=86400.0)


def quiet_option(printed: str = "errors") -> Any:
    """Make the dataclass field of the option `--quiet`."""
    return option(False, f"print only {printed}")


def _field(default: Any, metadata: dict[str, Any]) -> Any:
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(metadata=metadata) if default is REQUIRED else field(default=default, metadata=metadata)


def check_options(config: "DataclassInstance") -> None:
    """Validate every field made by `option`; UsageError names the key and the allowed values."""
    types = get_type_hints(type(config))
    for entry in fields(config):
        value, rules = getattr(config, entry.name), entry.metadata
        if value is None:
            if entry.default is None:
                continue
            raise UsageError(f"{entry.name}: needs a value")
        if not _fits(value, types[entry.name]):
            raise UsageError(f"{entry.name}: expected {EXPECTED[_plain(types[entry.name])]}, got {value!r}")
        if rules["choices"] and value not in rules["choices"]:
            raise UsageError(f"{entry.name}: {value!r} is unknown; known: {', '.join(rules['choices'])}")
        if isinstance(value, float) and not math.isfinite(value) and value != entry.default:
            raise UsageError(f"{entry.name}: {value} is not a finite number")
        minimum, maximum = rules["minimum"], rules["maximum"]
        if (minimum is not None and not value >= minimum) or (maximum is not None and not value <= maximum):
            allowed = f"at least {_number(minimum)}" if maximum is None else f"{_number(minimum)} to {_number(maximum)}"
            raise UsageError(f"{entry.name}: {value} is out of range; allowed: {allowed}")


def _plain(hint: object) -> Any:
    """Return the type of an option without None."""
    if get_origin(hint) in (Union, UnionType):
        return next(kind for kind in get_args(hint) if kind is not type(None))
    return hint


def _fits(value: object, hint: object) -> bool:
    """Return whether a value has the type of its option. Only the types in `EXPECTED` are checked."""
    kind = _plain(hint)
    if kind not in EXPECTED:
        return True
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    return isinstance(value, numbers.Integral if kind is int else numbers.Real)


def _number(value: float | None) -> str:
    """Format a limit; whole numbers have all their digits."""
    return f"{value:d}" if isinstance(value, int) else f"{value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Base of dataclasses whose fields are options; UsageError for an invalid value."""

    def __post_init__(self) -> None:
        check_options(self)
