"""The report: self-contained, every figure with its unit and frames, an image of every key moment."""

import re
from xml.etree import ElementTree

import pytest
from stick_figures import jump, squats, walk
from test_analyse_command import write

from pose.analysis import GROUPS, analyse
from pose.analysis.charts import cycle_chart, series_chart
from pose.analysis.metrics import Curve, Series
from pose.analysis.moments import key_events, moments
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
