"""`pose-weights`: list, fetch, verify and bundle weights."""

import json
import sys
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

from jsonargparse import ArgumentParser

from pose.errors import UsageError
from pose.networks.weights import FetchError, Store, Weight, WeightStatus
from pose.networks.weights.bundle import install_bundle, write_bundle
from pose.networks.weights.catalogue import Download, Source, ZipMember
from pose.utils.json_values import Json
from pose.utils.options import REQUIRED, Options, argument, option, overwrite_option
from pose.utils.written_files import check_target, writing
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import add_subcommand, command_parser, config_of


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-weights`."""
    parsed = parse_arguments(_parser(), argv)
    return config_of(COMMANDS[parsed.command], parsed[parsed.command]).run(Store.from_environment())


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Options):
    """Options of a subcommand of `pose-weights`."""

    purpose: ClassVar[str]  # help text of the subcommand

    @abstractmethod
    def run(self, store: Store) -> int:
        """Run the subcommand and return the exit status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class List(Command):
    """The subcommand `pose-weights list`, which lists all known weights."""

    purpose = "List all weights: size, licence, and whether they are on this machine."

    json: bool = option(False, "print JSON, with hashes and sources")

    def run(self, store: Store) -> int:
        """Print all weights in the catalogue of `store`, and return the exit status."""
        statuses = [store.status(name) for name in store.catalogue]
        if self.json:
            print(_as_json(statuses))
        else:
            print(_as_table(statuses))
            print(f"\n* needed by the default networks. Fetched files go to {store.cache}")
        return 0


UNVERIFIED = "also fetch weights without a published hash, at your own risk"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetch(Command):
    """The subcommand `pose-weights fetch`, which downloads weights."""

    purpose = "Download weights to the cache folder."

    names: list[str] = argument([], "names of weights, as in pose-weights list", metavar="NAME")
    all_default: bool = option(False, "all weights of the default networks")
    from_bundle: str | None = option(None, "read them from an archive of `pose-weights bundle`", metavar="FILE")
    allow_unverified: bool = option(False, UNVERIFIED)

    def run(self, store: Store) -> int:
        """Download the requested weights to the cache folder of `store`, and return the exit status."""
        if self.from_bundle:
            if self.names or self.all_default:
                raise UsageError("--from-bundle reads the whole archive; omit the names of weights")
            for weight in install_bundle(store, Path(self.from_bundle), allow_unverified=self.allow_unverified):
                print(f"{weight.name}  {store.cache / weight.file}")
            return 0
        names = dict.fromkeys(self.names + _default_names(store) if self.all_default else self.names)
        if not names:
            raise UsageError("nothing to fetch: give names of weights, --all-default or --from-bundle FILE")
        for name in names:
            store.weight(name)  # check all names before fetching
        for name in names:
            print(f"{name}  {store.fetch(name, allow_unverified=self.allow_unverified)}", flush=True)
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify(Command):
    """The subcommand `pose-weights verify`, which checks the hashes of weights."""

    purpose = "Check the hashes of the weights on this machine."

    names: list[str] = argument([], "weights to check; default: all that are present", metavar="NAME")

    def run(self, store: Store) -> int:
        """Check the hashes of the weights in `store`. The exit status is 1 if one is wrong."""
        statuses = [store.status(name) for name in self.names or store.catalogue]
        checked = [status for status in statuses if self.names or status.state != "missing"]
        for status in checked:
            state = "ok" if status.state == "present" else status.state
            print(f"{state:10}  {status.weight.name}  {status.problem or status.path or ''}".rstrip())
        needed = (s for s in statuses if s.weight.default and not s.weight.fallback)
        if not self.names and any(status.state == "missing" for status in needed):
            print("weights of the default networks are missing: run `pose-weights fetch --all-default`")
        return int(any(status.state != "present" for status in checked))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle(Command):
    """The subcommand `pose-weights bundle`, which packs weights into one archive."""

    purpose = "Pack weights into one archive for a machine without network access."

    names: list[str] = argument([], "weights to pack; default: those of the default networks", metavar="NAME")
    out: str = option(REQUIRED, "the archive to write (.zip)", metavar="FILE")
    overwrite: bool = overwrite_option("an existing file")
    allow_unverified: bool = option(False, UNVERIFIED)

    def run(self, store: Store) -> int:
        """Write the weights in `store` to an archive, and return the exit status."""
        path = Path(self.out)
        check_target(path, overwrite=self.overwrite)
        names = self.names or _default_names(store)
        with writing([path]):
            weights = write_bundle(store, names, path, allow_unverified=self.allow_unverified)
        print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, {', '.join(weight.name for weight in weights)}")
        print(f"on the other machine: pose-weights fetch --from-bundle {path.name}")
        return 0


COMMANDS: Mapping[str, type[Command]] = {"list": List, "fetch": Fetch, "verify": Verify, "bundle": Bundle}


def _parser() -> ArgumentParser:
    parser = command_parser("pose-weights", "List, download, verify and bundle the weights of networks.")
    commands = parser.add_subcommands(required=True, dest="command")
    for name, command in COMMANDS.items():
        add_subcommand(commands, name, command.purpose, command)
    return parser


def _default_names(store: Store) -> list[str]:
    """Return the names of the default weights, without those that have to be and can be replaced."""
    default = [weight for weight in store.catalogue.values() if weight.default]
    return [weight.name for weight in default if not (weight.fallback and _fails(store, weight))]


def _fails(store: Store, weight: Weight) -> bool:
    """Fetch a weight, and return whether this failed. A failure is printed as a warning."""
    try:
        store.fetch(weight.name)
    except FetchError as error:
        print(f"warning: {error}; {weight.fallback} is used instead", file=sys.stderr)
        return True
    return False


def _as_table(statuses: Sequence[WeightStatus]) -> str:
    rows = [("NAME", "SIZE", "LICENCE", "STATE", "LOCATION OR SOURCE")]
    for status in statuses:
        weight = status.weight
        size = "?" if weight.size is None else f"{weight.size / 1e6:.1f} MB"
        name = weight.name + ("*" if weight.default else "")
        rows.append((name, size, weight.licence, status.state, str(status.path or _in_short(weight.source))))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        f"{name:{widths[0]}}  {size:>{widths[1]}}  {licence:{widths[2]}}  {state:{widths[3]}}  {where}"
        for name, size, licence, state, where in rows
    )


def _in_short(source: Source) -> str:
    return f"from {urlsplit(source.url).netloc}" if isinstance(source, Download | ZipMember) else str(source)


def _as_json(statuses: Sequence[WeightStatus]) -> str:
    entries: list[dict[str, Json]] = [
        {
            "name": status.weight.name,
            "file": status.weight.file,
            "licence": status.weight.licence,
            "size": status.weight.size,
            "sha256": status.weight.sha256,
            "source": str(status.weight.source),
            "default": status.weight.default,
            "state": status.state,
            "path": str(status.path) if status.path else None,
            "problem": status.problem,
        }
        for status in statuses
    ]
    return json.dumps(entries, indent=2)
