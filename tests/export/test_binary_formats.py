"""GLB, C3D and Parquet, read back by libraries that are not ours."""

import json
import struct

import numpy as np
import pytest
from glb_reader import Glb

from pose.body.rigs import STICKS
from pose.body.skeleton import NAMES, ORDER
from pose.export import Selection, export
from pose.results import Recording
from pose.structures.skeletons import H36M17

GAPS = np.ones((2, 60), bool)
GAPS[0, :7] = GAPS[0, 20:25] = GAPS[0, 40] = GAPS[0, 55:] = False


def write(recording, name, folder, people=None):
    (made,) = export(recording, [name], folder, "poses", people)
    return made


def test_glb_chunks_follow_the_specification(recorded, tmp_path):
    recording, _ = recorded(60, 2)
    data = write(recording, "glb", tmp_path).path.read_bytes()
    magic, version, total = struct.unpack("<4sII", data[:12])
    assert (magic, version, total) == (b"glTF", 2, len(data))
    length, kind = struct.unpack("<I4s", data[12:20])
    assert (kind, length % 4) == (b"JSON", 0)
    document = json.loads(data[20 : 20 + length])
    size, kind = struct.unpack("<I4s", data[20 + length : 28 + length])
    assert (kind, size % 4, 28 + length + size) == (b"BIN\0", 0, len(data))
    assert document["buffers"] == [{"byteLength": size}]
    assert "camera frame" in document["asset"]["extras"]["space"]


def test_glb_joints_are_at_their_positions(recorded, tmp_path):
    recording, places = recorded(60, 2, present=GAPS)
    recording.rig = STICKS
    glb = Glb(write(recording, "glb", tmp_path).path)
    assert [skin.name for skin in glb.gltf.skins] == ["person1", "person2"]
    for person in range(2):
        got, times = glb.places(person)
        frames = np.flatnonzero(GAPS[person])
        np.testing.assert_allclose(times, frames / 30, atol=1e-6)
        np.testing.assert_allclose(got, places[person, frames][:, ORDER], atol=2e-4)
        bones = [glb.gltf.nodes[joint].name for joint in glb.gltf.skins[person].joints]
        assert bones == [f"person{person + 1}_{name}" for name in NAMES]


def test_glb_hides_absent_people(recorded, tmp_path):
    recording, _ = recorded(60, 2, present=GAPS)
    made = write(recording, "glb", tmp_path)
    glb = Glb(made.path)
    channels = glb.channels()
    for person in range(2):
        node = next(i for i, n in enumerate(glb.gltf.nodes) if n.name == f"person{person + 1}")
        times, scales, kind = channels[node, "scale"]
        assert kind == "STEP"
        at = np.searchsorted(times, np.arange(60) / 30 + 1e-4, side="right") - 1
        np.testing.assert_array_equal(scales[at], np.repeat(GAPS[person][:, None], 3, axis=1))
    assert "1 of 2 people are hidden (scale 0) in their gaps" in made.notes


def test_glb_skin_and_mesh_agree_with_the_rest_pose(recorded, tmp_path):
    recording, _ = recorded(60)
    recording.rig = STICKS
    glb = Glb(write(recording, "glb", tmp_path).path)
    (skin,), nodes = glb.gltf.skins, glb.gltf.nodes
    assert not any(nodes[joint].matrix for joint in skin.joints)
    inverse = glb.values(skin.inverseBindMatrices).reshape(-1, 4, 4).transpose(0, 2, 1)
    rest = dict(zip(skin.joints, np.linalg.inv(inverse)[:, :3, 3], strict=True))
    attributes = glb.gltf.meshes[0].primitives[0].attributes
    joints, weights = glb.values(attributes.JOINTS_0), glb.values(attributes.WEIGHTS_0)
    np.testing.assert_array_equal(weights.sum(axis=1), 1)
    assert joints.max() < len(skin.joints)
    assert glb.values(glb.gltf.meshes[0].primitives[0].indices).max() < len(joints)
    # Every stick begins at the joint that it hangs on.
    starts = glb.values(attributes.POSITION)[::6]
    places = np.stack([rest[skin.joints[int(j)]] for j in joints[::6, 0]])
    np.testing.assert_allclose(starts, places, atol=1e-5)


