"""`pose-lab`: list and run experiments, print their tables, draw attention maps."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pose.config import presets_folder
from pose.errors import UsageError
from pose_apps.support.command import parse_arguments, run_command

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser, Namespace

LOG = "lab"


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `pose-lab`."""
    parsed = parse_arguments(_parser(), argv)
    commands = {"list": _list, "run": _run, "table": _table, "maps": _maps}
    commands[parsed.command](parsed[parsed.command])
    return 0


def _folder() -> Path:
    return presets_folder() / "lab"


def _parser() -> "ArgumentParser":
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(
        prog="pose-lab",
        description="Small experiments on attention, recurrence and training: docs/laboratory.md.",
        exit_on_error=False,
    )
    commands = parser.add_subcommands(required=True, dest="command")

    def add(name: str, purpose: str) -> "ArgumentParser":
        command = ArgumentParser(description=purpose, exit_on_error=False)
        commands.add_subcommand(name, command, help=purpose)
        return command

    command = add("list", "Show every experiment: its claim, and how much of it the log holds.")
    _add_log(command)

    command = add("run", "Run what is left of experiments; what is finished stays in the log.")
    command.add_argument("names", nargs="*", type=str, help="experiments, or YAML files of your own; default: all")
    command.add_argument("--seeds", type=int, default=3, help="trials of each condition")
    command.add_argument("--budget", type=float, metavar="SECONDS", help="of processor time, after which it stops")
    command.add_argument("--mocap", type=str, metavar="FILES", help="of `pose-prepare mocap`, separated by commas")
    command.add_argument("--threads", type=int, default=1, help="of the processor, for networks")
    command.add_argument("--quiet", action="store_true", help="print nothing but errors")
    _add_log(command)

    command = add("table", "Print the tables of what the log holds, as Markdown.")
    command.add_argument("names", nargs="*", type=str, help="experiments; default: all that were run")
    command.add_argument("--write", type=str, metavar="PAGE", help="fill in a page between its marks, with plots")
    _add_log(command)

    command = add("maps", "Draw what a lifter's heads look at, with their entropy and reach in seconds.")
    command.add_argument("checkpoint", type=str, help="offline, stream, or a checkpoint file")
    command.add_argument("clip", type=str, help="2D keypoints, an .npz file as pose-lift takes it")
    command.add_argument("--start", type=int, default=0, help="the first frame")
    command.add_argument("--frames", type=int, default=81, help="how many of the clip's frames")
    command.add_argument("--out", type=str, metavar="FILE", default="maps.png", help="the picture")
    command.add_argument("--overwrite", action="store_true", help="replace an existing file")
    return parser


def _add_log(command: "ArgumentParser") -> None:
    command.add_argument("--log", type=str, metavar="DIR", default=LOG, help="folder of what trials found")


def _list(options: "Namespace") -> None:
    from pose.laboratory.experiment import experiments
    from pose.laboratory.log import TrialLog

    for name, experiment in experiments(_folder()).items():
        records = TrialLog(Path(options.log), name).records()
        print(f"{name}: {experiment.claim}")
        print(f"    {len(experiment.conditions)} conditions; in {options.log}: {len(records)} trials")


def _run(options: "Namespace") -> None:
    from pose_apps.lab.run import run

    if options.seeds < 1 or options.threads < 1:
        raise UsageError("--seeds and --threads must be at least 1")
    if options.budget is not None and not options.budget > 0:
        raise UsageError(f"--budget must be above 0 seconds, got {options.budget:g}")
    run(options, _folder())


def _table(options: "Namespace") -> None:
    from pose.laboratory.experiment import experiments, find_experiment
    from pose.laboratory.table import fill, found, section

    log = Path(options.log)
    every = experiments(_folder())
    if options.write:
        if options.names:
            raise UsageError("--write fills in all that its page has marks for: name no experiments beside it")
        print(f"{options.write}: {', '.join(fill(Path(options.write), every, log))}")
        return
    chosen = [find_experiment(name, _folder()) for name in options.names]
    chosen = chosen or [experiment for experiment in every.values() if found(experiment, log)]
    if not chosen:
        raise UsageError(f"--log {log}: nothing was run there yet; pose-lab run does")
    print("\n\n".join(f"## {experiment.name}\n\n{section(experiment, log)}" for experiment in chosen))


def _maps(options: "Namespace") -> None:
    from pose_apps.lab.maps import draw

    out = Path(options.out)
    if out.exists() and not options.overwrite:
        raise UsageError(f"--out {out} exists already; add --overwrite to replace it")
    print(draw(options.checkpoint, Path(options.clip), options.start, options.frames, out))
