"""Protocol V: what is read, projected, left out and refused; and the same files made from the raw release."""

import pickle

import numpy as np
import pytest
from benchmark_files import (
    CAMERA_DATA,
    KEPT,
    raw_32,
    slow_camera_point,
    slow_pixel,
    walker,
    write_protocol_v,
    write_raw_release,
)
from pose_datasets import human36m, human36m_release
from pose_datasets.pickles import load_npz_object, load_pickle

from pose.errors import PoseError, UsageError

TAKES = {"S9": {"Directions 1": 20, "Photo": 12}, "S11": {"Directions": 9, "Walking 1": 15}}


@pytest.fixture
def folder(tmp_path):
    return write_protocol_v(tmp_path / "h36m", TAKES)


def rewrite(folder, name, key, change):
    """Apply `change` to the dictionary under `key` of one of the files."""
    contents = dict(np.load(folder / name, allow_pickle=True))
    table = contents[key].item()
    change(table)
    np.savez(folder / name, **{**contents, key: table})


def test_sequences_of_the_test_subjects(folder):
    sequences = human36m.load_sequences(folder, "cpn")
    cameras = ["54138969", "55011271", "58860488", "60457274"]
    expected = [f"{take}/{camera}" for take in ("S9/Directions 1", "S9/Photo", "S11/Walking 1") for camera in cameras]
    assert [sequence.key for sequence in sequences] == expected
    assert [len(sequence) for sequence in sequences] == [20] * 4 + [12] * 4 + [15] * 4
    assert {sequence.action for sequence in sequences} == {"Directions", "Photo", "Walking"}
    assert sequences[0].observed.camera.size == (1000, 1002)
    assert sequences[1].observed.camera.size == (1000, 1000)
    assert np.allclose(np.diff(sequences[0].observed.times), 1 / 50)


def test_ground_truth_is_in_the_camera_frame(folder):
    sequence = human36m.load_sequences(folder, "gt")[2]
    place = CAMERA_DATA["extrinsics"]["S9"][2]
    for frame, joint in [(0, 0), (7, 3), (19, 13)]:
        expected = slow_camera_point(walker(20)[frame, joint], place)
        assert np.allclose(sequence.truth[frame, joint], expected, atol=2e-6)


@pytest.mark.parametrize("index", range(4))
def test_projection_equals_the_published_formula(index):
    points = walker(5)
    points[0, 0] += [4.0, 4.0, 3.0]  # so far out that x = X / Z is clamped in some camera
    camera = human36m.load_cameras()["S11"][index]
    found = camera.project(camera.to_camera(points))
    expected = [[slow_pixel(point, "S11", index) for point in pose] for pose in points]
    assert np.abs(found - expected).max() < 1e-9


def test_observed_pixels_are_undistorted(folder):
    """With ground-truth 2D the lifter gets exactly the pinhole projection of the truth."""
    for sequence in human36m.load_sequences(folder, "gt"):
        lens = sequence.observed.camera.matrix
        ideal = sequence.truth @ lens.T
        assert np.abs(ideal[..., :2] / ideal[..., 2:] - sequence.observed.keypoints).max() < 2e-3


def test_undistortion_inverts_distortion():
    grid = np.stack(np.meshgrid(np.linspace(0, 1000, 21), np.linspace(0, 1002, 21)), axis=-1)
    for camera in human36m.load_cameras()["S1"]:
        ideal = camera.undistort(grid)
        rays = (ideal - camera.centre) / camera.focal
        assert np.abs(camera.distort(rays) * camera.focal + camera.centre - grid).max() < 1e-6


