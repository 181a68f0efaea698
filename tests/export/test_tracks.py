"""Which people and frames are exported, at which times, and what is missing or doubtful in them."""

import base64
import csv
import json
import re
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from export_fakes import wave
from memory_grown import megabytes_grown, needs_proc
from pose_fakes import random_result, run_info
from strict import read_trc

from pose.body.selection import CHUNK
from pose.body.skeleton import joint_positions
from pose.body.soles import FOOT_NAMES
from pose.body.tracks import Selection, open_selection
from pose.errors import PoseError, UsageError
from pose.export import c3d, export, glb, html, trc
from pose.export.html import MOVING_NOTE
from pose.export.result import Result, load
from pose.export.table import rows
from pose.results import JsonWriter, MotionInfo, NpzWriter, load_poses
from pose.results.json import SCHEMA_PATH
from pose.structures.skeletons import H36M17
from pose.world.camera_motion.verdict import TRANSLATING, CameraMotion
from pose.world.frame import FEET, World, rotation_of, up_of

IMPORTS = "from pathlib import Path; from pose.body.tracks import open_selection"
READ_ALL = """
recording = open_selection(Path(sys.argv[1]))
print(sum(len(span.times) for span in recording.track(1, recording.uniform).spans()))
"""


def all_places(track):
    return np.concatenate([span.joints for span in track.spans()])


def test_even_timestamps_are_not_resampled(recorded):
    """Containers round to a millisecond; no number may change for that."""
    times = np.round(np.arange(60) / 29.97, 3)
    recording, places = recorded(60, times=times)
    track = recording.track(1, recording.uniform)
    assert not track.resampled
    assert track.rate == pytest.approx(29.97, rel=1e-3)
    np.testing.assert_allclose(recording.space.to_file(all_places(track)), places[0], atol=1e-5)
    np.testing.assert_array_equal(track.times, times)


def test_uneven_timestamps_are_resampled_where_a_format_needs_it(recorded, rng):
    times = np.cumsum(rng.choice([0.02, 0.04, 0.06], 100))
    recording, places = recorded(100, times=times)
    track = recording.track(1, recording.uniform)
    assert track.resampled
    assert track.rate == pytest.approx(25, rel=1e-3)
    np.testing.assert_allclose(np.diff(track.times), 1 / track.rate)
    expected = np.stack([np.interp(track.times, times, places[0, :, 0, axis]) for axis in range(3)], axis=1)
    np.testing.assert_allclose(recording.space.to_file(all_places(track))[:, 0], expected, atol=1e-5)
    np.testing.assert_array_equal(recording.track(1, recording.timeline).times, times)


def test_gaps_are_missing_values(recorded):
    present = np.ones((2, 60), bool)
    present[0, :7] = present[0, 20:25] = present[0, 40] = present[0, 55:] = False
    recording, _ = recorded(60, 2, present=present)
    track = recording.track(1, recording.uniform)
    assert (track.first, len(track)) == (7, 48)
    assert track.gaps == [(13, 17), (33, 33)]
    assert np.isnan(all_places(track)[13:18]).all()
    assert np.isfinite(all_places(track)[track.known]).all()
    assert recording.track(2, recording.uniform).gaps == []


def test_unknown_poses_are_missing_values(save, body, rng):
    from export_fakes import wave

    from pose.body.skeleton import joint_positions

    places = joint_positions(body, wave(30, rng))[None]
    places[0, :5] = np.nan
    places[0, 12, 3] = np.nan
    recording = open_selection(save(places))
    track = recording.track(1, recording.uniform)
    assert (track.first, track.gaps) == (5, [(7, 7)])
    places[:] = np.nan
    assert open_selection(save(places, name="none")).track(1, recording.uniform) is None


def test_a_part_of_the_video(recorded):
    recording, places = recorded(60, start=0.5, end=1.0)
    track = recording.track(1, recording.uniform)
    np.testing.assert_allclose(recording.space.to_file(all_places(track)), places[0, 15:30], atol=1e-5)
    with pytest.raises(UsageError, match=r"no frame from 7 s on; the result has 0 to 1.96667 s"):
        recorded(60, start=7)


