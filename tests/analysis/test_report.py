"""The report of one result, a page over many, and two results side by side."""

import csv
import re
from xml.etree import ElementTree

import pytest
from command_errors import error_line
from pose_apps.analyse import main
from pose_apps.convert import main as convert
from stick_figures import jump, squats, walk
from test_analyse_command import write

from pose.analysis import GROUPS, analyse
from pose.analysis.charts import cycle_chart, series_chart
from pose.analysis.metrics import Curve, Series
from pose.analysis.moments import key_events, moments
from pose.analysis.overview import read_clip, write_overview
from pose.analysis.report import moment_label, write_report
from pose.analysis.report_tables import jump_table
from pose.results import load_poses


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    people = {1: walk(seconds=8)[0], 2: squats(2)[0], 3: jump(rate=30)[0]}
    return load_poses(write(tmp_path_factory.mktemp("report") / "poses.npz", people))


@pytest.fixture(scope="module")
def page(table, tmp_path_factory):
    target = tmp_path_factory.mktemp("page") / "analysis.html"
    write_report(analyse(table, GROUPS), table, target, "<walk> & run.mp4")
    return target.read_text(encoding="utf-8")


def test_report_page_is_self_contained(page):
    assert not re.findall(r"<script|<link|https?://|src=\"(?!data:)", page.replace("http://www.w3.org/2000/svg", ""))
    assert "&lt;walk&gt; &amp; run.mp4" in page
    assert 'name="viewport"' in page
    assert "size: A4" in page


def test_every_metric_states_unit_frames_and_quality(table, page):
    metrics = [metric for metric in analyse(table, GROUPS).metrics if metric.group not in ("angles", "jumps")]
    tables = re.findall(r"<p class=\"quiet\">([^<]*)</p><table class='wide'>(.*?)</table>", page)
    assert all(re.match(r"[\d.]+ to [\d.]+ s \(frames \d+ to \d+\)", above) for above, _ in tables)
    rows = [row for _, body in tables for row in re.findall(r"<tr><td>.*?</tr>", body)]
    assert len(rows) == len(metrics)
    for row, metric in zip(rows, metrics, strict=True):
        assert re.search(r"class=\"q (green|amber|red)\"", row)[1] == metric.quality
        assert "<span>" in row or metric.unit == "log jerk", "value and unit"
        assert re.search(r"<small>\S+ to \S+</small>", row), "interval"
        assert ">\u22120<" not in row, "no negative zero"


def test_report_lists_each_jump_in_one_row(table, page):
    jumps = {metric.name.partition(":")[0] for metric in analyse(table, GROUPS).metrics if metric.group == "jumps"}
    body = re.search(r"<table class='narrow'><tr><th>jump</th>.*?</table>", page)[0]
    assert body.count("<tr><td>") == len(jumps) > 0
    assert re.findall(r"<th>[^<]*, (cm|&deg;)</th>", body) == ["cm"] * 3 + ["&deg;"] * 2
    assert len(re.findall(r"class=\"q (?:green|amber|red)\" title=", body)) == 5 * len(jumps)


def test_a_jump_without_a_landing_has_an_empty_cell(table):
    metrics = [one for one in analyse(table, GROUPS).metrics if one.group == "jumps"]
    shown = [one for one in metrics if not one.name.endswith("knee valgus after landing")]
    assert 0 < len(shown) < len(metrics)
    row = "".join(jump_table(table, shown)).partition("</th></tr>")[2].partition("</tr>")[0]
    assert row.endswith("<td class='v'></td>")


def test_every_chart_has_units_and_its_frames(page):
    charts = re.findall(r"<figure><b>[^<]*</b><svg.*?</figure>", page)
    assert len(charts) > 10
    for chart in charts:
        assert "degrees</text>" in chart or "score</text>" in chart
        assert "% of the" in chart or "time, s" in chart
        assert re.search(r"\(frames \d+ to \d+\)", chart)
        ElementTree.fromstring(re.search(r"<svg.*</svg>", chart)[0])


def test_key_moments_show_images(table, page):
    analysis = analyse(table, GROUPS)
    events = [event for person in (1, 2, 3) for event in key_events(analysis, person)]
    names = {event.name for event in events}
    assert names >= {"Foot Strike", "Foot Off", "squat turning point", "takeoff", "landing", "RULA worst moment"}
    assert page.count("data:image/jpeg") == len(events)
    shown = moments(table, events[:1], None)[0]
    assert (shown.jpeg[:2], shown.filmed) == (b"\xff\xd8", False)
    labels = [moment_label(analysis, one)[0] for one in moments(table, events, None)]
    assert {"Jump 1: takeoff", "Squat 1 of 2: turning point", "Left foot strike", "Worst posture"} <= set(labels)


def test_charts_of_constant_and_single_values_are_drawn():
    flat = Curve(1, "squat", "knee flexion", "left", (5.0,) * 101, (0.0,) * 101, 10.0, "green", 0, 1, 2)
    assert cycle_chart([flat], "repetition").count("<path") > 2
    assert "<svg" in series_chart(Series(1, "ergonomics", "RULA", "score", (0.0,), (3.0,)))


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
