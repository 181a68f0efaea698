"""Command-line options made of the fields of a configuration, and presets as config files."""

import argparse
import sys
from collections.abc import Container, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import yaml
from jsonargparse import ActionConfigFile, ActionYesNo, ArgumentParser, Namespace

from pose.config import preset_names, presets_folder

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
    required = entry.default is MISSING and entry.default_factory is MISSING
    default = entry.default if entry.default_factory is MISSING else entry.default_factory()
    more: dict[str, Any] = {"help": rules["help"]} | ({"metavar": rules["metavar"]} if rules["metavar"] else {})
    if not required:
        more["default"] = default
    if get_origin(kind) is list:
        more["nargs"] = "+" if required or not rules["positional"] else "*"
        (kind,) = get_args(kind)
    if rules["positional"]:
        parser.add_argument(entry.name, type=kind, **more)
        return
    name = "--" + (rules["name"] or entry.name).replace("_", "-")
    if kind is bool:
        parser.add_argument(name, action=ActionYesNo(no_prefix="no-"), **more)
        return
    if required:
        more["required"] = True
    if rules["name"]:
        more["dest"] = entry.name
    parser.add_argument(name, type=Literal[rules["choices"]] if rules["choices"] else kind, **more)


def config_of(config: type[Config], parsed: Namespace) -> Config:
    """The dataclass of the parsed options. Raises UsageError for a value that is not allowed."""
    return config(**{entry.name: parsed[entry.name] for entry in fields(config)})


def _check_yaml(path: Path) -> None:
    """Raises ValueError for a file that no settings need to be, and that could take all time and memory."""
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"has {path.stat().st_size} bytes; settings of at most {MOST_BYTES} are taken")
    depth = 0
    with path.open(encoding="utf-8") as file:
        try:
            for event in yaml.parse(file, yaml.SafeLoader):
                if isinstance(event, yaml.AliasEvent):  # a few of aliases of aliases are billions of values
                    raise ValueError("refers to an anchor (*); write the values out")
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
        try:
            if path.is_file():
                _check_yaml(path)
            super().__call__(parser, namespace, values, option_string)
        except UnicodeDecodeError as error:
            raise argparse.ArgumentError(self, f"{values} is no text file") from error
        except ValueError as error:
            raise argparse.ArgumentError(self, f"{values} {error}") from error


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
