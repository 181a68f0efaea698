"""`pose-weights`: see what weights there are; bring, check and pack them."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pose.errors import UsageError
from pose.system.json_values import Json
from pose.weights import FetchError, Status, Store, Weight
from pose.weights.bundle import install_bundle, write_bundle
from pose.weights.catalogue import Download, Source, ZipMember
from pose_apps.support.command import parse_arguments, run_command

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `pose-weights`."""
    arguments = parse_arguments(_parser(), argv)
    commands: dict[str, Callable[..., int]] = {"list": _list, "fetch": _fetch, "verify": _verify, "bundle": _bundle}
    return commands[arguments.command](Store.from_environment(), **arguments[arguments.command])


def _parser() -> "ArgumentParser":
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(
        prog="pose-weights", description="Weights: list, fetch, verify, bundle.", exit_on_error=False
    )
    commands = parser.add_subcommands(required=True, dest="command")

    def add(name: str, purpose: str) -> "ArgumentParser":
        command = ArgumentParser(description=purpose, exit_on_error=False)
        commands.add_subcommand(name, command, help=purpose)
        return command

    command = add("list", "Show every weight: size, licence, and whether this machine has it.")
    command.add_argument("--json", action="store_true", help="print JSON, with hashes and sources")

    command = add("fetch", "Bring weights into the cache folder.")
    command.add_argument("names", nargs="*", default=[], help="weights, by the names that `list` shows")
    command.add_argument("--all-default", action="store_true", help="all that the default path needs")
    command.add_argument("--from-bundle", metavar="FILE", help="take them out of an archive made by `bundle`")
    _add_allow_unverified(command)

    command = add("verify", "Check the hashes of the weights on this machine.")
    command.add_argument("names", nargs="*", default=[], help="weights that must be here; default: those that are")

    command = add("bundle", "Write one archive of weights for a machine without network.")
    command.add_argument("names", nargs="*", default=[], help="weights; default: all that the default path needs")
    command.add_argument("--out", metavar="FILE", required=True, help="the archive to write (.zip)")
    command.add_argument("--overwrite", action="store_true", help="replace an existing file")
    _add_allow_unverified(command)
    return parser


def _add_allow_unverified(command: "ArgumentParser") -> None:
    command.add_argument(
        "--allow-unverified", action="store_true", help="also weights whose hash nobody published, on your own trust"
    )


def _list(store: Store, json: bool) -> int:
    statuses = [store.status(name) for name in store.catalogue]
    if json:
        print(_as_json(statuses))
    else:
        print(_as_table(statuses))
        print(f"\n* needed by the default path. Fetched files go to {store.cache}")
    return 0


def _fetch(store: Store, names: list[str], all_default: bool, from_bundle: str | None, allow_unverified: bool) -> int:
    if from_bundle:
        if names or all_default:
            raise UsageError("--from-bundle takes everything in the archive: name no weights beside it")
        for weight in install_bundle(store, Path(from_bundle), allow_unverified=allow_unverified):
            print(f"{weight.name}  {store.cache / weight.file}")
        return 0
    names = names + _default_names(store) if all_default else names
    if not names:
        raise UsageError("nothing to fetch: name weights, or give --all-default or --from-bundle FILE")
    for name in dict.fromkeys(names):
        store.weight(name)  # a misspelt name is said before anything is fetched
    for name in dict.fromkeys(names):
        print(f"{name}  {store.fetch(name, allow_unverified=allow_unverified)}", flush=True)
    return 0


def _verify(store: Store, names: list[str]) -> int:
    statuses = [store.status(name) for name in names or store.catalogue]
    checked = [status for status in statuses if names or status.state != "missing"]
    for status in checked:
        print(f"{status.state:10}  {status.weight.name}  {status.problem or status.path or ''}".rstrip())
    if any(s.weight.default and not s.weight.stand_in and s.state == "missing" for s in statuses) and not names:
        print("the default path needs more than is here: `pose-weights fetch --all-default` brings it")
    return int(any(status.state != "present" for status in checked))


def _bundle(store: Store, names: list[str], out: str, overwrite: bool, allow_unverified: bool) -> int:
    path = Path(out)
    if path.exists() and not overwrite:
        raise UsageError(f"--out {path} exists already; add --overwrite to replace it")
    weights = write_bundle(store, names or _default_names(store), path, allow_unverified=allow_unverified)
    print(f"{path}: {path.stat().st_size / 1e6:.1f} MB, {', '.join(weight.name for weight in weights)}")
    print(f"on the other machine: pose-weights fetch --from-bundle {path.name}")
    return 0


def _default_names(store: Store) -> list[str]:
    """What the default path needs, without what could not be had now and another weight stands in for."""
    default = [weight for weight in store.catalogue.values() if weight.default]
    return [weight.name for weight in default if not (weight.stand_in and _fails(store, weight))]


def _fails(store: Store, weight: Weight) -> bool:
    """Whether a weight could not be had; says so."""
    try:
        store.fetch(weight.name)
    except FetchError as error:
        print(f"warning: {error}; {weight.stand_in} stands in for it", file=sys.stderr)
        return True
    return False


def _as_table(statuses: Sequence[Status]) -> str:
    rows = [("NAME", "SIZE", "LICENCE", "STATE", "WHERE, OR WHERE FROM")]
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


def _as_json(statuses: Sequence[Status]) -> str:
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
