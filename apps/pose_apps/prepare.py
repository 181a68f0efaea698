"""`pose-prepare`: turn data as its owners give it into the files that training and evaluation read.

A new data set is its reader in `pose_datasets` and an entry in `DATA_SETS`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import ActionYesNo, ArgumentParser, Namespace

from pose.errors import UsageError
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.status import Status

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class DataSet:
    """A subcommand. source, out: help texts. run: reads `options.source`, writes `options.out`, and says so.

    add: options of its own.
    """

    purpose: str
    source: str
    out: str
    run: Callable[[Namespace, Say], None]
    add: Callable[[ArgumentParser], None] = lambda command: None


@run_command
def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of `pose-prepare`."""
    parsed = parse_arguments(_parser(), argv)
    options = parsed[parsed.command]
    options.source, options.out = Path(options.source), Path(options.out)
    if not options.source.exists():
        raise UsageError(f"--source: {options.source}: no such file or folder")
    with Status("preparing", hidden=options.quiet) as status:
        DATA_SETS[parsed.command].run(options, status.say if not options.quiet else lambda line: None)


def _human36m(options: Namespace, say: Say) -> None:
    from pose_datasets.human36m_release import prepare

    for path in prepare(options.source, options.out, say):
        say(f"wrote {path}")


def _human36m_m(options: Namespace, say: Say) -> None:
    from pose_datasets.human36m_motionbert import prepare

    say(f"wrote {prepare(options.source, options.out)}")


def _mpi_inf_3dhp(options: Namespace, say: Say) -> None:
    from pose_datasets.mpi_inf_3dhp import prepare

    for path in prepare(options.source, options.out):
        say(f"wrote {path}")


def _add_mocap(command: ArgumentParser) -> None:
    straight = "give arms and legs the lengths at which people who stand are straight; else as recorded"
    command.add_argument("--calibrate", action=ActionYesNo(no_prefix="no-"), default=True, help=straight)


def _mocap(options: Namespace, say: Say) -> None:
    from pose_datasets.mocap import prepare_mocap

    say(prepare_mocap(options.source, options.out, options.calibrate))


def _ui_prmd(options: Namespace, say: Say) -> None:
    from pose_datasets.ui_prmd import prepare_ui_prmd

    say(prepare_ui_prmd(options.source, options.out, say))


def _markers(options: Namespace, say: Say) -> None:
    from pose_datasets.marker_files import prepare_markers

    say(prepare_markers(options.source, options.out, say))


def _add_sequence(command: ArgumentParser) -> None:
    command.add_argument("--person", type=int | None, help="the person's id; by default the one seen longest")


def _sequence(options: Namespace, say: Say) -> None:
    from pose_apps.support.person import extract_person

    chosen, frames = extract_person(options.source, options.person, options.out)
    say(f"wrote {options.out}: person {chosen}, seen in {frames} frames")


_FOLDER = "the folder for the prepared files"
_CLIPS = "the file of prepared clips"
DATA_SETS = {
    "human36m": DataSet(
        "Human3.6M, protocol V: 3D and ground-truth 2D from the raw release.",
        "the folder of the release, with S1/MyPoseFeatures/D3_Positions/*.cdf and so on",
        _FOLDER,
        _human36m,
    ),
    "human36m-m": DataSet(
        "Human3.6M, protocol M: MotionBERT's pickle, checked, as plain arrays.", "the .pkl", _FOLDER, _human36m_m
    ),
    "mpi-inf-3dhp": DataSet(
        "The annotations of the MPI-INF-3DHP test set, without its images.",
        "mpi_inf_3dhp_test_set, as a folder or as the .zip it comes in",
        _FOLDER,
        _mpi_inf_3dhp,
    ),
    "mocap": DataSet(
        "Motion capture for training the lifter.",
        "a folder with a sub-folder or .zip of ASF/AMC or BVH files for each subject",
        _CLIPS,
        _mocap,
        _add_mocap,
    ),
    "ui-prmd": DataSet(
        "UI-PRMD's exercises (optical markers) as clips.",
        "a folder or .zip with its files mXX_sYY_eZZ_positions.txt",
        _CLIPS,
        _ui_prmd,
    ),
    "markers": DataSet(
        "Optical markers (full-body Plug-in-Gait set) as clips.",
        "a .c3d or .trc file, or a folder with a sub-folder of them for each person",
        _CLIPS,
        _markers,
    ),
    "sequence": DataSet(
        "One person's 2D out of a run of pose-run.",
        "its poses.npz",
        "the .npz that pose-lift takes",
        _sequence,
        _add_sequence,
    ),
}


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="pose-prepare",
        description="Prepare data for training and evaluation. docs/data.md says where each comes from.",
        exit_on_error=False,
    )
    commands = parser.add_subcommands(required=True, dest="command")
    for name, data in DATA_SETS.items():
        command = ArgumentParser(description=data.purpose, exit_on_error=False)
        command.add_argument("--source", type=str, required=True, help=data.source)
        command.add_argument("--out", type=str, required=True, help=data.out)
        data.add(command)
        command.add_argument("--quiet", action="store_true", help="print nothing but errors")
        commands.add_subcommand(name, command, help=data.purpose)
    return parser
