"""BVH, TRC, MOT, CSV and angles, read back by strict readers and compared with what went in."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from strict import bvh_places, read_bvh, read_mot, read_trc

from pose.body.joint_angles import NAMES as ANGLES
from pose.body.joint_angles import joint_angles
from pose.body.skeleton import NAMES
from pose.body.skeleton import ORDER as TREE
from pose.body.tracks import Selection
from pose.errors import PoseError
from pose.export import FORMATS, export
from pose.structures.camera import project
from pose.structures.skeletons import BLAZEPOSE33, H36M17
from pose.world.foot_points import foot_joints

GAPS = np.ones((2, 60), bool)
GAPS[0, :7] = GAPS[0, 20:25] = GAPS[0, 40] = False


def written(recording, name, folder, **options):
    made = list(export(recording, [name], folder, "poses", **options))
    return {one.path.name: one for one in made}


def test_bvh_reproduces_joint_positions(recorded, tmp_path):
    recording, places = recorded(60, 2)
    made = written(recording, "bvh", tmp_path)
    assert list(made) == ["poses-person1.bvh", "poses-person2.bvh"]
    for person, name in enumerate(made):
        found = read_bvh((tmp_path / name).read_text())
        assert tuple(found.names) == NAMES
        assert found.frame_time == pytest.approx(1 / 30, abs=1e-6)
        np.testing.assert_allclose(bvh_places(found) / 100, places[person][:, TREE], atol=2e-4)


def test_bvh_reader_of_the_data_sets_agrees(recorded, tmp_path):
    from pose_datasets.bvh import forward_kinematics, parse_bvh

    recording, _ = recorded(40)
    (name,) = written(recording, "bvh", tmp_path)
    text = (tmp_path / name).read_text()
    motion = parse_bvh(text, name)
    positions, _ = forward_kinematics(motion)
    np.testing.assert_allclose(
        positions[:, [motion.names.index(name) for name in NAMES]], bvh_places(read_bvh(text)), atol=1e-9
    )


def test_bvh_gaps_are_interpolated_and_listed(recorded, tmp_path):
    recording, places = recorded(60, 2, present=GAPS)
    made = written(recording, "bvh", tmp_path)
    assert any(
        "6 missing frames are filled, listed in poses-person1.bvh.filled.csv" in n
        for n in made["poses-person1.bvh"].notes
    )
    listed = (tmp_path / "poses-person1.bvh.filled.csv").read_text().splitlines()
    assert listed[0] == "first_frame,last_frame,first_time,last_time"
    assert listed[1:] == ["14,18,0.666667,0.800000", "34,34,1.333333,1.333333"]
    assert not (tmp_path / "poses-person2.bvh.filled.csv").exists()
    got = bvh_places(read_bvh((tmp_path / "poses-person1.bvh").read_text())) / 100
    assert len(got) == 53, "from the first frame with that person on"
    np.testing.assert_allclose(got[~np.isin(np.arange(53), [13, 14, 15, 16, 17, 33])][0], places[0, 7, TREE], atol=2e-4)
    pelvis = got[12:19, 0]
    np.testing.assert_allclose(np.diff(pelvis, axis=0), np.diff(pelvis, axis=0)[:1].repeat(6, 0), atol=3e-4)


def test_trc_contains_joints_and_marks_missing(recorded, tmp_path):
    recording, places = recorded(60, 2, present=GAPS)
    made = written(recording, "trc", tmp_path)
    found = read_trc((tmp_path / "poses-person1.trc").read_text())
    assert tuple(found.names) == H36M17.names
    assert found.times[0] == pytest.approx(7 / 30, abs=1e-6)
    known = GAPS[0, 7:]
    np.testing.assert_allclose(found.values[known], places[0, 7:][known], atol=2e-5)
    assert np.isnan(found.values[~known]).all()
    assert "6 frames are missing and marked so" in made["poses-person1.trc"].notes


def test_mot_columns_equal_the_joint_angles(recorded, tmp_path):
    recording, places = recorded(60, 1)
    written(recording, "mot", tmp_path)
    found = read_mot((tmp_path / "poses-person1.mot").read_text())
    expected = joint_angles(places[0], np.ones((60, 17)), np.array([0, 1.0, 0])).degrees

    def direction(flexion, abduction):
        """Where the limb points: one direction has two pairs of angles, and the file does not jump between them."""
        f, a = np.radians(flexion), np.radians(abduction)
        return np.stack([np.sin(f) * np.cos(a), -np.cos(f) * np.cos(a), np.sin(a)], axis=1)

    def ours(name):
        return expected[:, ANGLES.index(name)]

    def column(name):
        return found.values[:, found.names.index(name)]

    for side in ("left", "right"):
        hip, arm = f"{side}_hip", f"{side}_shoulder"
        for joint, flexion, adduction in ((hip, "hip_flexion", "hip_adduction"), (arm, "arm_flex", "arm_add")):
            got = direction(column(f"{flexion}_{side[0]}"), -column(f"{adduction}_{side[0]}"))
            want = direction(ours(f"{joint}_flexion"), ours(f"{joint}_abduction"))
            np.testing.assert_allclose(got, want, atol=1e-5)
        np.testing.assert_allclose(column(f"knee_angle_{side[0]}"), ours(f"{side}_knee_flexion"), atol=1e-3)
        np.testing.assert_allclose(column(f"elbow_flex_{side[0]}"), ours(f"{side}_elbow_flexion"), atol=1e-3)
    for flexion in ("hip_flexion_l", "hip_flexion_r"):
        np.testing.assert_allclose(
            column(flexion), ours(f"{'left' if flexion[-1] == 'l' else 'right'}_hip_flexion"), atol=1e-3
        )
    assert "hip_rotation_r" not in found.names


def test_csv_has_one_row_per_joint_with_result_values(recorded, tmp_path):
    recording, places = recorded(60, 2, present=GAPS)
    written(recording, "csv", tmp_path)
    with (tmp_path / "poses.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "video",
        "frame",
        "time",
        "person",
        "joint",
        "x",
        "y",
        "z",
        "sigma_mm",
        "root_sigma_mm",
        "score",
        "filled",
        "doubtful",
        "partial",
        "space",
    ]
    assert len(rows) == 17 * GAPS.sum()
    row = next(r for r in rows if (r["frame"], r["person"], r["joint"]) == ("30", "2", "left_wrist"))
    assert row["video"] == 'a "clip".mp4'
    assert (float(row["time"]), row["sigma_mm"], row["score"], row["filled"], row["space"]) == (
        1.0,
        "30.0",
        "0.900",
        "0",
        "camera",
    )
    expected = places[1, 30, H36M17.index("left_wrist")] * (1, -1, -1)
    np.testing.assert_allclose([float(row[axis]) for axis in "xyz"], expected, atol=1e-4)


def test_angles_csv_has_one_row_per_frame_with_deviations(recorded, tmp_path):
    recording, places = recorded(60, 2, present=GAPS)
    written(recording, "angles", tmp_path, people=[1])
    with (tmp_path / "poses-angles.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == GAPS[0].sum()
    expected = joint_angles(places[0], np.full((60, 17), 30.0), np.array([0, 1.0, 0]))
    at = ANGLES.index("left_knee_flexion")
    got = [(int(r["frame"]), float(r["left_knee_flexion_deg"]), float(r["left_knee_flexion_sd"])) for r in rows]
    for frame, degrees, deviation in got:
        assert degrees == pytest.approx(expected.degrees[frame, at], abs=0.02)
        assert deviation == pytest.approx(expected.deviations[frame, at], abs=0.02)


@pytest.mark.parametrize("name", FORMATS)
def test_a_person_seen_in_one_frame_has_a_file(recorded, tmp_path, name):
    _importable(name)
    recording, _ = recorded(60, 2, present=np.stack([np.arange(60) == 31, np.ones(60, bool)]))
    made = written(recording, name, tmp_path, people=[1])
    assert len(made) == 1
    assert all(one.path.exists() for one in made.values())


def _importable(name):
    for module in FORMATS[name].modules:
        pytest.importorskip(module)
    try:
        FORMATS[name].check()
    except PoseError as error:
        pytest.skip(str(error))


def test_skipped_people_are_reported_and_full_disk_leaves_no_file(recorded, tmp_path, monkeypatch):
    recording, _ = recorded(60)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pose.export.bvh.unwrapped_euler", full)
    with pytest.raises(PoseError, match=r"poses-person1.bvh: No space left on device"):
        written(recording, "bvh", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["poses.npz"]


def test_tables_have_heels_toes_and_ankle_angles_where_the_image_shows_them(recorded, tmp_path):
    recording, _ = recorded(6, 1)
    table, feet = recording.table, foot_joints(BLAZEPOSE33)
    body = (table.joints3d + table.root[:, None]).astype(float)
    ahead = np.stack([body[:, [6, 3]]] * 3, axis=2)
    ahead[:, :, 1:, 1] += 0.07
    ahead[:, :, 1:, 0] += [-0.06, 0.16]  # toes to the right of the image
    keypoints, scores = np.zeros((6, 33, 2), np.float32), np.zeros((6, 33), np.float32)
    keypoints[:, feet], scores[:, feet] = project(ahead, table.camera.matrix), 0.9
    scores[0, feet[1, 2]] = 0
    table = replace(table, skeleton=BLAZEPOSE33).with_columns(keypoints=keypoints, scores=scores)
    list(export(Selection(table, "clip.mp4"), ["csv", "angles"], tmp_path, "poses"))
    with (tmp_path / "poses.csv").open() as file:
        lines = list(csv.DictReader(file))
    toes, heels, ankles = (
        [line for line in lines if line["joint"] == f"left_{name}"] for name in ("big_toe", "heel", "ankle")
    )
    assert [int(line["frame"]) for line in toes] == [1, 2, 3, 4, 5]
    for toe, heel, ankle in zip(toes, heels, ankles[1:], strict=True):
        assert float(toe["x"]) > float(heel["x"])
        away = np.linalg.norm([float(toe[axis]) - float(ankle[axis]) for axis in "xyz"])
        assert 0.1 < away < 0.3
        assert float(toe["sigma_mm"]) > float(heel["sigma_mm"]) > float(ankle["sigma_mm"])
        assert toe["score"] == "0.900"
    with (tmp_path / "poses-angles.csv").open() as file:
        angles = list(csv.DictReader(file))
    assert [line["right_ankle_flexion_deg"] != "" for line in angles] == [False, *[True] * 5]
    assert {line["left_ankle_flexion_sd"] for line in angles} == {"10.00"}
