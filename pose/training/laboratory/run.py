"""Execution of the trials of an experiment that have not run yet.

All conditions run with the first seed, then all with the second, and so on.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pose.training.laboratory.experiment import Experiment
from pose.training.laboratory.kinds import kind_of, settings_of
from pose.training.laboratory.log import Record, TrialLog, versions
from pose.training.laboratory.trial import Clock, MotionData, OutOfTime, Setup


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of an experiment. A trial is the run of one condition with one seed."""

    done: int  # number of finished trials
    total: int  # number of all trials


def trials(experiment: Experiment, seeds: int) -> Iterator[tuple[str, int]]:
    """Yield (condition, seed) for each trial of an experiment, in the order in which the trials run."""
    for seed in range(seeds if kind_of(experiment).seeded else 1):
        for condition in experiment.conditions:
            yield condition, seed


def current_records(experiment: Experiment, records: list[Record]) -> list[Record]:
    """Select the newest record of each trial, without records whose settings differ from those of their condition."""
    newest = {
        (record.condition, record.seed): record
        for record in records
        if experiment.conditions.get(record.condition) == record.settings
    }
    return list(newest.values())


def run_experiment(
    experiment: Experiment,
    folder: Path,
    *,
    seeds: int,
    clock: Clock,
    motion: Callable[[], MotionData],
    on_record: Callable[[Record, Progress], None] = lambda record, progress: None,
) -> Progress:
    """Run the trials (condition and seed) without a current record in `folder`, until the clock's budget is spent.

    Every condition is validated before the first trial. A trial that exceeds the budget continues at the next call if
    its kind saves a state; otherwise it restarts. `motion` returns the motion data, if a trial needs them; `on_record`
    is called after each trial with its record and the progress, which is returned at the end.
    """
    kind, log = kind_of(experiment), TrialLog(folder, experiment.name)
    settings = {condition: settings_of(experiment, condition) for condition in experiment.conditions}
    wanted = list(trials(experiment, seeds))
    done = {(record.condition, record.seed) for record in current_records(experiment, log.records())}
    for number, (condition, seed) in enumerate(trial for trial in wanted if trial not in done):
        state = folder / "unfinished" / f"{experiment.name}-{list(settings).index(condition)}-{seed}.pt"
        before = clock.spent
        try:
            clock.check()
            outcome = kind.run(settings[condition], Setup(seed, clock, motion, state))
        except OutOfTime:
            return Progress(len(done & set(wanted)) + number, len(wanted))
        record = Record(
            experiment=experiment.name,
            condition=condition,
            seed=seed,
            settings=experiment.conditions[condition],
            steps=outcome.steps,
            examples=outcome.examples,
            cpu_seconds=round(outcome.cpu_seconds + clock.spent - before, 3),
            results={name: value if math.isfinite(value) else None for name, value in outcome.results.items()},
            half_widths={name: value for name, value in outcome.half_widths.items() if math.isfinite(value)},
            made_with=versions(),
        )
        log.append(record)
        state.unlink(missing_ok=True)
        on_record(record, Progress(len(done & set(wanted)) + number + 1, len(wanted)))
    return Progress(len(wanted), len(wanted))
