"""`pose-lab run`: run the unfinished trials of experiments within a budget of processor time."""

import functools
from collections.abc import Callable
from pathlib import Path

import torch

from pose.errors import UsageError
from pose.training.laboratory.experiment import Experiment, experiments, find_experiment
from pose.training.laboratory.kinds import settings_of
from pose.training.laboratory.log import Record
from pose.training.laboratory.run import Progress, run_experiment
from pose.training.laboratory.trial import Clock, MotionData
from pose_apps.lab.options import RunOptions


def run(options: RunOptions, folder: Path) -> None:
    """Run the trials (training runs) of experiments that are not finished, and add their results to the log."""
    torch.set_num_threads(options.threads)
    chosen = [find_experiment(name, folder) for name in options.names] or list(experiments(folder).values())
    for experiment in chosen:
        for condition in experiment.conditions:
            settings_of(experiment, condition)
    log: Callable[[str], None] = (lambda text: None) if options.quiet else functools.partial(print, flush=True)
    clock = Clock(float("inf") if options.budget is None else options.budget)
    motion = _motion(options.mocap)
    for experiment in chosen:
        progress = run_experiment(
            experiment,
            Path(options.log),
            seeds=options.seeds,
            clock=clock,
            motion=motion,
            on_record=functools.partial(_report, log, experiment),
        )
        if progress.done < progress.total:
            log(f"{experiment.name}: {progress.done} of {progress.total} trials, budget used up; run again to continue")
            return
        log(f"{experiment.name}: all {progress.total} trials are in {options.log}")


def _motion(files: str | None) -> Callable[[], MotionData]:
    """Return a function that reads the motion capture data when it is first called."""

    @functools.cache
    def motion() -> MotionData:
        if files is None:
            raise UsageError("--mocap is missing: this experiment needs the file that `pose-prepare mocap` wrote")
        from pose_apps.lab.motion import MocapMotion

        return MocapMotion(files)

    return motion


def _report(log: Callable[[str], None], experiment: Experiment, record: Record, progress: Progress) -> None:
    results = ", ".join(
        f"{name} {'diverged' if value is None else f'{value:.4g}'}" for name, value in list(record.results.items())[:4]
    )
    log(
        f"{experiment.name} {progress.done}/{progress.total}: {record.condition}, seed {record.seed}: {results} "
        f"({record.cpu_seconds:.0f} s)"
    )
