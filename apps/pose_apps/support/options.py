"""Command-line options made of the fields of a configuration, and presets as config files."""

import argparse
import sys
from collections.abc import Container, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, get_type_hints

import yaml
from jsonargparse import ActionConfigFile, ActionYesNo, ArgumentParser, Namespace

from pose.config import preset_names, presets_folder

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

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


def add_options(parser: ArgumentParser, config: type["DataclassInstance"], without: Container[str] = ()) -> None:
    """One option for each field of a dataclass whose fields were made by `pose.config.option`, but for some."""
    types = get_type_hints(config)
    for entry in fields(config):
        if entry.name in without:
            continue
        name = "--" + entry.name.replace("_", "-")
        assert entry.default is not MISSING, entry.name
        text = entry.metadata["help"]
        if types[entry.name] is bool:
            parser.add_argument(name, action=ActionYesNo(no_prefix="no-"), default=entry.default, help=text)
            continue
        choices = entry.metadata["choices"]
        parser.add_argument(
            name, type=Literal[choices] if choices else types[entry.name], default=entry.default, help=text
        )


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
