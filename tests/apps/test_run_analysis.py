"""`pose-run --analyse`: figures of movement beside the result."""

import csv

import pytest
from pose_apps.run import main


@pytest.fixture
def arguments(videos, at_hand, tiny_lifter, tmp_path):
    clip = [str(videos / "dance.mp4"), "--out", str(tmp_path), "--end", "0.8", "--lifter", str(tiny_lifter)]
    return [*clip, "--no-overlay", "--formats", "json", "--quiet"]


def test_analysis_tables_are_removed_by_a_run_without_them(arguments, tmp_path):
    assert main([*arguments, "--analyse", "--height", "1.75"]) == 0
    with (tmp_path / "analysis-omissions.csv").open() as file:
        reasons = {row["group"]: row["reason"] for row in csv.DictReader(file)}
    assert reasons["gait"] == "no walk of two strides or more"
    assert (tmp_path / "poses.npz").exists(), "the tables are made of it, whatever formats were asked for"
    assert main([*arguments, "--overwrite"]) == 0
    assert not list(tmp_path.glob("analysis*")), "figures of another run stay beside no result"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--no-world"], "--analyse: needs world coordinates; leave out --no-world"),
        (["--stills"], "--analyse: not available for single images, which show no movement"),
    ],
)
def test_analyse_is_rejected_without_world_or_time(arguments, words, message, capsys):
    assert main([*arguments, "--analyse", *words]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"
