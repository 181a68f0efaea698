"""`pose-bench`: speed of the components on this machine. Each subcommand is a module of this package."""

from collections.abc import Mapping, Sequence

from jsonargparse import ArgumentParser

from pose_apps.bench.exports import ExportBench
from pose_apps.bench.lifter import LifterBench
from pose_apps.bench.measurement import Bench
from pose_apps.bench.networks import DetectorBench, EstimatorBench
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import add_subcommand, command_parser, config_of

SUBCOMMANDS: Mapping[str, type[Bench]] = {
    "detectors": DetectorBench,
    "estimators": EstimatorBench,
    "exports": ExportBench,
    "lifter": LifterBench,
}


@run_command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command `pose-bench`."""
    parsed = parse_arguments(_parser(), argv)
    config_of(SUBCOMMANDS[parsed.command], parsed[parsed.command]).run()


def _parser() -> ArgumentParser:
    parser = command_parser(
        "pose-bench", "Measure the speed of detectors, estimators, lifters and exports on this machine."
    )
    commands = parser.add_subcommands(required=True, dest="command")
    for name, bench in SUBCOMMANDS.items():
        add_subcommand(commands, name, bench.purpose, bench)
    return parser
