"""The report: self-contained, every figure with its unit and frames, an image of every key moment."""

import re
from xml.etree import ElementTree

import pytest
from stick_figures import jump, squats, walk
from test_analyse_command import write

from pose.analysis import analyse
from pose.analysis.charts import cycle_chart, series_chart
from pose.analysis.figures import Curve, Series
from pose.analysis.moments import key_events, moments
from pose.analysis.report import write_report
from pose.files import load_poses


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    people = {1: walk(seconds=8)[0], 2: squats(2)[0], 3: jump(rate=30)[0]}
    return load_poses(write(tmp_path_factory.mktemp("report") / "poses.npz", people))


@pytest.fixture(scope="module")
def page(table, tmp_path_factory):
    target = tmp_path_factory.mktemp("page") / "analysis.html"
    write_report(analyse(table), table, target, "<walk> & run.mp4")
    return target.read_text(encoding="utf-8")


def test_the_page_needs_nothing_else(page):
    assert not re.findall(r"<script|<link|https?://|src=\"(?!data:)", page.replace("http://www.w3.org/2000/svg", ""))
    assert "&lt;walk&gt; &amp; run.mp4" in page
    assert 'name="viewport"' in page
    assert "size: A4" in page


def test_every_figure_states_unit_frames_and_quality(table, page):
    rows = re.findall(r"<tr><td>.*?</tr>", page)
    figures = [figure for figure in analyse(table).figures if figure.group != "angles"]
    stated = [row for row in rows if re.search(r"s \(frames \d+ to \d+\)", row)]
    assert len(stated) == len(figures)
    assert all(re.search(r"class=\"q (green|amber|red)\"", row) for row in rows)
    assert all("&nbsp;" in row for row in stated), "value and unit"


def test_every_chart_has_units_and_its_frames(page):
    charts = re.findall(r"<figure><b>[^<]*</b><svg.*?</figure>", page)
    assert len(charts) > 10
    for chart in charts:
        assert "degrees</text>" in chart or "score</text>" in chart
        assert "% of the" in chart or "time, s" in chart
        assert re.search(r"\(frames \d+ to \d+\)", chart)
        ElementTree.fromstring(re.search(r"<svg.*</svg>", chart)[0])


def test_key_moments_have_images(table, page):
    analysis = analyse(table)
    events = [event for person in (1, 2, 3) for event in key_events(analysis, person)]
    names = {event.name for event in events}
    assert names >= {"Foot Strike", "Foot Off", "squat turning point", "takeoff", "landing", "RULA worst moment"}
    assert page.count("data:image/jpeg") == len(events)
    shown = moments(table, events[:1], None)[0]
    assert (shown.jpeg[:2], shown.filmed) == (b"\xff\xd8", False)


def test_people_without_figures_have_reasons(page):
    assert "Walking and running: no walk of two strides or more" in page
    assert "Joint angles: ankle: the 2D keypoints have no heel and toe" in page


def test_charts_of_constant_and_single_values_are_drawn():
    flat = Curve(1, "squat", "knee flexion", "left", (5.0,) * 101, (0.0,) * 101, 10.0, "green", 0, 1, 2)
    assert cycle_chart([flat], "repetition").count("<path") > 2
    assert "<svg" in series_chart(Series(1, "ergonomics", "RULA", "score", (0.0,), (3.0,)))