@pytest.mark.parametrize("space", [None, "world"])
def test_points_are_exported_in_the_world_of_the_result(save, body, rng, space):
    world = World(rotation_of(up_of(-25, 5)), -1.6, FEET, 2.0)
    path = save(joint_positions(body, wave(60, rng))[None], world=world)
    recording = open_selection(path, space=space)
    assert (recording.space.name, recording.space.note[:11]) == ("world", "world frame")
    points = recording.space.to_file(all_places(recording.track(1, recording.timeline)))
    placed = load_poses(path).placed
    assert placed is not None
    np.testing.assert_allclose(points, placed.joints, atol=1e-5)


def test_partial_frames_are_trimmed_unless_all_are(save, body, rng):
    world = World(rotation_of(up_of(-25, 5)), -1.6, FEET, 2.0)
    path = save(joint_positions(body, wave(60, rng))[None], world=world)
    arrays = dict(np.load(path))
    arrays["partial"] = np.isin(np.arange(60), [*range(8), 30, *range(55, 60)])
    np.savez(path, **arrays)
    trimmed, whole = (open_selection(path, trim=trim) for trim in (True, False))
    track = trimmed.track(1, trimmed.uniform)
    assert (track.first, len(track), track.gaps) == (8, 47, [(22, 22)])
    assert len(whole.track(1, whole.uniform)) == 60
    pandas = pytest.importorskip("pandas")
    (written,) = export(whole, ["csv"], path.parent, "whole")
    tables = pandas.read_csv(written.path), load(path).to_dataframe()
    for table in tables:
        assert (table["partial"].astype(bool) == np.repeat(arrays["partial"], 17)).all()
    np.testing.assert_allclose(tables[0]["root_sigma_mm"], tables[1]["root_sigma_mm"], atol=0.06)
    assert (load(path).partial()[0] == arrays["partial"]).all()
    np.savez(path, **(arrays | {"partial": np.ones(60, bool)}))
    recording = open_selection(path)
    assert len(recording.track(1, recording.uniform)) == 60


def test_given_vertical_requires_a_world(save, rng):
    path = save(rng.normal(size=(1, 40, 17, 3)))
    assert open_selection(path).space.name == "camera"
    assert open_selection(path, up=up_of(-10, 0)).space.name == "world"
    assert open_selection(path, space="camera").space.name == "camera"


def test_result_without_frames_is_reported(save):
    with pytest.raises(PoseError, match=r"poses.npz: contains no frame"):
        open_selection(save(np.zeros((1, 0, 17, 3))))


def test_world_frame_places_people_on_the_floor(save, body, rng):
    from pose_datasets.rotations import about_axis

    motion = wave(200, rng, size=0.2)
    places = joint_positions(body, motion)[None]
    tilted = places @ about_axis("x", np.radians(-20)).T + np.array([0, 0.3, 0])
    recording = open_selection(save(tilted), space="world")
    placed = recording.space.to_file(all_places(recording.track(1, recording.timeline)))
    straight = placed[:, 8] - placed[:, [3, 6]].mean(axis=1)
    straight /= np.linalg.norm(straight, axis=1, keepdims=True)
    assert np.degrees(np.arccos(straight.mean(axis=0)[1])) < 8
    assert np.percentile(placed[:, [3, 6], 1], 2) == pytest.approx(0.08, abs=0.02), "ankles above the floor"
    assert "world" in recording.space.note


def test_memory_mapped_arrays_equal_the_arrays(save, rng):
    path = save(rng.normal(size=(2, 400, 17, 3)))
    mapped, read = load_poses(path, mapped=True), load_poses(path)
    assert isinstance(mapped.joints3d, np.memmap)
    for name in ("joints3d", "root", "sigma", "keypoints", "id", "frame_index", "timestamps"):
        np.testing.assert_array_equal(getattr(mapped, name), getattr(read, name))


