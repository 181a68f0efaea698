"""`pose-analyse` on results written here."""

import csv
import json

import pytest
from command_errors import error_line
from pose_apps.analyse import main
from stick_figures import squats, walk, write

from pose.analysis import DEFAULT_GROUPS, analyse
from pose.body.tracks import open_selection
from pose.errors import UsageError
from pose.export.events import foot_events
from pose.results import load_poses


@pytest.fixture
def result(tmp_path):
    return write(tmp_path / "poses.npz", {1: squats(3)[0], 4: walk(seconds=8)[0]})


def test_each_person_gets_metrics_or_an_omission_reason(result):
    analysis = analyse(load_poses(result))
    answered = {(row.person, row.group) for row in (*analysis.metrics, *analysis.omissions)}
    assert answered == {(person, group) for person in (1, 4) for group in DEFAULT_GROUPS}
    assert {row.group for row in analysis.metrics if row.person == 4} >= {"gait", "angles"}
    count = next(row for row in analysis.metrics if row.name == "squat: count")
    assert (count.person, count.value) == (1, 3)


def test_csv_and_json_tables_contain_equal_metrics(result, tmp_path, capsys):
    assert main([str(result), "--out", str(tmp_path / "out"), "--formats", "csv,json,parquet", "--verbose"]) == 0
    document = json.loads((tmp_path / "out" / "analysis.json").read_text())
    with (tmp_path / "out" / "analysis-figures.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["name"] for row in rows] == [metric["name"] for metric in document["figures"]]
    assert [float(row["value"]) for row in rows] == pytest.approx([f["value"] for f in document["figures"]], rel=1e-5)
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(tmp_path / "out" / "analysis-events.parquet")
    assert table.column("time").to_pylist() == [event["time"] for event in document["events"]]
    said = capsys.readouterr().out
    assert "person 1, squat: count: 3 repetitions" in said
    assert "person 1, gait: none (no walk of two strides or more)" in said


def test_c3d_contains_gait_events(result, tmp_path):
    import ezc3d

    assert main([str(result), "--out", str(tmp_path / "out"), "--formats", "csv,c3d", "--only", "all", "--quiet"]) == 0
    events = ezc3d.c3d(str(tmp_path / "out" / "analysis-person4.c3d"))["parameters"]["EVENT"]
    with (tmp_path / "out" / "analysis-events.csv").open() as file:
        rows = sorted((row for row in csv.DictReader(file) if row["person"] == "4"), key=lambda row: float(row["time"]))
    assert events["LABELS"]["value"] == [row["name"] for row in rows]
    assert set(events["CONTEXTS"]["value"]) == {"Left", "Right", "General"}
    assert events["TIMES"]["value"][1] == pytest.approx([float(row["time"]) for row in rows], abs=1e-3)
    assert main([str(result), "--out", str(tmp_path / "out"), "--formats", "c3d", "--quiet"]) == 2


def test_exported_foot_events_are_those_of_the_analysis(result):
    """They differed by +83 and -118 ms: one came from the contacts of the ankles, the other from the gait."""
    recording, found = open_selection(result), []
    for event in foot_events(recording.track(4, recording.uniform)):
        found.append((round(event.time, 3), event.label, event.side.lower()))
    events = [event for event in analyse(load_poses(result)).events if (event.person, event.group) == (4, "gait")]
    expected = sorted((round(event.time, 3), event.name, event.side) for event in events)
    assert sorted(found) == expected
    assert len(expected) > 10


def test_each_repetition_has_a_row_with_the_name_given(result, tmp_path):
    out = tmp_path / "out"
    assert main([str(result), "--out", str(out), "--movement", "back squat", "--only", "repetitions", "--quiet"]) == 0
    with (out / "analysis-repetitions.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["person"], row["movement"], row["number"]) for row in rows] == [
        ("1", "back squat", str(number)) for number in (1, 2, 3)
    ]
    for row in rows:
        numbers = {name: float(value) for name, value in row.items() if name != "movement" and value}
        assert row.keys() - numbers.keys() <= {"movement", "valgus_left_degrees", "valgus_right_degrees"}
        assert numbers["start"] < numbers["turning_point"] < numbers["end"]
        assert numbers["out_s"] == pytest.approx(numbers["back_s"], abs=0.2)
        assert numbers["pelvis_travel_m"] == pytest.approx(0.4, abs=0.05)
        assert numbers["knee_flexion_left_degrees"] > 60
        assert abs(numbers["ankle_rise_left_m"]) < 0.02
    names = {metric.name for metric in analyse(load_poses(result), ["repetitions", "angles"], movement="x").metrics}
    assert "x: count" in names


def test_the_terminal_shows_two_lines(result, tmp_path, capsys):
    assert main([str(result), "--out", str(tmp_path / "out")]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "analysis: 2 people; repetitions of 1, angles of 2, gait of 1"
    assert second == f"report: {tmp_path / 'out' / 'analysis.html'}"


def test_ergonomics_are_scored_on_request_only(result):
    table = load_poses(result)
    assert not analyse(table).series
    assert {series.name for series in analyse(table, ["ergonomics"]).series} == {"RULA", "REBA"}


def test_existing_tables_are_not_overwritten(result, tmp_path, capsys):
    assert main([str(result), "--quiet", "--only", "jumps"]) == 0
    before = (tmp_path / "analysis.json").read_bytes()
    assert main([str(result), "--quiet"]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert (tmp_path / "analysis.json").read_bytes() == before
    assert main([str(result), "--quiet", "--overwrite"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--only", "dancing"], "only: 'dancing' is unknown"),
        (["--only", ","], "only: name at least one"),
        (["--formats", "xlsx"], "formats: 'xlsx' is unknown"),
        (["--load", "7"], "load"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(result, words, message, capsys):
    assert main([str(result), *words]) == 2
    assert message in error_line(capsys)


def test_result_without_world_coordinates_is_rejected(tmp_path):
    path = write(tmp_path / "flat.npz", {1: squats(2)[0]}, world=False)
    with pytest.raises(UsageError, match="analysis needs world coordinates"):
        analyse(load_poses(path))
