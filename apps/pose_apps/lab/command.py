"""`pose-lab`: list and run experiments, print their tables, draw attention maps."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jsonargparse import ArgumentParser

from pose.errors import UsageError
from pose.utils.options import REQUIRED, Options, argument, option, overwrite_option
from pose.utils.presets import presets_folder
from pose.utils.written_files import check_target
from pose_apps.lab.options import LogOptions, RunOptions
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import add_subcommand, command_parser, config_of


@run_command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command `pose-lab`."""
    parsed = parse_arguments(_parser(), argv)
    config_of(COMMANDS[parsed.command], parsed[parsed.command]).run()


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Options):
    """Options of a subcommand of `pose-lab`."""

    purpose: ClassVar[str]  # help text of the subcommand

    @abstractmethod
    def run(self) -> None:
        """Run the subcommand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class List(LogOptions, Command):
    """The subcommand `pose-lab list`, which lists the experiments."""

    purpose = "List experiments with their claims and the number of finished trials."

    def run(self) -> None:
        """Print all experiments with the number of their finished training runs."""
        from pose.training.laboratory.experiment import experiments
        from pose.training.laboratory.log import TrialLog

        for name, experiment in experiments(_folder()).items():
            records = TrialLog(Path(self.log), name).records()
            print(f"{name}: {experiment.claim}")
            print(f"    {len(experiment.conditions)} conditions; in {self.log}: {len(records)} trials")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run(RunOptions, Command):
    """The subcommand `pose-lab run`, which runs experiments."""

    purpose = "Run the unfinished trials of experiments and add them to the log."

    def run(self) -> None:
        """Run the trials (training runs) of the experiments that are not finished."""
        from pose_apps.lab.run import run

        run(self, _folder())


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(LogOptions, Command):
    """The subcommand `pose-lab table`, which prints the results of experiments."""

    purpose = "Print the results in the log as Markdown tables."

    names: list[str] = argument([], "experiments; default: all with results", metavar="NAME")
    write: str | None = option(None, "update the marked tables and plots of this Markdown page", metavar="PAGE")

    def run(self) -> None:
        """Print the tables of results, or write them to a page."""
        from pose.training.laboratory.experiment import experiments, find_experiment
        from pose.training.laboratory.table import format_section, records_by_condition, update_page

        log = Path(self.log)
        every = experiments(_folder())
        if self.write:
            if self.names:
                raise UsageError("--write updates every marked table of the page; omit the experiments")
            print(f"{self.write}: {', '.join(update_page(Path(self.write), every, log))}")
            return
        chosen = [find_experiment(name, _folder()) for name in self.names]
        chosen = chosen or [experiment for experiment in every.values() if records_by_condition(experiment, log)]
        if not chosen:
            raise UsageError(f"--log {log}: contains no results; run `pose-lab run` first")
        print("\n\n".join(f"## {experiment.name}\n\n{format_section(experiment, log)}" for experiment in chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class Maps(Command):
    """The subcommand `pose-lab maps`, which draws the attention maps of a lifter."""

    purpose = "Draw a lifter's attention maps with the entropy and reach (s) of each head."

    checkpoint: str = argument(REQUIRED, "offline, sliding, stream, or a checkpoint file", metavar="LIFTER")
    clip: str = argument(REQUIRED, "2D keypoints, an .npz file in the format of pose-lift", metavar="KEYPOINTS")
    start: int = option(0, "number of the first frame, counted from 0")
    frames: int = option(81, "number of frames")
    out: str = option("maps.png", "the image file to write", metavar="FILE")
    overwrite: bool = overwrite_option("an existing file")

    def run(self) -> None:
        """Draw the attention maps to an image file, and print the metrics of each attention head."""
        from pose_apps.lab.maps import draw

        out = Path(self.out)
        check_target(out, [self.checkpoint, self.clip], overwrite=self.overwrite)
        print(draw(self.checkpoint, Path(self.clip), self.start, self.frames, out))


COMMANDS: Mapping[str, type[Command]] = {"list": List, "run": Run, "table": Table, "maps": Maps}


def _folder() -> Path:
    return presets_folder() / "lab"


def _parser() -> ArgumentParser:
    parser = command_parser(
        "pose-lab", "Small experiments on attention, recurrence and training: docs/studies/laboratory.md."
    )
    commands = parser.add_subcommands(required=True, dest="command")
    for name, command in COMMANDS.items():
        add_subcommand(commands, name, command.purpose, command)
    return parser
