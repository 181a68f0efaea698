"""`--norms FILE`: the user's own norms beside the curves."""

import pytest
from command_errors import error_line
from pose_apps.analyse import main
from stick_figures import walk
from test_analyse_command import write

from pose.analysis import analyse
from pose.analysis.norms import read_norms
from pose.results import load_poses

HEAD = "angle,percent,mean,sd\n"


def test_own_norms_replace_those_of_children(tmp_path):
    result, norms = write(tmp_path / "poses.npz", {1: walk(seconds=8)[0]}), tmp_path / "adults.csv"
    norms.write_text(HEAD + "knee flexion,0,10,4\nknee flexion,50,60,6\nknee flexion,100,10,4\n")
    curves = analyse(load_poses(result), ["angles"], norms=read_norms(norms)).curves
    shown = {curve.angle: curve for curve in curves if curve.norm_mean}
    assert set(shown) == {"knee flexion"}
    assert shown["knee flexion"].norm_mean[25] == pytest.approx(35, abs=0.01)
    assert shown["knee flexion"].norm_sd[75] == pytest.approx(5, abs=0.01)
    assert main([str(result), "--norms", str(norms), "--only", "angles", "--out", str(tmp_path), "--quiet"]) == 0
    assert "grey: adults.csv" in (tmp_path / "analysis.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("angle,mean\nknee flexion,3\n", "needs the columns angle, percent, mean and sd"),
        (HEAD + "knee flexion,0,x,4\n", "needs the columns angle, percent, mean and sd, with numbers"),
        (HEAD + "tail flexion,0,1,4\ntail flexion,100,1,4\n", "unknown angle 'tail flexion'; known: hip flexion"),
        (HEAD + "knee flexion,0,1,4\nknee flexion,90,1,4\n", "percent must reach from 0 to 100"),
        (HEAD + "knee flexion,0,1,-4\nknee flexion,100,1,4\n", "with sd of 0 or more"),
        (HEAD, "contains no row"),
        (None, "No such file"),
    ],
)
def test_invalid_norms_are_named(tmp_path, capsys, text, message):
    result, norms = write(tmp_path / "poses.npz", {1: walk(seconds=2)[0]}), tmp_path / "own.csv"
    if text is not None:
        norms.write_text(text)
    assert main([str(result), "--norms", str(norms)]) == 2
    assert message in error_line(capsys)