@needs_proc
def test_reading_a_long_result_takes_bounded_memory(tmp_path):
    frames = 108_000
    path = tmp_path / "hour.npz"
    np.savez(
        path, timestamps=np.arange(frames) / 30, joints3d=np.zeros((frames, 17, 3), np.float32),
        root=np.ones((frames, 3), np.float32), sigma=np.ones((frames, 17), np.float32),
    )  # fmt: skip
    taken, read = megabytes_grown(IMPORTS, READ_ALL, path)
    assert int(read) == frames
    # The arrays hold 31 MB, and as float64 twice that. What stays is a few numbers a frame.
    assert taken < 25


PEOPLE = 40


@pytest.fixture
def recording(tmp_path):
    """Each person is in two frames, two people are in each frame."""
    path, draw = tmp_path / "poses.npz", np.random.default_rng(0)
    with NpzWriter(path, run_info()) as writer:
        for index in range(PEOPLE + 1):
            result = random_result(draw, index, 2)
            writer.write(replace(result, people=replace(result.people, ids=np.array([index, index + 1]))))
    return Selection(load_poses(path), "many")


def test_portions_with_several_people_lose_no_row(recording):
    people = recording.people
    parts = list(rows(recording, people))
    assert [part.names for part in parts] == [H36M17.names, FOOT_NAMES]
    each = [list(rows(recording, [person])) for person in people]
    for part in parts:
        apart = [one for of_person in each for one in of_person if one.names == part.names]
        assert len(part.frame) == sum(len(one.frame) for one in apart) < CHUNK
        for name in ("person", "frame", "time", "values", "filled"):
            np.testing.assert_array_equal(getattr(part, name), np.concatenate([getattr(one, name) for one in apart]))


@pytest.mark.parametrize("z_up", [False, True])
def test_marker_files_hold_heels_and_toes(recording, tmp_path, z_up):
    """The same as the table's, with y or z up."""
    ezc3d = pytest.importorskip("ezc3d")
    recording = Selection(recording.table, "many", space="world", z_up=z_up)
    recording.table.columns["scores"][:] = 1  # all feet are detected
    track = recording.track(5, recording.uniform)
    trc.write(track, tmp_path / "a.trc")
    c3d.write(track, tmp_path / "a.c3d")
    markers = read_trc((tmp_path / "a.trc").read_text())
    made = ezc3d.c3d(str(tmp_path / "a.c3d"))
    assert tuple(markers.names) == (*H36M17.names, *FOOT_NAMES)
    assert made["parameters"]["POINT"]["LABELS"]["value"] == markers.names
    assert made["parameters"]["POINT"]["Y_SCREEN"]["value"] == ["+Z" if z_up else "+Y"]
    points = np.moveaxis(made["data"]["points"][:3] / 1000, [0, 1, 2], [2, 1, 0])
    np.testing.assert_allclose(points, markers.values, atol=2e-5)
    listed = {name: part.values[:, at, :3] for part in rows(recording, [5]) for at, name in enumerate(part.names)}
    # These random images show some feet backwards, which are missing.
    all_four = np.isfinite(markers.values[:, -len(FOOT_NAMES) :, 0]).all(axis=1)
    assert all_four.any()
    for name, places in listed.items():
        own = markers.values[:, markers.names.index(name)]
        np.testing.assert_allclose(own[all_four] if name in FOOT_NAMES else own, places, atol=2e-5)
    upright = rows(Selection(recording.table, "many", space="world"), [5])
    x, y, z = next(iter(upright)).values[:, :, :3].T
    expected = np.stack([x, -z, y] if z_up else [x, y, z]).T
    np.testing.assert_allclose(markers.values[:, :17], expected, atol=2e-5)


@pytest.mark.parametrize("form", [glb, html])
def test_people_with_the_most_frames_are_exported(recording, tmp_path, monkeypatch, form):
    monkeypatch.setattr(form, "MAX_PEOPLE", 5)
    recording.rig = "sticks"
    people = recording.people
    notes = form.write(recording, people, tmp_path / "file")
    assert f"the 5 of {len(people)} people in the most frames; --person chooses others" in notes
    if form is html:
        page = (tmp_path / "file").read_text()
        assert re.search(rf'"leftOut": ?{len(people) - 5}', page)


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
