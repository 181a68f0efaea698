"""`pose-analyse a --compare b`: two people or two trials side by side."""

import csv

import pytest
from command_errors import error_line
from pose_apps.analyse import main
from stick_figures import squats, walk
from test_analyse_command import write


@pytest.fixture
def trials(tmp_path):
    for name in ("before", "after"):
        (tmp_path / name).mkdir()
    before = write(tmp_path / "before" / "poses.npz", {1: squats(3, depth=0.3)[0], 4: walk(seconds=8, step_s=0.6)[0]})
    after = write(tmp_path / "after" / "poses.npz", {2: squats(3, depth=0.45)[0], 7: walk(seconds=8, step_s=0.5)[0]})
    return before, after


def rows(folder):
    with (folder / "comparison.csv").open() as file:
        return {row["name"]: {key: row[key] for key in row if key != "name"} for row in csv.DictReader(file)}


def test_two_trials_are_compared_with_intervals(trials, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([str(trials[0]), "--compare", str(trials[1].parent), "--people", "1,2", "--out", str(out)]) == 0
    depth = {key: float(depth) for key, depth in rows(out)["squat: depth"].items() if key not in ("unit", "quality")}
    assert depth["difference"] == pytest.approx(0.15, abs=0.03)
    assert depth["low"] < depth["difference"] < depth["high"]
    (knee,) = (
        row for name, row in rows(out).items() if name.startswith("squat: knee flexion, left: largest difference")
    )
    assert float(knee["second"]) - float(knee["first"]) == pytest.approx(float(knee["difference"]), abs=0.01)
    assert float(knee["low"]) < 10 < float(knee["difference"]) < float(knee["high"]), "deeper squats bend more"
    page = (out / "comparison.html").read_text(encoding="utf-8")
    assert page.count("<svg") > 5
    assert page.count("data:image/jpeg") % 2 == 0 < page.count("data:image/jpeg")
    assert capsys.readouterr().out == f"comparison: {out / 'comparison.csv'}, {out / 'comparison.html'}\n"
    assert not (out / "analysis.html").exists()


def test_two_people_of_one_result_are_compared(trials, tmp_path, capsys):
    walkers = [str(trials[0]), "--compare", str(trials[1]), "--people", "4,7", "--only", "gait", "--out", str(tmp_path)]
    assert main([*walkers, "--quiet"]) == 0
    cadence = rows(tmp_path)["cadence"]
    assert (float(cadence["first"]), float(cadence["second"])) == (pytest.approx(100, 0.02), pytest.approx(120, 0.02))
    assert float(cadence["low"]) > 0, "the difference is certain"
    assert main(walkers) == 2
    assert "exists; give --overwrite" in error_line(capsys)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--people", "1,9"], "has no measures of person 9; measured: 2, 7"),
        (["--people", "1"], "must be two ids"),
        (["--people", "1,7", "--only", "jumps,sit-to-stand"], "has no measures of person 1"),
        (["--people", "1,7", "--only", "repetitions,gait"], "no measure in common"),
    ],
)
def test_comparisons_without_a_common_measure_are_errors(trials, tmp_path, capsys, words, message):
    assert main([str(trials[0]), "--compare", str(trials[1]), "--out", str(tmp_path / "out"), *words]) == 2
    assert message in capsys.readouterr().err
