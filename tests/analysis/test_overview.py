"""One page over many analysed clips, and links between the pages of one result."""

import csv

import pytest
from pose_apps.analyse import main
from pose_apps.convert import main as convert
from stick_figures import squats, walk
from test_analyse_command import write

from pose.analysis.overview import read_clip, write_overview


@pytest.fixture
def clips(tmp_path):
    for name, people in (("day/a b", {1: squats(3)[0]}), ("c", {1: squats(4)[0], 4: walk(seconds=8)[0]})):
        (tmp_path / name).mkdir(parents=True)
        poses = write(tmp_path / name / "poses.npz", people)
        assert main([str(poses), "--quiet", "--only", "repetitions,gait"]) == 0
    return tmp_path


def test_all_clips_are_on_one_page_and_in_one_table(clips):
    listed = [read_clip(clips, name, problem) for name, problem in (("c", ""), ("day/a b", ""), ("bad", "no video"))]
    table, page = write_overview(listed, clips)
    with table.open(newline="") as file:
        rows = list(csv.DictReader(file))
    counts = {(row["clip"], row["person"]): float(row["value"]) for row in rows if row["name"] == "squat: count"}
    assert counts == {("c", "1"): 4, ("day/a b", "1"): 3}
    assert {row["clip"] for row in rows if row["name"] == "cadence"} == {"c"}
    text = page.read_text(encoding="utf-8")
    assert text.count('href="c/analysis.html"') == 2, "a row for each person"
    assert 'href="day/a%20b/analysis.html"' in text
    assert "<td>bad</td><td></td><td>no video</td>" in text
    assert "<summary>squat: count, repetitions (2)</summary>" in text


def test_the_pages_of_a_result_link_to_each_other(clips):
    folder = clips / "c"
    assert "poses.html" not in (folder / "analysis.html").read_text(encoding="utf-8")
    assert convert([str(folder / "poses.npz"), "--to", "html", "--out", str(folder), "--quiet"]) == 0
    assert '<a href="analysis.html">' in (folder / "poses.html").read_text(encoding="utf-8")
    assert main([str(folder), "--quiet", "--overwrite"]) == 0
    assert '<a href="poses.html">' in (folder / "analysis.html").read_text(encoding="utf-8")
