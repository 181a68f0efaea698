"""Doubtful tracks of results with and without a world in every file, and the report of a moving camera."""

import base64
import csv
import json
import re
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from export_fakes import wave

from pose.body.skeleton import joint_positions
from pose.body.tracks import Selection
from pose.export import export
from pose.export.html import MOVING_NOTE
from pose.export.result import Result
from pose.results import JsonWriter, MotionInfo, NpzWriter, load_poses
from pose.results.json import SCHEMA_PATH
from pose.world.camera_motion.verdict import TRANSLATING, CameraMotion

pyarrow = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def unplaced(save, body, rng):
    """A result of two people without a world; the second one is doubtful."""
    table = load_poses(
        save(
            np.stack(
                [joint_positions(body, wave(20, rng)), joint_positions(body, wave(20, rng)) + np.array([1.0, 0, 0])]
            )
        )
    )
    assert table.world_info is None
    return replace(table, run=replace(table.run, doubtful=(2,)))


def written(kind, table, path):
    with kind(path, table.run) as writer:
        for result in table:
            writer.write(result)
    return path


def facts(page):
    return json.loads(re.search(r'id="facts">(.*?)</script>', page, re.DOTALL)[1])


def test_npz_and_json_list_doubtful_tracks_without_a_world(unplaced, tmp_path):
    path = written(NpzWriter, unplaced, tmp_path / "poses.npz")
    arrays = np.load(path)
    np.testing.assert_array_equal(arrays["doubtful"], arrays["id"] == 2)
    again = load_poses(path)
    assert again.doubtful_ids == Result(again, "clip").doubtful == (2,)
    document = json.loads(written(JsonWriter, unplaced, tmp_path / "poses.json").read_text())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()), cls=jsonschema.Draft202012Validator)
    assert (document["world"], document["doubtful"]) == (None, [2])
    for frame in document["frames"]:
        assert {person["id"]: person.get("doubtful") for person in frame["people"]} == {1: None, 2: True}


def test_tables_have_a_doubtful_column(unplaced, tmp_path):
    recording = Selection(unplaced, "clip.mp4")
    made = {one.path.suffix: one.path for one in export(recording, ["csv", "parquet"], tmp_path, "poses")}
    with made[".csv"].open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(row["doubtful"] == str(int(row["person"] == "2")) for row in rows)
    table = pyarrow.read_table(made[".parquet"])
    assert table["doubtful"].to_pylist() == [person == 2 for person in table["person"].to_pylist()]
    pytest.importorskip("pandas")
    frame = Result(unplaced, "clip").to_dataframe()
    assert (frame["doubtful"] == (frame["person"] == 2)).all()


@pytest.mark.parametrize("moves", [False, True])
def test_report_does_not_level_people_of_an_unknown_camera(unplaced, tmp_path, moves):
    """People who lean by 30 degrees in the image stay so if the camera moved: the image's up is not gravity's."""
    angle = np.radians(30)
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]], np.float32)
    table = unplaced.with_columns(joints3d=unplaced.joints3d @ turn.T, root=unplaced.root @ turn.T)
    if moves:
        motion = MotionInfo(CameraMotion(TRANSLATING), compensated=False)
        table = replace(table, run=replace(table.run, motion=motion))
    (made,) = export(Selection(table, "clip.mp4"), ["html"], tmp_path, "poses")
    page = made.path.read_text(encoding="utf-8")
    stage = np.frombuffer(base64.b64decode(re.search(r'id="p1-stage">(\S+)', page)[1].split("<")[0]), "<i2")
    stage = stage.reshape(-1, 17, 3) / 1000
    spine = (stage[:, 8] - stage[:, 0]).mean(axis=0)
    lean = np.degrees(np.arctan2(np.hypot(*spine[:2]), spine[2]))
    assert (lean > 20) == moves
    assert stage[:, [3, 6], 2].min() > 0
    assert (facts(page)["space"] == MOVING_NOTE) == moves
