"""Results in a world: what is written is what is read, and files without one are read as before."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from pose_fakes import random_result, run_info

from pose.errors import PoseError
from pose.results import JsonWriter, NpzWriter, WorldInfo, load_poses
from pose.results.json import SCHEMA_PATH
from pose.structures.types import Placed
from pose.world.frame import World, rotation_of, up_of

WORLD = World(rotation_of(up_of(-12, 3)), -1.4, "feet", 2.5)
HERE = replace(
    run_info(),
    world=WorldInfo(
        WORLD, {7: (1.75, 0.09), 8: (1.82, 0.0)}, ((9, 7),), (4, 12), (8,), height_intervals={7: (1.55, 1.81)}
    ),
)


def placed_result(rng, index, people):
    result = random_result(rng, index, people)
    placed = Placed(
        rng.normal(size=(people, 17, 3)).astype(np.float32), rng.uniform(10, 300, people).astype(np.float32),
        rng.random((people, 2), np.float32), rng.random(people) < 0.5, rng.uniform(0, 90, people).astype(np.float32),
        rng.random(people) < 0.5, rng.random(people) < 0.5,
    )  # fmt: skip
    if people:
        placed.moved[0] = np.nan
    return replace(result, placed=placed)


@pytest.fixture
def results(rng):
    return [placed_result(rng, i, n) for i, n in enumerate([2, 0, 1, 3])]


def write(kind, path, results, info=HERE):
    with kind(path, info) as writer:
        for result in results:
            writer.write(result)
    return path


def test_npz_round_trips_world_coordinates(tmp_path, results):
    table = load_poses(write(NpzWriter, tmp_path / "poses.npz", results))
    assert table.format_version == 2
    for result, again in zip(results, table, strict=True):
        for name in result.placed.__slots__:
            np.testing.assert_array_equal(getattr(again.placed, name), getattr(result.placed, name))
    info = table.world_info
    np.testing.assert_allclose(info.world.rotation, WORLD.rotation, atol=1e-6)
    assert (info.world.floor, info.world.found_by, info.world.sigma_degrees) == (-1.4, "feet", 2.5)
    assert info.heights == HERE.world.heights
    assert info.height_intervals == {7: (1.55, 1.81)}
    assert info.joined == ((9, 7),)
    assert info.dropped == (4, 12)
    assert info.doubtful == (8,)


def test_json_follows_its_schema_and_equals_npz(tmp_path, results):
    document = json.loads(write(JsonWriter, tmp_path / "poses.json", results).read_text())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()), cls=jsonschema.Draft202012Validator)
    assert document["world"]["confidence"] == pytest.approx(0.865, abs=0.001)
    for frame, result in zip(document["frames"], results, strict=True):
        for row, person in enumerate(frame["people"]):
            assert np.abs(np.array(person["world"]) - result.placed.joints[row]).max() < 1e-4
            assert np.abs(np.array(person["contacts"]) - result.placed.contacts[row]).max() < 0.0051
            assert person["filled"] == result.placed.filled[row]
            assert person.get("doubtful", False) == result.placed.doubtful[row]
            assert person.get("partial", False) == result.placed.partial[row]
            assert (person["moved"] is None) == np.isnan(result.placed.moved[row])


def test_result_without_a_world_has_no_world_keys(tmp_path, rng):
    results = [random_result(rng, i, 2) for i in range(2)]
    table = load_poses(write(NpzWriter, tmp_path / "poses.npz", results, run_info()))
    assert table.placed is None
    assert table.world_info is None
    assert table[0].placed is None
    document = json.loads(write(JsonWriter, tmp_path / "poses.json", results, run_info()).read_text())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()), cls=jsonschema.Draft202012Validator)
    assert document["world"] is None
    assert "filled" not in document["frames"][0]["people"][0]


def test_a_file_of_version_1_is_read_as_before(tmp_path, rng):
    path = write(NpzWriter, tmp_path / "new.npz", [random_result(rng, 0, 2)], run_info())
    arrays = dict(np.load(path))
    arrays["format_version"] = np.array(1)
    head = json.loads(str(arrays["run"]))
    del head["world"]
    np.savez(tmp_path / "old.npz", **(arrays | {"run": np.array(json.dumps(head))}))
    table = load_poses(tmp_path / "old.npz")
    assert (table.format_version, table.placed, table.world_info) == (1, None, None)
    np.testing.assert_array_equal(table.joints3d, load_poses(path).joints3d)


def test_unknown_vertical_and_floor_round_trip(tmp_path, results):
    unknown = World(rotation_of([0, -1, 0]), 0.0, "unknown", float("nan"), floor_known=False)
    info = replace(HERE, world=WorldInfo(unknown))
    document = json.loads(write(JsonWriter, tmp_path / "poses.json", results, info).read_text())
    jsonschema.validate(document, json.loads(SCHEMA_PATH.read_text()), cls=jsonschema.Draft202012Validator)
    again = load_poses(write(NpzWriter, tmp_path / "poses.npz", results, info)).world_info.world
    assert (again.found_by, again.confidence, again.floor_known) == ("unknown", 0.0, False)


@pytest.mark.parametrize(
    "change", [{"world": np.zeros((1, 17, 3))}, {"contacts": np.zeros(6)}, {"filled": np.array(["x"] * 6)}]
)
def test_invalid_world_is_rejected(tmp_path, results, change):
    path = write(NpzWriter, tmp_path / "poses.npz", results)
    np.savez(path, **(dict(np.load(path)) | change))
    with pytest.raises(PoseError, match="expected") as error:
        load_poses(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("said", [None, [], [1.5], [1.5, "tall"], [1.5, 1.6, 1.7], {"low": 1.5}])
def test_invalid_height_interval_is_rejected(said):
    plain = HERE.world.to_dict()
    assert WorldInfo.from_json(plain).height_intervals == {7: (1.55, 1.81)}
    plain["people"][0]["height_interval"] = said
    with pytest.raises((TypeError, ValueError)):
        WorldInfo.from_json(plain)


def test_a_file_without_the_newest_flags_is_read(tmp_path, results):
    path = write(NpzWriter, tmp_path / "poses.npz", results)
    arrays = dict(np.load(path))
    del arrays["doubtful"], arrays["partial"]
    np.savez(path, **arrays)
    placed = load_poses(path).placed
    assert not placed.doubtful.any()
    assert not placed.partial.any()
