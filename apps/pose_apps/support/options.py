"""Command-line options made of the fields of a configuration, and presets as config files."""

import argparse
import re
import sys
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import yaml
from jsonargparse import ActionConfigFile, ActionYesNo, ArgumentParser, Namespace

from pose.config import preset_names, presets_folder
from pose.errors import UsageError
from pose_apps.support.values import Value, unknown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from jsonargparse._subcommands import ActionSubCommands

Config = TypeVar("Config", bound="DataclassInstance")
MOST_BYTES = 1 << 16  # of a file of settings;
MOST_DEEP = 20  # collections in collections in it


def add_config_option(parser: ArgumentParser) -> None:
    """`--config FILE|PRESET`, which also brings `--print_config`."""
    parser.add_argument("--config", action=_PresetOrFile, help=f"a YAML file, or a preset: {', '.join(preset_names())}")


def config_first(argv: Sequence[str] | None) -> list[str]:
    """The words of a call with every `--config` in front: options override the file wherever they stand."""
    words = iter(sys.argv[1:] if argv is None else argv)
    front: list[str] = []
    others: list[str] = []
    for word in words:
        if word == "--config" and (value := next(words, None)) is not None:
            front += [word, value]
        else:
            (front if word.startswith("--config=") else others).append(word)
    return front + others


def command_parser(prog: str, description: str, *configs: type["DataclassInstance"]) -> ArgumentParser:
    """The parser of a command, with one option for each field of its configurations."""
    parser = ArgumentParser(prog=prog, description=description, exit_on_error=False)
    for config in configs:
        add_options(parser, config)
    return parser


def add_subcommand(
    commands: "ActionSubCommands", name: str, purpose: str, *configs: type["DataclassInstance"]
) -> ArgumentParser:
    """A subcommand, with one option for each field of its configurations. commands: what `add_subcommands` gave."""
    command = ArgumentParser(description=purpose, exit_on_error=False)
    for config in configs:
        add_options(command, config)
    commands.add_subcommand(name, command, help=purpose)
    return command


def add_options(parser: ArgumentParser, config: type["DataclassInstance"], without: Container[str] = ()) -> None:
    """One option for each field of a dataclass whose fields were made by `pose.options`, but for some."""
    types = get_type_hints(config)
    for entry in fields(config):
        if entry.name not in without:
            _add_option(parser, entry, types[entry.name])


def _add_option(parser: ArgumentParser, entry: "Field[object]", kind: object) -> None:
    rules = entry.metadata
    many = get_origin(kind) is list
    if _is_required(entry):  # which `config_of` says better
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
        more |= {"nargs": "*", "default": argparse.SUPPRESS} if many else {"nargs": "?"}  # what a file says stays
    else:
        more |= {"nargs": "+"} if many else {}
        more |= {"dest": entry.name} if rules["name"] else {}
    if rules["choices"]:
        kind = Literal[rules["choices"]]
    parser.add_argument(typed, type=Value(typed, get_args(kind)[0] if many else kind), **more)


def _is_required(entry: "Field[object]") -> bool:
    return entry.default is MISSING and entry.default_factory is MISSING


def _typed(entry: "Field[object]") -> str:
    """An option as it is typed, or the name of a word of its own."""
    name: str = entry.metadata["name"] or entry.name
    return name if entry.metadata["positional"] else "--" + name.replace("_", "-")


def config_of(config: type[Config], parsed: Namespace) -> Config:
    """The dataclass of the parsed options. Raises UsageError for a value that is missing or not allowed."""
    required = [entry for entry in fields(config) if _is_required(entry)]
    missing = [_typed(entry) for entry in required if parsed.get(entry.name) in (None, [])]
    if missing:
        raise UsageError(f"missing: {', '.join(missing)}")
    return config(**{entry.name: parsed[entry.name] for entry in fields(config) if entry.name in parsed})


def _check_settings(path: Path, parser: argparse.ArgumentParser) -> None:
    """Raises ValueError for a file that holds no settings, UsageError for a key that is no option of the parser."""
    _check_yaml(path)
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
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
    """Whether a file of settings may say it, too: not what ends the command, nor which file that is."""
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


_BASE_60 = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?")  # 1:1.82 would be 61.82


def _check_yaml(path: Path) -> None:
    """Raises ValueError for a file that no settings need to be, and that could take all time and memory."""
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"has {path.stat().st_size} bytes; a config file has at most {MOST_BYTES}")
    depth = 0
    with path.open(encoding="utf-8") as file:
        try:
            for event in yaml.parse(file, yaml.SafeLoader):
                if isinstance(event, yaml.AliasEvent):  # a few of aliases of aliases are billions of values
                    raise ValueError("uses an alias (*); write the values out")
                if isinstance(event, yaml.ScalarEvent) and event.style is None and _BASE_60.fullmatch(event.value):
                    raise ValueError(f"put {event.value} in quotes: YAML reads it as a base-60 number")
                depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
                if depth > MOST_DEEP:
                    raise ValueError(f"nests more than {MOST_DEEP} deep")
        except yaml.YAMLError:
            return  # which the parser says better


class ConfigFile(ActionConfigFile):
    """`--config FILE`, from anybody."""

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
            raise argparse.ArgumentError(self, f"{values} is neither a file nor a preset: {', '.join(preset_names())}")
        super().__call__(parser, namespace, values, option_string)
