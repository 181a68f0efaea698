"""COCO and OpenPose JSON, the Rerun recording, tables, and their numbers as text."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from pose_fakes import random_result, run_info

from pose.body.digits import number, to_bytes
from pose.export import export, open_selection
from pose.results import NpzWriter
from pose.structures.skeletons import BLAZEPOSE33, COCO17, COCO_NAMES, H36M17, HALPE26
from pose.utils.written_files import RECORD, WrittenFiles


def recording_of(tmp_path, skeleton, people=2, frames=5, **options):
    rng = np.random.default_rng(3)
    path = tmp_path / "poses.npz"
    results = [random_result(rng, frame, people if frame != 2 else 0, skeleton) for frame in range(frames)]
    with NpzWriter(path, run_info(skeleton)) as writer:
        for result in results:
            result.people.scores[:, 0] = 0  # the nose is not seen
            writer.write(result)
    return open_selection(path, **options), results


def write(recording, name, folder, people=None):
    (made,) = export(recording, [name], folder, "poses", people)
    return made.path


@pytest.mark.parametrize("skeleton", [COCO17, HALPE26, BLAZEPOSE33], ids=lambda s: s.name)
def test_coco_export_contains_the_keypoints(tmp_path, skeleton):
    recording, results = recording_of(tmp_path, skeleton)
    entries = json.loads(write(recording, "coco", tmp_path).read_text())
    assert len(entries) == 8
    entry = next(e for e in entries if (e["image_id"], e["track_id"]) == (3, 8))
    people = results[3].people
    points = np.array(entry["keypoints"]).reshape(17, 3)
    assert points[0].tolist() == [0, 0, 0]
    rows = [skeleton.index(name) for name in COCO_NAMES]
    np.testing.assert_allclose(points[1:, :2], people.keypoints[1, rows][1:], atol=0.006)
    np.testing.assert_allclose(points[1:, 2], people.scores[1, rows][1:], atol=0.0006)
    x1, y1, x2, y2 = people.boxes[1]
    np.testing.assert_allclose(entry["bbox"], [x1, y1, x2 - x1, y2 - y1], atol=0.02)
    assert (entry["category_id"], entry["score"]) == (1, pytest.approx(people.box_scores[1], abs=1e-4))


def test_openpose_export_has_one_body_25_file_per_frame(tmp_path):
    recording, results = recording_of(tmp_path, HALPE26)
    folder = write(recording, "openpose", tmp_path, people=[7])
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == [f"poses_{frame:012d}_keypoints.json" for frame in range(5)]
    assert json.loads(files[2].read_text()) == {"version": 1.3, "people": []}
    (person,) = json.loads(files[4].read_text())["people"]
    assert person["person_id"] == [7]
    points = np.array(person["pose_keypoints_2d"]).reshape(25, 3)
    people = results[4].people
    assert points[0].tolist() == [0, 0, 0]
    np.testing.assert_allclose(points[1, :2], people.keypoints[0, HALPE26.index("neck")], atol=0.006)
    hips = people.keypoints[0, [HALPE26.index("left_hip"), HALPE26.index("right_hip")]]
    np.testing.assert_allclose(points[8, :2], hips.mean(axis=0), atol=0.006)
    np.testing.assert_allclose(points[4, :2], people.keypoints[0, HALPE26.index("right_wrist")], atol=0.006)
    np.testing.assert_allclose(points[24, :2], people.keypoints[0, HALPE26.index("right_heel")], atol=0.006)
    record = WrittenFiles(tmp_path)
    record.add(folder)
    record.save()
    again = write(recording, "openpose", tmp_path, people=[8])
    assert json.loads(sorted(again.iterdir())[0].read_text())["people"][0]["person_id"] == [8], "replaced as a whole"
    assert sorted(path.name for path in tmp_path.iterdir()) == [RECORD, "poses-openpose", "poses.npz"]


def test_rerun_export_contains_every_frame(tmp_path):
    rerun = pytest.importorskip("rerun")
    recording, results = recording_of(tmp_path, COCO17)
    path = write(recording, "rrd", tmp_path)
    said = path.read_bytes()
    assert said[:4] in (b"RRF2", b"RRIO")
    for entity in ("world/person7/bones", "world/person8/uncertainty", "world/camera/picture/person7"):
        assert entity.encode() in said
    assert rerun is not None
    assert len(results) == 5


@pytest.mark.parametrize("name", ['=HYPERLINK("http://h","a")', "+1+1", "-1+1", "@SUM(1)", "\t=1", " =1", "\uff1d1"])
def test_no_cell_of_a_table_is_a_formula(tmp_path, name):
    results = [random_result(np.random.default_rng(3), 0, 1, H36M17)]
    with NpzWriter(tmp_path / "poses.npz", replace(run_info(H36M17), source=name)) as writer:
        for result in results:
            writer.write(result)
    with write(open_selection(tmp_path / "poses.npz"), "csv", tmp_path).open(encoding="utf-8", newline="") as file:
        videos = {row["video"] for row in csv.DictReader(file)}
    assert videos == {f"'{name}"}


ANY = arrays(
    np.float64, array_shapes(max_dims=2, max_side=5), elements=st.floats(allow_nan=False, allow_infinity=False)
)
USUAL = arrays(np.float64, array_shapes(max_dims=2, max_side=5), elements=st.floats(-1e6, 1e6))


def cells(values, decimals):
    made = number(values, decimals)
    return [to_bytes(one).decode() for one in made.reshape(-1, made.shape[-1])]


@given(values=USUAL | ANY, decimals=st.integers(0, 6))
def test_formatted_numbers_are_correctly_rounded(values, decimals):
    for got, value in zip(cells(values, decimals), values.reshape(-1).tolist(), strict=True):
        whole, _, fraction = got.partition(".")
        assert len(fraction) == decimals
        assert whole.removeprefix("-") == str(int(whole.removeprefix("-"))), "no zeros in front"
        assert float(got) == pytest.approx(value, rel=1e-15, abs=0.5 * 10**-decimals * (1 + 1e-9))
        assert not (float(got) == 0 and got.startswith("-"))


@pytest.mark.parametrize(
    ("value", "decimals"),
    [(0, 0), (7, 0), (9.99, 1), (-0.06, 1), (0.04, 2), (4294967295, 0), (4294967296, 0), (42949.67295, 5), (1e15, 3),
     (2.0**53, 0), (-1e22, 2)],
)  # fmt: skip
def test_formatted_numbers_equal_python(value, decimals):
    assert cells(np.array([value]), decimals) == [f"{value:.{decimals}f}"]


def test_nan_and_infinity_are_empty():
    assert cells(np.array([np.nan, 1.5, np.inf, -np.inf]), 1) == ["", "1.5", "", ""]
    assert to_bytes(number(np.array([[np.nan, -2]]), 1, prefix=",")) == b",,-2.0"
    assert number(np.zeros(0), 2).shape[0] == 0
