"""`pose-prepare`: convert published data sets to the files that training and evaluation read.

To add a data set, write its reader in `pose_datasets`, add a class here, and list the class in `DATA_SETS`.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from jsonargparse import ArgumentParser

from pose.errors import UsageError
from pose.utils.options import REQUIRED, Options, option, overwrite_option, quiet_option
from pose.utils.written_files import WrittenFiles
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import add_subcommand, command_parser, config_of
from pose_apps.support.status import StatusLine

Log = Callable[[str], None]
_FOLDER = "the folder for the prepared files"
_CLIPS = "file of clips to write"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareCommand(Options):
    """Options of a `pose-prepare` subcommand, which converts one data set."""

    purpose: ClassVar[str]  # help text of the subcommand

    source: str = option(REQUIRED, "file or folder of the data set, as published")
    out: str = option(REQUIRED, "the file to write", metavar="FILE")
    overwrite: bool = overwrite_option("existing files")
    quiet: bool = quiet_option()

    @property
    def sources(self) -> list[Path]:
        """Paths of the input, which must exist."""
        return [Path(self.source)]

    @property
    def targets(self) -> list[Path]:
        """The files that `prepare` writes; by default `out`."""
        return [Path(self.out)]

    @abstractmethod
    def prepare(self, log: Log) -> None:
        """Convert the data set in `source`, which exists, to `out`, and `log` lines about the result."""


@run_command
def main(argv: Sequence[str] | None = None) -> None:
    """Run the command `pose-prepare`."""
    parsed = parse_arguments(_parser(), argv)
    data = config_of(DATA_SETS[parsed.command], parsed[parsed.command])
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
class Human36m(PrepareCommand):
    """The subcommand `pose-prepare human36m`, which converts the Human3.6M release for VideoPose3D's protocol."""

    purpose = "Human3.6M as in VideoPose3D (protocol V): 3D and ground-truth 2D from the raw release."

    source: str = option(REQUIRED, "folder of the release, which contains S1/MyPoseFeatures/D3_Positions/*.cdf etc.")
    out: str = option(REQUIRED, _FOLDER)

    @property
    def targets(self) -> list[Path]:
        """The files that `prepare` writes."""
        from pose_datasets.human36m import FILE_3D, FILES_2D

        return [Path(self.out) / FILE_3D, Path(self.out) / FILES_2D["gt"]]

    def prepare(self, log: Log) -> None:
        """Write the prepared files, and report them by calling `log`."""
        from pose_datasets.human36m_release import prepare

        for path in prepare(Path(self.source), Path(self.out), log):
            log(f"wrote {path}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Human36mM(PrepareCommand):
    """The subcommand `pose-prepare human36m-m`, which checks and converts MotionBERT's file of Human3.6M."""

    purpose = "Human3.6M as in MotionBERT (protocol M): its pickle, checked, as plain arrays."

    source: str = option(REQUIRED, "MotionBERT's file h36m_sh_conf_cam_source_final.pkl")
    out: str = option(REQUIRED, _FOLDER)

    @property
    def targets(self) -> list[Path]:
        """The file that `prepare` writes."""
        from pose_datasets.human36m_motionbert import PREPARED

        return [Path(self.out) / PREPARED]

    def prepare(self, log: Log) -> None:
        """Write the prepared files, and report them by calling `log`."""
        from pose_datasets.human36m_motionbert import prepare

        log(f"wrote {prepare(Path(self.source), Path(self.out))}")


@dataclass(frozen=True, slots=True, kw_only=True)
class MpiInf3dhp(PrepareCommand):
    """The subcommand `pose-prepare mpi-inf-3dhp`, which extracts the annotations of the test set."""

    purpose = "The annotations of the MPI-INF-3DHP test set, without its images."

    source: str = option(REQUIRED, "the folder mpi_inf_3dhp_test_set, or its .zip file")
    out: str = option(REQUIRED, _FOLDER)

    @property
    def targets(self) -> list[Path]:
        """The files that `prepare` writes."""
        from pose_datasets.mpi_inf_3dhp import prepared_paths

        return prepared_paths(Path(self.source), Path(self.out))

    def prepare(self, log: Log) -> None:
        """Write the prepared files, and report them by calling `log`."""
        from pose_datasets.mpi_inf_3dhp import prepare

        for path in prepare(Path(self.source), Path(self.out)):
            log(f"wrote {path}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mocap(PrepareCommand):
    """The subcommand `pose-prepare mocap`, which converts ASF/AMC or BVH motion capture to clips."""

    purpose = "Motion capture for training the lifter."

    source: str = option(REQUIRED, "a folder with a sub-folder or .zip of ASF/AMC or BVH files for each subject")
    out: str = option(REQUIRED, _CLIPS, metavar="FILE")
    calibrate: bool = option(
        True, "correct the recorded limb lengths so that the limbs of standing people are straight"
    )

    def prepare(self, log: Log) -> None:
        """Write the prepared clips, and report them by calling `log`."""
        from pose_datasets.mocap import prepare_mocap

        log(prepare_mocap(Path(self.source), Path(self.out), self.calibrate))


@dataclass(frozen=True, slots=True, kw_only=True)
class UiPrmd(PrepareCommand):
    """The subcommand `pose-prepare ui-prmd`, which converts the exercises of UI-PRMD to clips."""

    purpose = "Exercises of UI-PRMD, from optical markers."

    source: str = option(REQUIRED, "a folder or .zip with the files mXX_sYY_eZZ_positions.txt")
    out: str = option(REQUIRED, _CLIPS, metavar="FILE")

    def prepare(self, log: Log) -> None:
        """Write the prepared clips, and report them by calling `log`."""
        from pose_datasets.ui_prmd import prepare_ui_prmd

        log(prepare_ui_prmd(Path(self.source), Path(self.out), log))


@dataclass(frozen=True, slots=True, kw_only=True)
class Snu(PrepareCommand):
    """The subcommand `pose-prepare snu`, which converts sport and walks of Seoul National University to clips."""

    purpose = "Basketball, table tennis, boxing and walking of SNU, from BVH files."

    source: str = option(
        REQUIRED, "the folder with vsports.zip, woody.zip, woody-walks.zip and cmu-69.zip, or some of them"
    )
    out: str = option(REQUIRED, _CLIPS, metavar="FILE")
    calibrate: bool = option(True, "correct limb lengths so that limbs of standing people are straight")

    def prepare(self, log: Log) -> None:
        """Write the prepared clips, and report them by calling `log`."""
        from pose_datasets.snu import prepare_snu

        log(prepare_snu(Path(self.source), Path(self.out), self.calibrate))


@dataclass(frozen=True, slots=True, kw_only=True)
class Markers(PrepareCommand):
    """The subcommand `pose-prepare markers`, which converts recordings of optical markers to clips."""

    purpose = "Motion capture with optical markers of the full-body Plug-in-Gait set."

    source: str = option(REQUIRED, "a .c3d or .trc file, or a folder with one sub-folder per person")
    out: str = option(REQUIRED, _CLIPS, metavar="FILE")

    def prepare(self, log: Log) -> None:
        """Write the prepared clips, and report them by calling `log`."""
        from pose_datasets.marker_files import prepare_markers

        log(prepare_markers(Path(self.source), Path(self.out), log))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToForecast(PrepareCommand):
    """The subcommand `pose-prepare forecast`, which makes training data of forecasters from clips."""

    purpose = "Training data for forecasters: clips and the output of the streaming lifter."

    source: str = option(REQUIRED, "one or more files of prepared clips, separated by commas")
    out: str = option(REQUIRED, "the .npz file to write", metavar="FILE")
    sequences: int = option(3072, "number of training motions of 3.2 s", minimum=1)
    lifter: str = option("stream", "streaming lifter whose output the forecaster is trained on")
    seed: int = option(0, "random seed", minimum=0)

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
class OnePerson(PrepareCommand):
    """The subcommand `pose-prepare sequence`, which extracts the 2D keypoints of one person."""

    purpose = "2D keypoints of one person from a result of pose-run."

    source: str = option(REQUIRED, "the poses.npz of pose-run")
    out: str = option(REQUIRED, "the .npz file to write, for pose-lift", metavar="FILE")
    person: int | None = option(None, "id of the person; default: the person seen longest")

    def prepare(self, log: Log) -> None:
        """Write the keypoints, and report them by calling `log`."""
        from pose_apps.support.person import extract_person

        chosen, frames = extract_person(Path(self.source), self.person, Path(self.out))
        log(f"wrote {self.out}: person {chosen}, seen in {frames} frames")


DATA_SETS: dict[str, type[PrepareCommand]] = {
    "human36m": Human36m,
    "human36m-m": Human36mM,
    "mpi-inf-3dhp": MpiInf3dhp,
    "mocap": Mocap,
    "ui-prmd": UiPrmd,
    "snu": Snu,
    "markers": Markers,
    "forecast": ToForecast,
    "sequence": OnePerson,
}


def _parser() -> ArgumentParser:
    parser = command_parser("pose-prepare", "Prepare data for training and evaluation. Sources: docs/guides/data.md.")
    commands = parser.add_subcommands(required=True, dest="command")
    for name, data in DATA_SETS.items():
        add_subcommand(commands, name, data.purpose, data)
    return parser
