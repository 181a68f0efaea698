"""Options as fields of a dataclass: type, default, help text and what is allowed stand in one place.

`pose_apps.support.options` makes command-line options and keys of config files of them. This module imports nothing
heavy, so that a command can parse its options before any network is loaded.
"""

import math
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from pose.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

REQUIRED: Any = MISSING  # the default of a field without one


def option(
    default: Any,
    text: str,
    *,
    choices: tuple[str, ...] = (),
    least: float | None = None,
    most: float | None = None,
    metavar: str | None = None,
    name: str | None = None,
) -> Any:
    """A dataclass field with what its command-line option needs.

    default: or `REQUIRED`. text: for help. choices, least, most: the values that are allowed. metavar: what help calls
    the value. name: of the option, where it is not the field's.
    """
    rules = {"choices": choices, "least": least, "most": most}
    return _field(default, {"help": text, "metavar": metavar, "name": name, "positional": False, **rules})


def argument(default: Any, text: str, *, metavar: str | None = None) -> Any:
    """A dataclass field that is a word of its own on the command line, or several where it is a list[str]."""
    rules = {"choices": (), "least": None, "most": None}
    return _field(default, {"help": text, "metavar": metavar, "name": None, "positional": True, **rules})


def _field(default: Any, metadata: dict[str, Any]) -> Any:
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(metadata=metadata) if default is REQUIRED else field(default=default, metadata=metadata)


def check_options(config: "DataclassInstance") -> None:
    """Hold every field made by `option` to its choices or range. Raises UsageError that names key and range."""
    for entry in fields(config):
        value, rules = getattr(config, entry.name), entry.metadata
        if value is None:
            if entry.default is None:
                continue
            raise UsageError(f"{entry.name}: needs a value")
        if rules["choices"] and value not in rules["choices"]:
            raise UsageError(f"{entry.name}: {value!r} is unknown; known: {', '.join(rules['choices'])}")
        if isinstance(value, float) and not math.isfinite(value) and value != entry.default:
            raise UsageError(f"{entry.name}: {value} is not a finite number")
        least, most = rules["least"], rules["most"]
        if (least is not None and not value >= least) or (most is not None and not value <= most):
            allowed = f"at least {least:g}" if most is None else f"{least:g} to {most:g}"
            raise UsageError(f"{entry.name}: {value} is out of range; allowed: {allowed}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Base of dataclasses whose fields are options. Raises UsageError for a value that is not allowed."""

    def __post_init__(self) -> None:
        check_options(self)
