"""`pose-prepare`: convert published data sets to the files that training and evaluation read.

The data sets are those of `pose_datasets.catalogue`.
"""

import os
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import ArgumentParser
from pose_datasets.catalogue import Log, Preparation, preparations

from pose.config import PipelineConfig
from pose.errors import UsageError
from pose.lifting.names import STREAM
from pose.utils.options import REQUIRED, option, same_option
from pose.utils.written_files import WrittenFiles
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import add_subcommand, command_parser, config_of, named_subcommands
from pose_apps.support.status import StatusLine


@run_command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command `pose-prepare`."""
    chosen = named_subcommands(preparations(), argv)
    parsed = parse_arguments(_parser(chosen), argv)
    name = parsed.command
    options = OTHERS[name][1] if name in OTHERS else preparations()[name].options()
    data: Preparation = config_of(options, parsed[name])
    for source in data.sources:
        if not source.exists():
            raise UsageError(f"--source: {source}: no such file or folder")
    with StatusLine("preparing", hidden=data.quiet) as status:
        if not data.overwrite:
            _check_free(data.targets)
        data.prepare(status.print if not data.quiet else lambda line: None)


def _check_free(targets: list[Path]) -> None:
    """Check that no finished preparation and no file of the user would be replaced."""
    # If some targets are missing and this program wrote the others, an earlier call was interrupted. It is then
    # repeated.
    existing = [path for path in targets if os.path.lexists(path)]
    interrupted = len(existing) < len(targets)
    for path in existing:
        if not (interrupted and WrittenFiles(path.parent).owns(path)):
            raise UsageError(f"{path} exists; give --overwrite to replace it, or another place with --out")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastPreparation(Preparation):
    """Options of `pose-prepare forecast`, which makes training data of forecasters from clips."""

    source: str = option(REQUIRED, "one or more files of prepared clips, separated by commas")
    out: str = option(REQUIRED, "the .npz file to write", metavar="FILE")
    sequences: int = option(3072, "number of training motions of 3.2 s", minimum=1)
    lifter: str = option(STREAM, "streaming lifter whose output the forecaster is trained on")
    seed: int = same_option(PipelineConfig, "seed")

    @property
    def sources(self) -> list[Path]:
        """Paths of the clip files to read."""
        return [Path(name) for name in self.source.split(",")]

    def prepare(self, log: Log) -> None:
        """Write the prepared motions, and report them by calling `log`."""
        from pose_datasets.forecasting import prepare_motions
        from pose_datasets.mocap import load_clips

        from pose_apps.support.lifted_batches import batch_lifter

        clips = [clip for path in self.sources for clip in load_clips(path)]
        log(prepare_motions(clips, Path(self.out), batch_lifter(self.lifter), self.sequences, self.seed))


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonPreparation(Preparation):
    """Options of `pose-prepare sequence`, which extracts the 2D keypoints of one person."""

    source: str = option(REQUIRED, "the poses.npz of pose-run")
    out: str = option(REQUIRED, "the .npz file to write, for pose-lift", metavar="FILE")
    person: int | None = option(None, "id of the person; default: the person seen longest")

    def prepare(self, log: Log) -> None:
        """Write the keypoints, and report them by calling `log`."""
        from pose_apps.support.person import extract_person

        chosen, frames = extract_person(Path(self.source), self.person, Path(self.out))
        log(f"wrote {self.out}: person {chosen}, seen in {frames} frames")


# Subcommands that prepare results of this project instead of a data set.
OTHERS = {
    "forecast": ("Training data for forecasters: clips and the output of the streaming lifter.", ForecastPreparation),
    "sequence": ("2D keypoints of one person from a result of pose-run.", PersonPreparation),
}


def _parser(chosen: Container[str]) -> ArgumentParser:
    parser = command_parser("pose-prepare", "Prepare data for training and evaluation. Sources: docs/guides/data.md.")
    commands = parser.add_subcommands(required=True, dest="command")
    for name, data in preparations().items():
        add_subcommand(commands, name, data.purpose, *((data.options(),) if name in chosen else ()))
    for name, (purpose, options) in OTHERS.items():
        add_subcommand(commands, name, purpose, options)
    return parser
