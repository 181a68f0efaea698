"""`pose-prepare`: turn data as its owners give it into the files that training and evaluation read."""

from collections.abc import Callable, Sequence
from pathlib import Path

from jsonargparse import ActionYesNo, ArgumentParser

from pose.errors import UsageError
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.status import Status


@run_command
def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of `pose-prepare`."""
    parsed = parse_arguments(_parser(), argv)
    options = parsed[parsed.command]
    source, out = Path(options.source), Path(options.out)
    if not source.exists():
        raise UsageError(f"--source: {source}: no such file or folder")
    run = {
        "human36m": _human36m,
        "human36m-m": _human36m_m,
        "mpi-inf-3dhp": _mpi_inf_3dhp,
        "mocap": lambda source, out, say: _mocap(source, out, options.calibrate, say),
        "ui-prmd": _ui_prmd,
        "markers": _markers,
        "sequence": lambda source, out, say: _sequence(source, out, options.person, say),
    }[parsed.command]
    with Status("preparing", hidden=options.quiet) as status:
        run(source, out, status.say if not options.quiet else lambda line: None)


Say = Callable[[str], None]


def _human36m(source: Path, out: Path, say: Say) -> None:
    from pose_datasets.human36m_release import prepare

    for path in prepare(source, out, say):
        say(f"wrote {path}")


def _human36m_m(source: Path, out: Path, say: Say) -> None:
    from pose_datasets.human36m_motionbert import prepare

    say(f"wrote {prepare(source, out)}")


def _mpi_inf_3dhp(source: Path, out: Path, say: Say) -> None:
    from pose_datasets.mpi_inf_3dhp import prepare

    for path in prepare(source, out):
        say(f"wrote {path}")


def _mocap(source: Path, out: Path, calibrate: bool, say: Say) -> None:
    from pose_datasets.mocap import prepare_mocap

    say(prepare_mocap(source, out, calibrate))


def _ui_prmd(source: Path, out: Path, say: Say) -> None:
    from pose_datasets.ui_prmd import prepare_ui_prmd

    say(prepare_ui_prmd(source, out, say))


def _markers(source: Path, out: Path, say: Say) -> None:
    from pose_datasets.marker_files import prepare_markers

    say(prepare_markers(source, out, say))


def _sequence(source: Path, out: Path, person: int | None, say: Say) -> None:
    from pose_apps.support.person import extract_person

    chosen, frames = extract_person(source, person, out)
    say(f"wrote {out}: person {chosen}, seen in {frames} frames")


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="pose-prepare",
        description="Prepare data for training and evaluation. docs/data.md says where each comes from.",
        exit_on_error=False,
    )
    commands = parser.add_subcommands(required=True, dest="command")

    def add(name: str, purpose: str, source: str, out: str) -> ArgumentParser:
        command = ArgumentParser(description=purpose, exit_on_error=False)
        command.add_argument("--source", type=str, required=True, help=source)
        command.add_argument("--out", type=str, required=True, help=out)
        command.add_argument("--quiet", action="store_true", help="print nothing but errors")
        commands.add_subcommand(name, command, help=purpose)
        return command

    folder = "the folder for the prepared files"
    release = "the folder of the release, with S1/MyPoseFeatures/D3_Positions/*.cdf and so on"
    add("human36m", "Human3.6M, protocol V: 3D and ground-truth 2D from the raw release.", release, folder)
    add("human36m-m", "Human3.6M, protocol M: MotionBERT's pickle, checked, as plain arrays.", "the .pkl", folder)
    test_set = "mpi_inf_3dhp_test_set, as a folder or as the .zip it comes in"
    add("mpi-inf-3dhp", "The annotations of the MPI-INF-3DHP test set, without its images.", test_set, folder)
    clips = "a folder with a sub-folder or .zip of ASF/AMC or BVH files for each subject"
    mocap = add("mocap", "Motion capture for training the lifter.", clips, "the file of prepared clips")
    straight = "give arms and legs the lengths at which people who stand are straight; else as recorded"
    mocap.add_argument("--calibrate", action=ActionYesNo(no_prefix="no-"), default=True, help=straight)
    exercises = "a folder or .zip with its files mXX_sYY_eZZ_positions.txt"
    add("ui-prmd", "UI-PRMD's exercises (optical markers) as clips.", exercises, "the file of prepared clips")
    recordings = "a .c3d or .trc file, or a folder with a sub-folder of them for each person"
    add("markers", "Optical markers (full-body Plug-in-Gait set) as clips.", recordings, "the file of prepared clips")
    person = add(
        "sequence", "One person's 2D out of a run of pose-run.", "its poses.npz", "the .npz that pose-lift takes"
    )
    person.add_argument("--person", type=int | None, help="the person's id; by default the one seen longest")
    return parser
