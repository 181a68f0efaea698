"""Command-line options and config files, generated from the fields of dataclasses, and their values."""

import argparse
import difflib
import math
import re
import sys
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml
from jsonargparse import ActionConfigFile, ActionYesNo, ArgumentParser, Namespace

from pose.errors import UsageError
from pose.utils.presets import preset_names, presets_folder
from pose.utils.shown import shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from jsonargparse._subcommands import ActionSubCommands

Config = TypeVar("Config", bound="DataclassInstance")
# Processor time on a CPU relative to `fast` (docs/studies/results/presets.json).
PRESET_TIMES = {"fast": 1.0, "standard": 1.5, "best": 7.3}
MAX_CONFIG_BYTES = 1 << 16  # maximum size of a config file
MAX_CONFIG_DEPTH = 20  # maximum nesting in a config file


def add_config_option(parser: ArgumentParser) -> None:
    """Add the options `--config FILE|PRESET` and `--print_config` to a parser."""
    costs = ", ".join(f"{name} {factor:g}" for name, factor in PRESET_TIMES.items())
    others = ", ".join(name for name in preset_names() if name not in PRESET_TIMES)
    parser.add_argument(
        "--config",
        action=_PresetOrFile,
        help=f"a YAML file, or a preset; for a CPU, with the time relative to fast: {costs}; others: {others}",
    )


def config_first(argv: Sequence[str] | None) -> list[str]:
    """Move every `--config` to the front of the arguments, so that options override the config file at any position."""
    words = iter(sys.argv[1:] if argv is None else argv)
    front: list[str] = []
    others: list[str] = []
    for word in words:
        if word == "--config" and (value := next(words, None)) is not None:
            front += [word, value]
        else:
            (front if word.startswith("--config=") else others).append(word)
    return front + others


def gathered(words: Sequence[str], name: str) -> list[str]:
    """Join the values of a repeated option: `--source a --source b` becomes `--source a b`."""
    values: list[str] = []
    others: list[str] = []
    place, taking = len(words), False
    for word in words:
        if word == name or word.startswith(f"{name}="):
            place, taking = min(place, len(others)), True
            values += [word.removeprefix(f"{name}=")] if word != name else []
        elif taking and not word.startswith("--"):
            values.append(word)
        else:
            taking = False
            others.append(word)
    return [*others[:place], name, *values, *others[place:]] if place < len(words) or values or taking else list(words)


def command_parser(
    prog: str, description: str, *configs: type["DataclassInstance"], presets: bool = False
) -> ArgumentParser:
    """Return the parser of a command, with one option per field of the given dataclasses."""
    parser = ArgumentParser(prog=prog, description=description, exit_on_error=False)
    if presets:
        add_config_option(parser)
    for config in configs:
        add_options(parser, config)
    return parser


def add_subcommand(
    commands: "ActionSubCommands", name: str, purpose: str, *configs: type["DataclassInstance"]
) -> ArgumentParser:
    """Add a subcommand with one option per field of the given dataclasses, and return its parser."""
    command = ArgumentParser(description=purpose, exit_on_error=False)
    for config in configs:
        add_options(command, config)
    commands.add_subcommand(name, command, help=purpose)
    return command


def named_subcommands(names: Iterable[str], argv: Sequence[str] | None) -> list[str]:
    """Return the subcommands that the arguments may name; the parser needs the options of no others."""
    words = sys.argv[1:] if argv is None else argv
    is_completion = any(word.startswith("--print-completion") for word in words)
    return [name for name in names if is_completion or name in words]


def add_options(parser: ArgumentParser, config: type["DataclassInstance"], without: Container[str] = ()) -> None:
    """Add one option to the parser for each field of a dataclass made with `options`, but for `without`."""
    types = get_type_hints(config)
    for entry in fields(config):
        if entry.name not in without:
            _add_option(parser, entry, types[entry.name])


def _add_option(parser: ArgumentParser, entry: "Field[object]", kind: object) -> None:
    rules = entry.metadata
    many = get_origin(kind) is list
    if _is_required(entry):  # `config_of` gives a better message
        default: object = [] if many else None
    else:
        default = entry.default if entry.default_factory is MISSING else entry.default_factory()
    more: dict[str, Any] = {"help": rules["help"], "default": default}
    if rules["metavar"]:
        more["metavar"] = rules["metavar"]
    typed = _typed(entry)
    if kind is bool:
        parser.add_argument(typed, action=ActionYesNo(no_prefix="no-"), **more)
        return
    if rules["positional"]:
        # keeps the value from the file
        more |= {"nargs": "*", "default": argparse.SUPPRESS} if many else {"nargs": "?"}
    else:
        more |= {"nargs": "+"} if many else {}
        more |= {"dest": entry.name} if rules["name"] else {}
    if rules["choices"]:
        kind = Literal[rules["choices"]]
    parser.add_argument(typed, type=Value(typed, get_args(kind)[0] if many else kind), **more)


def _is_required(entry: "Field[object]") -> bool:
    return entry.default is MISSING and entry.default_factory is MISSING


