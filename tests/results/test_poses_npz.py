"""`poses.npz` and its reader."""

import json

import numpy as np
import pytest
from pose_fakes import random_result, run_info

from pose.errors import PoseError, UsageError
from pose.results import NpzWriter, load_poses
from pose.results.schema import ROW_COLUMNS
from pose.structures.skeletons import H36M17


def _write(path, results, complete=True):
    writer = NpzWriter(path, run_info())
    for result in results:
        writer.write(result)
    writer.close(complete)


def test_npz_round_trips_bit_for_bit(tmp_path, rng):
    results = [random_result(rng, i, n) for i, n in enumerate([0, 2, 0, 3, 1])]
    _write(tmp_path / "poses.npz", results)
    table = load_poses(tmp_path / "poses.npz")
    assert len(table) == 5
    for want, have in zip(results, table, strict=True):
        assert (have.index, have.time, len(have.people)) == (want.index, want.time, len(want.people))
        for name in ("ids", "boxes", "box_scores", "keypoints", "scores"):
            assert np.array_equal(getattr(have.people, name), getattr(want.people, name)), name
        for name in ("joints", "root", "sigma", "swapped", "ahead"):
            assert np.array_equal(getattr(have.poses, name), getattr(want.poses, name)), name


def test_pose_table_has_every_npz_key(tmp_path, rng):
    _write(tmp_path / "poses.npz", [random_result(rng, 4, 2), random_result(rng, 5, 0), random_result(rng, 6, 1)])
    table = load_poses(tmp_path / "poses.npz")
    with np.load(tmp_path / "poses.npz") as file:
        for name in file.files:
            have = {"image_size": table.camera.size, "intrinsics": table.camera.matrix}.get(name)
            want, have = file[name], getattr(table, name) if have is None else have
            if name == "run":
                assert have.to_dict() == json.loads(str(want))
            else:
                assert np.array_equal(have.name if name == "skeleton" else have, want), name
    assert table.time.tolist() == [4 / 25, 4 / 25, 6 / 25]


@pytest.mark.parametrize("name", [one.name for one in ROW_COLUMNS if not one.required and not one.part])
def test_file_of_an_older_version_lacks_a_column(tmp_path, rng, name):
    _write(tmp_path / "poses.npz", [random_result(rng, 4, 2)])
    with np.load(tmp_path / "poses.npz") as file:
        np.savez(tmp_path / "old.npz", **{key: file[key] for key in file.files if key != name})
    table = load_poses(tmp_path / "old.npz")
    assert not getattr(table, name).any()
    assert len(table[0].people) == 2


def test_unfinished_older_arrays_are_finished(tmp_path, rng):
    scratch = tmp_path / "unfinished"
    writer = NpzWriter(tmp_path / "poses.npz", run_info(), scratch)
    writer.write(random_result(rng, 0, 2))
    for spool in writer._columns.files.values():  # as the end of its process would
        spool.close()
    (scratch / "ahead").unlink()
    left = NpzWriter(tmp_path / "poses.npz", run_info(), scratch)
    assert left.frames == 1
    left.close(complete=False)
    table = load_poses(tmp_path / "poses.npz")
    assert (len(table.id), table.ahead.tolist()) == (2, [0, 0])


def test_the_documented_keys_without_pickle(tmp_path, rng):
    _write(tmp_path / "poses.npz", [random_result(rng, 4, 2), random_result(rng, 5, 0)])
    with np.load(tmp_path / "poses.npz", allow_pickle=False) as file:
        arrays = dict(file)
    kinds = {name: (array.dtype.kind, array.dtype.itemsize, array.shape) for name, array in arrays.items()}
    for name, shape in {"box": (2, 4), "keypoints": (2, 33, 2), "joints3d": (2, 17, 3), "sigma": (2, 17)}.items():
        assert kinds[name] == ("f", 4, shape)
    assert kinds["timestamps"] == ("f", 8, (2,))
    assert arrays["frames"].tolist() == [4, 5]
    assert arrays["frame_index"].tolist() == [4, 4]
    assert arrays["image_size"].tolist() == [640, 480]
    assert str(arrays["skeleton"]) == "blazepose33"
    assert arrays["joint_names"].tolist() == list(H36M17.names)
    assert arrays["fps"] == 25.0
    assert json.loads(str(arrays["run"]))["camera"]["status"] == "assumed"
    assert "O" not in {kind for kind, *_ in kinds.values()}


