"""Tables say what the log holds: means with their intervals, what diverged, what was printed, what is missing."""

from dataclasses import replace
from pathlib import Path

import pytest
from command_errors import error_line
from pose_apps.lab.command import main

from pose.errors import UsageError
from pose.training.laboratory.experiment import Experiment, Plot, Published, experiments
from pose.training.laboratory.kinds import kind_of, settings_of
from pose.training.laboratory.log import Record, TrialLog, digest
from pose.training.laboratory.table import (
    format_cell,
    format_number,
    format_section,
    records_by_condition,
    update_page,
)
from pose.utils.presets import presets_folder

ROOT = Path(__file__).resolve().parents[3]
EXPERIMENTS = experiments(presets_folder() / "lab")
EXPERIMENT = Experiment(
    name="widths",
    kind="score-widths",
    claim="Wide heads need a scale.",
    finding="They do.",
    conditions={"dot": {"score": "dot", "width": 16}, "scaled": {"score": "scaled-dot", "width": 16}},
    published={"dot": {"spread": Published(90.0, 300)}},
    plot=Plot(x="width", y="spread", by="score"),
)


def record(condition, seed, spread):
    results = {"spread": spread, "largest": 1.0, "effective": 2.0, "passed": 3.0}
    return Record(
        experiment="widths", condition=condition, seed=seed, settings=EXPERIMENT.conditions[condition],
        steps=100, examples=5, cpu_seconds=2.0, results=results,
    )  # fmt: skip


@pytest.fixture
def log(tmp_path):
    trials = TrialLog(tmp_path, "widths")
    for seed, spread in enumerate([1.0, 2.0, 3.0]):
        trials.append(record("dot", seed, spread))
    return tmp_path


def test_a_section_has_claim_table_cost_and_finding(log):
    text = format_section(EXPERIMENT, log)
    assert text.startswith("Wide heads need a scale.\n\n| | spread of the scores | published |")
    assert "| dot | 2.0 ± 2.5 | 90 (86.1 to 92.9) | 1.00" in text
    assert "3 trials, 3 seeds each, 100 steps, 6 processor seconds" in text
    assert "Not run: scaled." in text
    assert text.endswith("**Found:** They do.")


def test_conditions_are_compared_in_pairs_by_seed(log):
    trials = TrialLog(log, "widths")
    for seed, spread in enumerate([2.0, 3.5, 4.0]):  # the same seeds as "dot": 1, 2 and 3
        trials.append(record("scaled", seed, spread))
    text = format_section(EXPERIMENT, log)
    assert "| difference to dot, paired over seeds |" in text
    assert "1.17 ± 0.72 |" in text  # the means alone differ by 1.2 with intervals of 2.5


def test_finding_is_not_printed_under_another_log(log):
    known = TrialLog(log, "widths").records()
    ours = replace(EXPERIMENT, found_in=digest(known))
    assert format_section(ours, log).endswith("**Found:** They do.")
    TrialLog(log, "widths").append(record("scaled", 0, 2.0))
    assert "They do" not in format_section(ours, log)
    assert "about other trials" in format_section(ours, log)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_published_findings_are_about_the_published_logs(name):
    experiment = EXPERIMENTS[name]
    records = records_by_condition(experiment, ROOT / "docs" / "studies" / "laboratory")
    assert not experiment.finding or experiment.found_in == digest(
        [record for some in records.values() for record in some]
    )


def test_a_single_trial_has_the_interval_over_its_sequences():
    one = replace(record("dot", 0, 2.0), half_widths={"spread": 0.25})
    assert format_cell([one], "spread") == "2.00 ± 0.25"


def test_diverged_trials_are_counted_and_not_averaged():
    assert format_cell([record("dot", 0, 1.0), record("dot", 1, None)], "spread") == "1.00, 1 of 2 diverged"
    assert format_cell([record("dot", 0, None)], "spread") == "1 of 1 diverged"