def test_c3d_marks_missing_points_and_keeps_millimetres(recorded, tmp_path):
    ezc3d = pytest.importorskip("ezc3d")
    recording, places = recorded(60, 2, present=GAPS)
    made = write(recording, "c3d", tmp_path, people=[1])
    file = ezc3d.c3d(str(made.path))
    point = file["parameters"]["POINT"]
    assert tuple(point["LABELS"]["value"]) == H36M17.names
    assert (point["UNITS"]["value"], point["RATE"]["value"][0]) == (["mm"], 30)
    assert (point["X_SCREEN"]["value"], point["Y_SCREEN"]["value"]) == (["+X"], ["+Y"])
    points, residuals = file["data"]["points"], file["data"]["meta_points"]["residuals"][0]
    known = GAPS[0, 7:55]
    np.testing.assert_allclose(points[:3].transpose(2, 1, 0)[known], 1000 * places[0, 7:55][known], atol=0.01)
    assert (residuals[:, known] == 0).all()
    assert (residuals[:, ~known] == -1).all()


@pytest.mark.parametrize("reader", ["ezc3d", pytest.param("c3d", marks=pytest.mark.slow)])
def test_a_long_c3d_is_read_whole(reader, tmp_path):
    """More frames than the header can count: TRIAL:ACTUAL_END_FIELD, or the end of the file, says how many."""
    library = pytest.importorskip(reader)
    made = write(Selection(long_table(65_540), "long"), "c3d", tmp_path)
    if reader == "ezc3d":
        points = library.c3d(str(made.path))["data"]["points"]
        count, last = points.shape[2], points[:3, 0, -1]
    else:
        with made.path.open("rb") as file, pytest.warns(UserWarning, match="No analog data"):
            *_, (count, points, _) = library.Reader(file).read_frames()
        last = points[0, :3]
    assert count == 65_540
    np.testing.assert_allclose(last, (65_539, 0, -3000), atol=0.01)
    assert "more than 65535 frames: some programs read only that many" in made.notes


@pytest.mark.parametrize("rig", ["plain", "sticks"])
def test_glb_bones_point_along_the_limbs_at_rest(recorded, tmp_path, rig):
    """Blender draws a bone along the y axis of its node: with identities all bones pointed up."""
    recording, _ = recorded(20, 2)
    recording.rig = rig
    glb = Glb(write(recording, "glb", tmp_path).path)
    bones, moved = glb.bones(0)
    limbs = {name.partition("_")[2]: direction for name, direction in bones.items()}
    for name, along in {"left_hip": -1, "right_knee": -1, "spine": 1, "pelvis": 1, "neck": 1}.items():
        assert limbs[name][1] * along > 0.8, name
    assert (limbs["left_elbow"][0], limbs["right_shoulder"][0]) == (pytest.approx(1, 0.05), pytest.approx(-1, 0.05))
    np.testing.assert_allclose(moved, np.tile(np.eye(4), (len(moved), 1, 1)), atol=1e-6, err_msg="the mesh at rest")
    assert [animation.name for animation in glb.gltf.animations] == ["all", "person1", "person2"]


def long_table(frames):
    """A person who glides to the right, a millimetre a frame."""
    at, one = np.arange(frames), np.ones(frames, np.float32)
    root = np.stack([at / 1000, 0 * one, 3 * one], axis=1).astype(np.float32)
    joints, flat = np.zeros((frames, 17, 3), np.float32), np.zeros((frames, 17, 2), np.float32)
    columns = {
        "frames": at, "timestamps": at / 30, "frame_index": at, "time": at / 30, "id": np.ones(frames, np.int64),
        "box": np.zeros((frames, 4), np.float32), "box_score": one, "keypoints": flat, "scores": flat[..., 0],
        "joints3d": joints, "root": root, "sigma": flat[..., 0], "swapped": np.zeros((frames, 2), bool),
        "ahead": 0 * one, "seen_by": np.zeros((frames, 17), np.uint8),
    }  # fmt: skip
    return Recording(columns=columns, skeleton=H36M17)


def test_parquet_equals_csv_with_types(recorded, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    import csv

    recording, _ = recorded(60, 2, present=GAPS, space="world")
    write(recording, "csv", tmp_path)
    table = parquet.read_table(write(recording, "parquet", tmp_path).path)
    with (tmp_path / "poses.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert table.column_names == list(rows[0])
    for name in ("video", "joint", "space"):
        assert table[name].to_pylist() == [row[name] for row in rows]
    for name in ("frame", "time", "person", "x", "y", "z", "sigma_mm", "root_sigma_mm", "score", "filled"):
        expected = [float(row[name] or "nan") for row in rows]
        np.testing.assert_allclose(table[name].to_numpy().astype(float), expected, atol=1e-3)
    assert table.schema.metadata[b"units"] == b"m, mm, s"


def test_missing_library_names_its_extra(recorded, monkeypatch):
    from pose.errors import PoseError
    from pose.export import check_formats

    monkeypatch.setattr("pose.export.find_spec", lambda name: None)
    with pytest.raises(PoseError, match=r"format parquet needs pyarrow: pip install 'pose-run\[formats\]'"):
        check_formats(["bvh", "c3d", "parquet"], "--to")