def test_prepared_data_equal_the_public_preparation(tmp_path):
    release = write_raw_release(
        tmp_path / "raw", {"S1": {"WalkingDog 1": 6}, "S11": {"Directions": 4, "Directions 1": 5, "TakingPhoto": 7}}
    )
    said = []
    path_3d, path_2d = human36m_release.prepare(release, tmp_path / "out", said.append)
    positions = np.load(path_3d, allow_pickle=True)["positions_3d"].item()
    assert {subject: sorted(takes) for subject, takes in positions.items()} == {
        "S1": ["WalkDog 1"],
        "S11": ["Directions 1", "Photo"],  # the base take of S11/Directions has a camera without video
    }
    public = (raw_32(walker(7)) * 1000).astype(np.float32)
    public /= 1000
    assert positions["S11"]["Photo"].dtype == np.float32
    assert np.array_equal(positions["S11"]["Photo"], public)
    file_2d = np.load(path_2d, allow_pickle=True)
    views = file_2d["positions_2d"].item()["S11"]["Photo"]
    expected = [[slow_pixel(point, "S11", 1) for point in pose] for pose in public[:, KEPT].astype(float)]
    assert len(views) == 4
    assert views[1].dtype == np.float32
    assert np.abs(views[1] - expected).max() < 1e-3
    assert file_2d["metadata"].item() == {
        "layout_name": "h36m",
        "num_joints": 17,
        "keypoints_symmetry": [[4, 5, 6, 11, 12, 13], [1, 2, 3, 14, 15, 16]],
    }
    assert "S11: 3 takes; the whole release has 30" in said
    assert "S5: 0 takes; the whole release has 30" in said


def set_value(subject, take, make):
    def change(table):
        table[subject][take] = make(table[subject][take])

    return change


def broken(array, value):
    array = array.copy()
    array[3, 2] = value
    return array


FILE_3D, FILE_GT = "data_3d_h36m.npz", "data_2d_h36m_gt.npz"
IN_3D, IN_2D = (FILE_3D, "positions_3d"), (FILE_GT, "positions_2d")


def photo(make):
    """Change the take S9/Photo."""
    return set_value("S9", "Photo", make)


def every(make):
    """Change each camera's view of S9/Photo."""
    return photo(lambda views: [make(view) for view in views])