def test_result_without_frames_is_written(tmp_path):
    _write(tmp_path / "poses.npz", [], complete=False)
    table = load_poses(tmp_path / "poses.npz")
    assert len(table) == 0
    assert table.keypoints.shape == (0, 33, 2)
    assert table.complete is False


def test_interrupted_npz_write_drops_the_partial_frame(tmp_path, rng, monkeypatch):
    path = tmp_path / "poses.npz"
    writer = NpzWriter(path, run_info())
    writer.write(random_result(rng, 0, 2))

    def interrupted(first, rows):
        raise KeyboardInterrupt

    monkeypatch.setattr(writer._columns.files["keypoints"], "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        writer.write(random_result(rng, 1, 3))
    writer.close(complete=False)
    table = load_poses(path)
    assert (table.frames.tolist(), table.id.tolist(), len(table.box)) == ([0], [7, 8], 2)
    assert table.complete is False


def test_pose_lift_output_is_read_as_one_person(tmp_path, rng):
    joints = rng.normal(size=(6, 17, 3)).astype(np.float32)
    root = rng.normal(size=(6, 3)).astype(np.float32)
    np.savez(
        tmp_path / "lifted.npz",
        joints3d=joints,
        root=root,
        sigma=np.ones((6, 17), np.float32),
        timestamps=np.arange(6) / 30,
    )
    table = load_poses(tmp_path / "lifted.npz")
    assert len(table) == 6
    assert np.array_equal(table[4].poses.joints[0], joints[4])
    assert np.array_equal(table[4].poses.root[0], root[4])
    assert np.array_equal(table.time, np.arange(6) / 30)
    assert (table.fps, table.run, table.format_version) == (None, None, None)
    assert table[4].time == 4 / 30
    assert not table.scores.any()


def _text(path):
    path.write_text("no archive")


def _other_keys(path):
    np.savez(path, colours=np.zeros(3))


def _single_array(path):
    with path.open("wb") as file:
        np.save(file, np.zeros(3))


def _pickled(path):
    np.savez(path, joints3d=np.array([{}], object), timestamps=np.zeros(1))


def _wrong_shape(path):
    np.savez(
        path, joints3d=np.zeros((2, 16, 3)), root=np.zeros((2, 3)), sigma=np.zeros((2, 17)), timestamps=np.zeros(2)
    )


def _newer(path):
    np.savez(path, format_version=np.array(3))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (_text, "not a readable .npz file"),
        (_other_keys, "has no array 'timestamps'"),
        (_single_array, "contains a single array"),
        (_pickled, "contains pickled objects"),
        (_wrong_shape, r"'joints3d': expected shape \(2, 17, 3\), got \(2, 16, 3\)"),
        (_newer, "has format version 3"),
    ],
)
def test_invalid_npz_gives_a_one_line_error(tmp_path, make, message):
    path = tmp_path / "poses.npz"
    make(path)
    with pytest.raises(PoseError, match=message) as caught:
        load_poses(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


def test_truncated_npz_gives_a_one_line_error(tmp_path, rng):
    path = tmp_path / "poses.npz"
    _write(path, [random_result(rng, 0, 1)])
    path.write_bytes(path.read_bytes()[:-400])
    with pytest.raises(PoseError, match="not a readable"):
        load_poses(path)


def test_missing_npz_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        load_poses(tmp_path / "none.npz")
