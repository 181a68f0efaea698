"""`poses.json` against its schema, its inputs, and what may go wrong while it is written."""

import json
import tracemalloc
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from pose_fakes import random_result, run_info

from pose.errors import PoseError
from pose.results import JsonWriter, NpzWriter
from pose.results.json import SCHEMA_PATH
from pose.structures.skeletons import BLAZEPOSE33, COCO17


def _write(path, results, complete=True, skeleton=BLAZEPOSE33):
    writer = JsonWriter(path, run_info(skeleton))
    for result in results:
        writer.write(result)
    writer.close(complete)
    return json.loads(path.read_text())


def _validate(document):
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()), cls=jsonschema.Draft202012Validator)


def test_json_schema_is_valid_and_rejects_other_documents():
    schema = json.loads(SCHEMA_PATH.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    with pytest.raises(jsonschema.ValidationError):
        _validate({"format": "pose-run", "version": 2})


@pytest.mark.parametrize("people", [[], [0], [0, 0, 3, 1, 0], [2]])
@pytest.mark.parametrize("skeleton", [BLAZEPOSE33, COCO17], ids=lambda s: s.name)
def test_json_follows_the_schema(tmp_path, rng, people, skeleton):
    results = [random_result(rng, i, n, skeleton) for i, n in enumerate(people)]
    document = _write(tmp_path / "poses.json", results, skeleton=skeleton)
    _validate(document)
    assert [len(frame["people"]) for frame in document["frames"]] == people
    assert document["complete"] is True


def test_json_numbers_round_trip_within_rounding(tmp_path, rng):
    result = random_result(rng, 12, 3)
    frame = _write(tmp_path / "poses.json", [result])["frames"][0]
    assert (frame["index"], frame["time"]) == (12, pytest.approx(12 / 25, abs=1e-6))
    for row, person in enumerate(frame["people"]):
        assert person["id"] == result.people.ids[row]
        keypoints = np.array(person["keypoints"])
        assert np.abs(np.array(person["box"]) - result.people.boxes[row]).max() <= 0.0051
        assert np.abs(keypoints[:, :2] - result.people.keypoints[row]).max() <= 0.0051
        assert np.abs(keypoints[:, 2] - result.people.scores[row]).max() <= 0.00051
        assert np.abs(np.array(person["joints3d"]) - result.poses.joints[row]).max() <= 0.000051
        assert np.abs(np.array(person["root"]) - result.poses.root[row]).max() <= 0.000051
        assert np.abs(np.array(person["sigma"]) - result.poses.sigma[row]).max() <= 0.051
        assert [limb in person["swapped"] for limb in ("legs", "arms")] == result.poses.swapped[row].tolist()


def test_json_has_prediction_horizon_for_predicted_poses_only(tmp_path, rng):
    result = random_result(rng, 12, 2)
    predicted = replace(result, poses=replace(result.poses, ahead=np.array([0.0661, 0], np.float32)))
    document = _write(tmp_path / "poses.json", [predicted])
    _validate(document)
    first, second = document["frames"][0]["people"]
    assert first["ahead"] == pytest.approx(0.0661)
    assert "ahead" not in second


def test_json_header_names_models_and_settings(tmp_path):
    head = _write(tmp_path / "poses.json", [])
    assert head["source"] == {"name": 'a "clip".mp4', "width": 640, "height": 480, "fps": 25.0}
    assert head["camera"]["status"] == "assumed"
    assert head["camera"]["fov_degrees"] == pytest.approx(55)
    assert head["models"] == [{"role": "lifter", "name": "tiny", "sha256": "0f" * 32}]
    assert head["skeletons"]["keypoints"]["joints"] == list(BLAZEPOSE33.names)
    assert head["settings"] == {"max_people": 3}


def test_nan_becomes_null(tmp_path, rng):
    result = random_result(rng, 0, 2)
    result.people.keypoints[0, 5] = np.nan
    result.poses.root[1] = np.inf
    document = _write(tmp_path / "poses.json", [result])
    _validate(document)
    first, second = document["frames"][0]["people"]
    assert first["keypoints"][5][:2] == [None, None]
    assert second["root"] == [None, None, None]
    assert None not in first["root"]


@pytest.mark.parametrize("writer", [JsonWriter, NpzWriter])
def test_json_has_its_name_only_after_commit(tmp_path, rng, writer):
    path = tmp_path / "poses.out"
    with writer(path, run_info()) as opened:
        opened.write(random_result(rng, 0, 1))
        assert not path.exists()
        opened.abort()
    assert list(tmp_path.iterdir()) == []


def test_interrupted_json_write_keeps_earlier_frames(tmp_path, rng, monkeypatch):
    path = tmp_path / "poses.json"
    writer = JsonWriter(path, run_info())
    writer.write(random_result(rng, 0, 2))
    writer._part._file.write(b',\n{"index":1,"ti')  # what a write that Ctrl-C stopped has left
    writer.close(complete=False)
    document = json.loads(path.read_text())
    _validate(document)
    assert [frame["index"] for frame in document["frames"]] == [0]


@pytest.mark.parametrize("writer", [JsonWriter, NpzWriter])
def test_writer_context_keeps_finished_frames_after_an_exception(tmp_path, rng, writer):
    path = tmp_path / "poses.out"
    result = random_result(rng, 0, 1)

    def interrupted():
        with writer(path, run_info()) as opened:
            opened.write(result)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert [file.name for file in tmp_path.iterdir()] == ["poses.out"]


@pytest.mark.parametrize("writer", [JsonWriter, NpzWriter])
def test_missing_folder_gives_a_one_line_error(tmp_path, writer):
    with pytest.raises(PoseError, match=r"poses.out: No such file or directory"):
        writer(tmp_path / "gone" / "poses.out", run_info())


@pytest.mark.parametrize(
    ("writer", "frames"),
    [
        (JsonWriter, 900),
        (NpzWriter, 2000),
        pytest.param(JsonWriter, 50_000, marks=pytest.mark.slow),
        pytest.param(NpzWriter, 50_000, marks=pytest.mark.slow),
    ],
)
def test_json_writer_memory_is_bounded(tmp_path, rng, writer, frames):
    result = random_result(rng, 0, 1)
    opened = writer(tmp_path / "poses.out", run_info())
    tracemalloc.start()
    for _ in range(frames):
        opened.write(result)
    opened.close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6
    assert (tmp_path / "poses.out").stat().st_size > 500 * frames