BAD_FILES = {
    "millimetres": (IN_3D, photo(lambda x: x * 1000), "S9/Photo.*these look like millimetres"),
    "joints": (IN_3D, photo(lambda x: x[:, :17]), r"S9/Photo: expected \(T, 32, 3\), got \(12, 17, 3\)"),
    "nan": (IN_3D, photo(lambda x: broken(x, np.nan)), "S9/Photo: contains NaN"),
    "subject": (IN_3D, lambda x: x.update(S99={}), "unknown subject 'S99'; known: S1, S5"),
    "action": (IN_3D, lambda x: x["S9"].update({"Juggling 1": 0}), "unknown action 'Juggling 1'; known: Dir"),
    "no subject": (IN_3D, lambda x: x.pop("S9"), r"data_3d_h36m\.npz: S9 is missing; found: S11"),
    "2D shorter": (IN_2D, every(lambda x: x[:9]), "S9/Photo/54138969: 2D has 9 frames, 3D has 12"),
    "lists": (IN_3D, photo(lambda x: [0.0]), r"S9/Photo: expected \(T, 32, 3\), got list"),
    "text": (IN_3D, photo(lambda x: np.full((12, 32, 3), "x")), "S9/Photo: expected numbers, got <U1"),
    "2D joints": (IN_2D, every(lambda x: x[:, :16]), r"2D: expected \(T, 17, 2\), got \(12, 16, 2\)"),
    "2D unit": (IN_2D, every(lambda x: x / 500 - 1), "S9/Photo/54138969, 2D: expected pixels, but the person is 0"),
    "2D nan": (IN_2D, every(lambda x: broken(x, np.nan)), "S9/Photo/54138969: the 2D contains NaN"),
    "cameras": (IN_2D, photo(lambda x: x[:3]), "S9/Photo: expected 2D from 4 cameras, got 3"),
    "take": (IN_2D, lambda x: x["S9"].pop("Photo"), "S9: Photo is missing; found: Directions 1"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_invalid_files_are_rejected(folder, case):
    place, change, message = BAD_FILES[case]
    rewrite(folder, *place, change)
    with pytest.raises(PoseError, match=message):
        human36m.load_sequences(folder, "gt")


@pytest.mark.parametrize(
    ("name", "detections", "how"),
    [
        (FILE_3D, "gt", "pose-prepare human36m --source"),
        (FILE_GT, "gt", "pose-prepare human36m --source"),
        ("data_2d_h36m_cpn_ft_h36m_dbb.npz", "cpn", "VideoPose3D"),
    ],
)
def test_missing_file_names_the_preparation_command(folder, name, detections, how):
    (folder / name).unlink()
    with pytest.raises(UsageError, match=f"{name} is missing: .*{how}"):
        human36m.load_sequences(folder, detections)


def test_missing_release_is_rejected(tmp_path):
    with pytest.raises(UsageError, match="no S1/MyPoseFeatures/D3_Positions"):
        human36m_release.prepare(tmp_path, tmp_path / "out", lambda line: None)


def test_file_that_is_not_a_cdf_is_rejected(tmp_path):
    release = write_raw_release(tmp_path / "raw", {"S9": {"Sitting": 4}})
    (release / "S9" / "MyPoseFeatures" / "D3_Positions" / "Sitting.cdf").write_text("text")
    with pytest.raises(PoseError, match=r"Sitting\.cdf: not a readable CDF file"):
        human36m_release.prepare(release, tmp_path / "out", lambda line: None)
    assert not (tmp_path / "out" / FILE_3D).exists()


class Malicious:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return open, (str(self.target), "w")


def test_pickled_code_is_rejected_and_not_executed(tmp_path):
    target = tmp_path / "harm"
    np.savez(tmp_path / "bad.npz", positions_3d={"S9": {"Photo": Malicious(target)}})
    (tmp_path / "bad.pkl").write_bytes(pickle.dumps({"train": Malicious(target)}))
    with pytest.raises(PoseError, match=r"bad.npz: refused because it refers to \w+.open; only NumPy arrays"):
        load_npz_object(tmp_path / "bad.npz", "positions_3d")
    with pytest.raises(PoseError, match=r"bad.pkl: refused because it refers to \w+.open; only NumPy arrays"):
        load_pickle(tmp_path / "bad.pkl")
    assert not target.exists()


@pytest.mark.parametrize("protocol", range(6))
def test_arrays_of_every_pickle_protocol_are_read(tmp_path, protocol):
    contents = {
        "float": np.arange(6, dtype=np.float32).reshape(2, 3),
        "turned": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "text": np.array(["a", "bcd"]),
        "objects": np.array(["a", 2], dtype=object),
        "scalar": np.float64(2.5),
        "list": [1, (2, "x"), {3}, b"\x00\xff", None],
    }
    (tmp_path / "good.pkl").write_bytes(pickle.dumps(contents, protocol))
    found = load_pickle(tmp_path / "good.pkl")
    for name in ("float", "turned", "text", "objects"):
        assert np.array_equal(found[name], contents[name])
        assert found[name].dtype == contents[name].dtype
    assert found["scalar"] == 2.5
    assert found["list"] == contents["list"]


@pytest.mark.parametrize("content", [b"", b"no pickle", pickle.dumps({"x": np.arange(3.0)})[:-20]])
def test_damaged_pickle_gives_a_one_line_error(tmp_path, content):
    (tmp_path / "bad.pkl").write_bytes(content)
    with pytest.raises(PoseError, match=r"bad\.pkl: not a readable pickle"):
        load_pickle(tmp_path / "bad.pkl")


def test_damaged_npz_gives_a_one_line_error(tmp_path, folder):
    (folder / FILE_3D).write_bytes(b"text")
    with pytest.raises(PoseError, match=r"data_3d_h36m\.npz: not a readable .npz file"):
        human36m.read_positions_3d(folder)
    np.savez(folder / FILE_3D, other=np.zeros(3))
    with pytest.raises(PoseError, match="contains no array 'positions_3d'; found other"):
        human36m.read_positions_3d(folder)
