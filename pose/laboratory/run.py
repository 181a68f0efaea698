"""Run what is left of an experiment: every condition with the first seed, then with the next."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pose.laboratory.experiment import Experiment
from pose.laboratory.kinds import kind_of, settings_of
from pose.laboratory.log import Record, TrialLog
from pose.laboratory.trial import Clock, Motion, OutOfTime, Setup


@dataclass(frozen=True, slots=True)
class Progress:
    """Trials that are finished, of how many."""

    done: int
    all: int


def trials(experiment: Experiment, seeds: int) -> Iterator[tuple[str, int]]:
    """(condition, seed) in the order in which they are run."""
    for seed in range(seeds if kind_of(experiment).seeded else 1):
        for condition in experiment.conditions:
            yield condition, seed


def current(experiment: Experiment, records: list[Record]) -> list[Record]:
    """The records of the conditions as they are set now, the newest of each trial."""
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
    motion: Callable[[], Motion],
    tell: Callable[[Record, Progress], None] = lambda record, progress: None,
) -> Progress:
    """Run the trials that `folder` has no record of, until the clock's budget is spent; returns how far it came.

    Every condition is checked before the first is run. A trial that the budget ends goes on at the next call if its
    kind keeps a state, from its beginning otherwise.
    """
    kind, log = kind_of(experiment), TrialLog(folder, experiment.name)
    settings = {condition: settings_of(experiment, condition) for condition in experiment.conditions}
    wanted = list(trials(experiment, seeds))
    done = {(record.condition, record.seed) for record in current(experiment, log.records())}
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
        )
        log.append(record)
        state.unlink(missing_ok=True)
        tell(record, Progress(len(done & set(wanted)) + number + 1, len(wanted)))
    return Progress(len(wanted), len(wanted))