def test_numbers_have_three_digits():
    assert [format_number(x) for x in (0, 0.01234, 1.234, 12.34, 1234.5, 123456, 1234567)] == [
        "0", "0.0123", "1.23", "12.3", "1,234", "123,456", "1.23e+06",
    ]  # fmt: skip


def test_page_is_updated_only_between_markers(log, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- pose-lab: widths -->\nold\n<!-- pose-lab end -->\nafter\n")
    assert update_page(page, {"widths": EXPERIMENT}, log) == ["widths"]
    text = page.read_text()
    assert text.startswith("before\n<!-- pose-lab: widths -->\nWide heads")
    assert text.endswith("![widths](images/lab-widths.svg)\n<!-- pose-lab end -->\nafter\n")
    assert "old" not in text
    update_page(page, {"widths": EXPERIMENT}, log)
    assert page.read_text() == text
    page.write_text(f"all of it:\n<!-- pose-lab total -->\n<!-- pose-lab end -->\n{text}")
    update_page(page, {"widths": EXPERIMENT}, log)
    told = "<!-- pose-lab total -->\n1 experiments, 3 trials, 0 processor minutes.\n<!-- pose-lab end -->"
    assert page.read_text() == f"all of it:\n{told}\n{text}"
    with pytest.raises(UsageError, match="no experiment widths"):
        update_page(page, {}, log)
    page.write_text("no marks")
    with pytest.raises(UsageError, match="contains no"):
        update_page(page, {"widths": EXPERIMENT}, log)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_shipped_experiments_are_valid(name):
    experiment = EXPERIMENTS[name]
    for condition in experiment.conditions:
        settings_of(experiment, condition)
    columns = kind_of(experiment).columns
    assert {key for entries in experiment.published.values() for key in entries} <= set(columns)
    if experiment.plot:
        assert experiment.plot.y in columns
        assert all(experiment.plot.x in settings for settings in experiment.conditions.values())


@pytest.mark.parametrize("name", ["laboratory", "laboratory-training"])
def test_documentation_page_equals_the_log(tmp_path, name):
    """If this fails: pose-lab table --log docs/studies/laboratory --write docs/studies/NAME.md"""
    page = ROOT / "docs" / "studies" / f"{name}.md"
    copy = tmp_path / "laboratory.md"
    copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    update_page(copy, EXPERIMENTS, ROOT / "docs" / "studies" / "laboratory")
    assert copy.read_text(encoding="utf-8") == page.read_text(encoding="utf-8")


def test_the_command_lists_runs_and_prints(tmp_path, capsys):
    log = str(tmp_path / "log")
    assert main(["run", "score-widths", "--seeds", "1", "--log", log]) == 0
    assert "all 12 trials" in capsys.readouterr().out
    assert main(["run", "score-widths", "--seeds", "1", "--log", log, "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert main(["table", "--log", log]) == 0
    assert "| dot, 16 | " in capsys.readouterr().out
    assert main(["list", "--log", log]) == 0
    assert "12 conditions; in " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "complaint"),
    [
        (["run", "nothing"], 2, "no experiment 'nothing'; known: "),
        (["run", "score-widths", "--seeds", "0"], 2, "seeds: 0 is out of range; allowed: at least 1"),
        (["run", "score-widths", "--budget", "-1"], 2, "--budget must be above 0"),
        (["run", "branch-gradients"], 2, "--mocap is missing"),
        (["run", "branch-gradients", "--mocap", "nowhere.npz"], 1, "nowhere.npz"),
        (["table", "--log", "nowhere"], 2, "contains no results"),
        (["table", "--write", "nowhere.md"], 1, "nowhere.md"),
        (["table", "score-widths", "--write", "nowhere.md"], 2, "omit the experiments"),
        (["maps", "offline", "nowhere.npz"], 2, "nowhere.npz"),
        (["maps", "nowhere", "nowhere.npz"], 2, "nowhere"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(words, status, complaint, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(words) == status
    assert complaint in error_line(capsys)
