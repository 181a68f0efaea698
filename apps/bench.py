"""`pose-bench`: how fast the parts are on this machine. Each subcommand is a file `bench_*.py` of its own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from apps import bench_detectors, bench_estimators, bench_lifter
from apps.common import parse_arguments, run_command

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser

# name -> module with PURPOSE, add_options(parser) and run(options)
SUBCOMMANDS = {"detectors": bench_detectors, "estimators": bench_estimators, "lifter": bench_lifter}


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `pose-bench`."""
    options = parse_arguments(_parser(), argv)
    SUBCOMMANDS[options.command].run(options[options.command])
    return 0


def _parser() -> "ArgumentParser":
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(
        prog="pose-bench", description="How fast the parts are on this machine.", exit_on_error=False
    )
    commands = parser.add_subcommands(required=True, dest="command")
    for name, module in SUBCOMMANDS.items():
        command = ArgumentParser(description=module.PURPOSE, exit_on_error=False)
        module.add_options(command)
        commands.add_subcommand(name, command, help=module.PURPOSE)
    return parser
