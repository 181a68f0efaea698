"""Options as fields of a dataclass: type, default, help text and allowed values in one place.

`pose_apps.support.options` makes command-line options and keys of config files from them. This module has no heavy
imports, so that commands parse their options before any network is loaded.
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
    """Make a dataclass field with the metadata of its command-line option.

    Args:
        default: Default value, or `REQUIRED`.
        text: Help text.
        choices: Allowed values.
        least: Minimum.
        most: Maximum.
        metavar: Name of the value in help.
        name: Name of the option, if it differs from the field's.
    """
    rules = {"choices": choices, "least": least, "most": most}
    return _field(default, {"help": text, "metavar": metavar, "name": name, "positional": False, **rules})


def argument(default: Any, text: str, *, metavar: str | None = None) -> Any:
    """Make a dataclass field that is a positional argument, or several if it is a list[str]."""
    rules = {"choices": (), "least": None, "most": None}
    return _field(default, {"help": text, "metavar": metavar, "name": None, "positional": True, **rules})


def _field(default: Any, metadata: dict[str, Any]) -> Any:
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(metadata=metadata) if default is REQUIRED else field(default=default, metadata=metadata)


def check_options(config: "DataclassInstance") -> None:
    """Validate every field made by `option`.

    Raises:
        UsageError: That names the key and the allowed values.
    """
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
    """Base of dataclasses whose fields are options.

    Raises:
        UsageError: For an invalid value.
    """

    def __post_init__(self) -> None:
        check_options(self)