def _typed(entry: "Field[object]") -> str:
    """Return an option as typed, or the name of a positional argument."""
    name: str = entry.metadata["name"] or entry.name
    return name if entry.metadata["positional"] else "--" + name.replace("_", "-")


def config_of(config: type[Config], parsed: Namespace) -> Config:
    """Return the dataclass with the parsed options."""
    required = [entry for entry in fields(config) if _is_required(entry)]
    missing = [_typed(entry) for entry in required if parsed.get(entry.name) in (None, [])]
    if missing:
        raise UsageError(f"missing: {', '.join(missing)}")
    return config(**{entry.name: parsed[entry.name] for entry in fields(config) if entry.name in parsed})


def _check_settings(path: Path, parser: argparse.ArgumentParser) -> None:
    """Check the content of a config file."""
    _check_yaml(path)
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8-sig"))
    except yaml.YAMLError as error:
        mark, problem = getattr(error, "problem_mark", None), getattr(error, "problem", None) or error
        place = "" if mark is None else f"line {mark.line + 1}: "
        raise ValueError(f"not readable as YAML: {place}{problem}") from error
    if not isinstance(settings, dict):
        raise ValueError("expected lines such as `max_people: 3`")
    actions = {action.dest: action for action in parser._actions if _is_key(action)}
    for key in _unknown_keys(settings, sorted(actions)):
        raise UsageError(unknown("key", key, sorted(actions)))
    for key, value in settings.items():
        action = actions.get(key)
        if isinstance(action, ActionYesNo) and not isinstance(value, bool | None):
            raise UsageError(f"{key}: expected true or false, got {value}")
        if action is not None and action.nargs in ("*", "+") and not isinstance(value, list):
            raise UsageError(f"{key}: expected a list, such as [one, two], got {value}")


def _is_key(action: argparse.Action) -> bool:
    """Return whether an option can be set in a config file. Options that exit or select the file cannot."""
    if isinstance(action.type, Value):
        return True
    return argparse.SUPPRESS not in (action.help, action.default) and not isinstance(action, ActionConfigFile)


def _unknown_keys(settings: Mapping[object, object], known: Collection[str], within: str = "") -> Iterator[str]:
    for key, value in settings.items():
        name = f"{within}{key}"
        if isinstance(value, dict) and any(one.startswith(f"{name}.") for one in known):
            yield from _unknown_keys(value, known, f"{name}.")
        elif name not in known:
            yield name


_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")  # YAML would read 1:1.82 as 61.82


def _check_yaml(path: Path) -> None:
    """Reject YAML features that could exhaust time or memory. Settings do not need them."""
    if path.stat().st_size > MAX_CONFIG_BYTES:
        raise ValueError(f"has {path.stat().st_size} bytes; a config file has at most {MAX_CONFIG_BYTES}")
    depth = 0
    with path.open(encoding="utf-8-sig") as file:
        try:
            for event in yaml.parse(file, yaml.SafeLoader):
                if isinstance(event, yaml.AliasEvent):  # nested aliases can expand to billions of values
                    raise ValueError("uses an alias (*); write the values out")
                if isinstance(event, yaml.ScalarEvent) and event.style is None and _BASE_60.fullmatch(event.value):
                    raise ValueError(f"put {event.value} in quotes: YAML reads it as a base-60 number")
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
                if depth > MAX_CONFIG_DEPTH:
                    raise ValueError(f"nests more than {MAX_CONFIG_DEPTH} deep")
        except yaml.YAMLError:
            return  # the parser gives a better message


class ConfigFile(ActionConfigFile):
    """Parser action of `--config FILE` that is safe for untrusted files."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        path = Path(str(values)).expanduser()
        if not path.is_file():
            raise argparse.ArgumentError(self, f"{values}: no such file")
        try:
            _check_settings(path, parser)
            super().__call__(parser, namespace, values, option_string)  # type: ignore[no-untyped-call]
        except UsageError as error:
            name, colon, rest = str(error).partition(":")
            key = name.removeprefix("--").replace("-", "_") if name.startswith("--") else name
            raise argparse.ArgumentError(self, f"{values}: {key}{colon}{rest}") from error
        except UnicodeDecodeError as error:
            raise argparse.ArgumentError(self, f"{values}: not a text file") from error
        except ValueError as error:
            raise argparse.ArgumentError(self, f"{values}: {error}") from error


class _PresetOrFile(ConfigFile):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        if values in preset_names():
            values = str(presets_folder() / f"{values}.yaml")
        if not Path(str(values)).expanduser().is_file():
            raise argparse.ArgumentError(
                self, f"{values} is neither a file nor a preset; presets: {', '.join(preset_names())}"
            )
        super().__call__(parser, namespace, values, option_string)


MAX_SHOWN = 60  # characters of a name or value in a message
MAX_LISTED = 30  # known names in a message
EXPECTED = {int: "a whole number", float: "a number", str: "text"}


@dataclass(frozen=True, slots=True)
class Value:
    """Converter of the value of an option, used as the `type` of a parser argument."""

    name: str  # option as typed on the command line, such as "--fps"
    kind: object  # type of the value: int, float or str, optionally None; or a Literal

    def __call__(self, value: object) -> object:
        """Convert a typed or configured value to the option's type; UsageError says what is expected."""
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
