"""`pose-bench`: how fast the parts are on this machine. Each subcommand is a module of this package."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pose_apps.bench import detectors, estimators, exports, lifter
from pose_apps.support.command import parse_arguments, run_command

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser

# name -> module with PURPOSE, add_options(parser) and run(options)
SUBCOMMANDS = {"detectors": detectors, "estimators": estimators, "exports": exports, "lifter": lifter}


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
