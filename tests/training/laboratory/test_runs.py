"""Trials run in order, within a budget, and go on where they stopped; their log survives an interruption."""

import json
import math
from dataclasses import replace

import pytest

from pose.errors import PoseError
from pose.training.laboratory.experiment import Experiment, find_experiment, load_experiment
from pose.training.laboratory.kinds import settings_of
from pose.training.laboratory.log import Record, TrialLog
from pose.training.laboratory.run import run_experiment
from pose.training.laboratory.statistics import mean_and_half_width, wilson_interval
from pose.training.laboratory.trial import Clock

EXPERIMENT = Experiment(
    name="widths",
    kind="score-widths",
    claim="Wide heads need a scale.",
    conditions={
        "dot": {"score": "dot", "width": 64, "queries": 64},
        "scaled": {"score": "scaled-dot", "width": 64, "queries": 64},
    },
)


class Ticking:
    """Processor time that passes by one second whenever it is looked at."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1.0
        return self.seconds


def no_motion():
    raise AssertionError("no motion is needed here")


def run(folder, *, seeds=2, experiment=EXPERIMENT, **budget):
    told = []
    progress = run_experiment(
        experiment,
        folder,
        seeds=seeds,
        clock=Clock(now=Ticking(), **budget),
        motion=no_motion,
        on_record=lambda record, progress: told.append((record.condition, record.seed)),
    )
    return progress, told


def test_every_condition_runs_with_one_seed_before_the_next(tmp_path):
    progress, told = run(tmp_path)
    assert (progress.done, progress.total) == (4, 4)
    assert told == [("dot", 0), ("scaled", 0), ("dot", 1), ("scaled", 1)]
    assert run(tmp_path)[1] == []


def test_spent_budget_stops_and_the_next_call_resumes(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    run(whole)
    progress, first = run(parts, budget=6.0)
    assert 0 < progress.done < 4
    _, rest = run(parts)
    assert len(first) + len(rest) == 4
    results = [[record.results for record in TrialLog(folder, "widths").records()] for folder in (whole, parts)]
    assert results[0] == results[1]


def test_only_changed_settings_are_run_again(tmp_path):
    run(tmp_path)
    changed = replace(EXPERIMENT, conditions={**EXPERIMENT.conditions, "dot": {"score": "dot", "width": 16}})
    assert run(tmp_path, experiment=changed)[1] == [("dot", 0), ("dot", 1)]


def test_more_seeds_extend_the_log(tmp_path):
    run(tmp_path, seeds=1)
    assert run(tmp_path, seeds=2)[1] == [("dot", 1), ("scaled", 1)]


def test_every_row_has_the_versions_it_was_made_with(tmp_path):
    run(tmp_path, seeds=1)
    for record in TrialLog(tmp_path, EXPERIMENT.name).records():
        assert {"pose-run", "torch", "numpy", "python"} <= record.made_with.keys()


RECORD = Record(
    experiment="a", condition="b", seed=0, settings={"x": 1}, steps=2, examples=3, cpu_seconds=0.5, results={"y": None}
)


def test_truncated_log_line_is_ignored(tmp_path):
    log = TrialLog(tmp_path, "a")
    log.append(RECORD)
    with log.path.open("a") as file:
        file.write(json.dumps({"experiment": "a"})[:9])
    assert log.records() == [RECORD]
    log.append(replace(RECORD, seed=1))
    assert [record.seed for record in log.records()] == [0, 1]


@pytest.mark.parametrize("line", ["{}", "[]", "nonsense", '{"experiment": "a", "results": 3}'])
def test_foreign_log_line_is_reported(tmp_path, line):
    (tmp_path / "a.jsonl").write_text(f"{line}\n")
    with pytest.raises(PoseError, match=r"a\.jsonl, line 1: not a record"):
        TrialLog(tmp_path, "a").records()


def test_intervals_equal_student_and_wilson():
    mean, half = mean_and_half_width([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert half == pytest.approx(4.303 / math.sqrt(3))
    assert math.isnan(mean_and_half_width([1.0])[1])
    assert wilson_interval(0.0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    low, high = wilson_interval(0.9, 300)
    assert (low, high) == pytest.approx((0.8608, 0.9290), abs=1e-4)
    assert wilson_interval(0.5, 10_000) == pytest.approx((0.4902, 0.5098), abs=1e-4)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("kind: score-widths\nclaim: a\nconditions: {}\n", "conditions: empty"),
        ("kind: score-widths\nclaim: a\ncolour: red\nconditions: {a: {}}\n", "unknown key colour"),
        ("kind: score-widths\nconditions: {a: {}}\n", "claim is missing"),
        ("- 1\n", "expected a mapping"),
        ("kind: [\n", "not a readable YAML"),
        ("kind: x\nclaim: a\nconditions: {a: 3}\n", "a: expected a mapping"),
        ("kind: x\nclaim: a\nconditions: {a: {}}\npublished: {b: {c: {value: 1}}}\n", "'b' is not a condition"),
        ("kind: x\nclaim: a\nconditions: {a: {}}\nplot: {x: a}\n", "missing"),
    ],
)
def test_invalid_experiment_file_gives_a_one_line_error(tmp_path, text, complaint):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(PoseError, match=complaint):
        load_experiment(path)


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"score": "magic", "width": 4}, "'magic' is not one of"),
        ({"score": "dot", "width": 4, "colour": 3}, "unknown setting colour"),
        ({"score": "dot", "width": 4, "keys": "many"}, "keys: expected int"),
        ({"score": "dot", "width": 4, "keys": True}, "keys: expected int"),
        ({"score": "dot"}, "width"),
        ({"score": "dot", "width": 5}, "must be even"),
    ],
)
def test_invalid_settings_name_experiment_and_condition(settings, complaint):
    experiment = replace(EXPERIMENT, conditions={"mine": settings})
    with pytest.raises(PoseError, match=f"experiment widths, condition mine: .*{complaint}"):
        settings_of(experiment, "mine")


def test_unknown_kind_and_name_list_the_known_ones(tmp_path):
    with pytest.raises(PoseError, match="'magic' is not one of score-widths"):
        settings_of(replace(EXPERIMENT, kind="magic"), "dot")
    with pytest.raises(PoseError, match="no experiment 'nothing'"):
        find_experiment("nothing", tmp_path)
