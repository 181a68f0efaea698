"""COCO and OpenPose JSON, and the Rerun recording."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from pose_fakes import random_result, run_info

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
