"""Foot contacts and angles in formats that hold them: events of C3D, columns of Parquet."""

from dataclasses import replace

import numpy as np
import pytest
from test_binary_formats import long_table, write

from pose.body.joint_angles import NAMES
from pose.export import Selection
from pose.export.events import FOOT_OFF, FOOT_STRIKE, ExportEvent, contact_events
from pose.structures.types import Placed

RATE = 30


def recording_of(left, right, first=0.0):
    """A person at 30 frames/s with these probabilities of contact, from `first` s on."""
    table = long_table(len(left))
    contacts = np.stack([left, right], axis=1).astype(np.float32)
    times = first + np.arange(len(left)) / RATE
    placed = replace(Placed.unknown(len(left)), contacts=contacts)
    return Selection(table.with_columns(**placed.arrays(), time=times, timestamps=times), "walk")


def steps(*spans, frames=60, high=0.9, low=0.1):
    contacts = np.full(frames, low)
    for first, end in spans:
        contacts[first:end] = high
    return contacts


def events_of(recording):
    return contact_events(recording.track(1, recording.uniform))


def test_contact_events_mark_begin_and_end():
    found = events_of(recording_of(steps((0, 10), (20, 40)), steps((5, 60))))
    expected = [(5, FOOT_STRIKE, "Right"), (10, FOOT_OFF, "Left"), (20, FOOT_STRIKE, "Left"), (40, FOOT_OFF, "Left")]
    assert found == [ExportEvent(at / RATE, label, side) for at, label, side in expected]


def test_short_contacts_and_pauses_have_no_events():
    found = events_of(recording_of(steps((10, 20), (22, 40), (50, 52)), steps()))
    assert [(round(event.time * RATE), event.label) for event in found] == [(10, FOOT_STRIKE), (40, FOOT_OFF)]


@pytest.mark.parametrize(("count", "groups"), [(4, 1), (300, 2)])
def test_c3d_holds_the_events_at_the_time_of_the_video(count, groups, tmp_path):
    ezc3d = pytest.importorskip("ezc3d")
    spans = [(10 + 20 * step, 20 + 20 * step) for step in range(count // 2)]
    recording = recording_of(steps(*spans, frames=20 * count), steps(frames=20 * count), first=70.0)
    made = write(recording, "c3d", tmp_path)
    group = ezc3d.c3d(str(made.path))["parameters"]["EVENT"]
    assert group["USED"]["value"][0] == count
    marks = ["", *map(str, range(2, groups + 1))]
    values = {
        name: np.concatenate([group[f"{name}{mark}"]["value"] for mark in marks])
        for name in ("LABELS", "CONTEXTS", "SUBJECTS")
    }
    minutes, seconds = np.concatenate([group[f"TIMES{mark}"]["value"] for mark in marks], axis=1)
    np.testing.assert_allclose(60 * minutes + seconds, 70 + np.ravel(spans) / RATE, atol=1e-3)
    assert values["LABELS"].tolist() == [FOOT_STRIKE, FOOT_OFF] * (count // 2)
    assert set(values["CONTEXTS"]) == {"Left"}
    assert set(values["SUBJECTS"]) == {"person1"}
    assert f"{count} events" in made.notes


def test_parquet_of_angles_is_the_csv_with_types_and_contacts(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import csv

    recording = recording_of(steps((0, 10)), steps((5, 60)))
    table = parquet.read_table(write(recording, "angles-parquet", tmp_path).path)
    write(recording, "angles", tmp_path)
    with (tmp_path / "poses-angles.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert table.column_names == [*rows[0], "left_contact", "right_contact"]
    for name in ("frame", "time", "person", f"{NAMES[0]}_deg", f"{NAMES[-1]}_sd"):
        expected = [float(row[name] or "nan") for row in rows]
        np.testing.assert_allclose(table[name].to_pandas().astype(float), expected, atol=0.01)
    np.testing.assert_allclose(table["left_contact"].to_numpy(), steps((0, 10)), atol=1e-6)
