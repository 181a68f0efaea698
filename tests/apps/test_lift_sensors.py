"""`pose-lift` with skeletons of depth cameras and suits, as a user calls it."""

import zipfile

import numpy as np
import pytest
import sensor_files as files
from command_errors import error_line
from pose_apps.lift import main

from pose.results import load_poses


@pytest.fixture
def kinect(shared, tmp_path):
    with zipfile.ZipFile(shared / "mocap/ui-prmd/kinect-s09.zip") as archive:
        for kind in ("positions", "angles"):
            name = f"m07_s09_e02_{kind}.txt"
            (tmp_path / name).write_bytes(archive.read(name))
    return tmp_path / "m07_s09_e02_positions.txt"


def test_depth_camera_is_corrected_by_default(kinect, tmp_path, capsys):
    assert main([str(kinect), "--out", str(tmp_path / "a.npz")]) == 0
    assert "corrected by the sensor network" in capsys.readouterr().out
    assert main([str(kinect), "--out", str(tmp_path / "b.npz"), "--no-sensor-network"]) == 0
    assert "not corrected" in capsys.readouterr().out
    corrected, raw = (np.load(tmp_path / f"{name}.npz", allow_pickle=False) for name in "ab")
    np.testing.assert_allclose(corrected["timestamps"], raw["timestamps"])
    third = [np.linalg.norm(np.diff(file["joints3d"], n=3, axis=0), axis=-1).mean() for file in (corrected, raw)]
    assert third[0] < 0.5 * third[1]
    # The pelvis is 2 to 3 m in front of the camera, feet are on the floor.
    assert 1.5 < corrected["root"][:, 2].mean() < 4
    assert abs(corrected["world"][..., 1].min() - 0.08) < 0.05
    assert corrected["sensors"].tolist() == ["depth camera"] * 17
    assert load_poses(tmp_path / "a.npz").placed is not None


def test_result_of_a_depth_camera_can_be_converted(kinect, tmp_path):
    from pose_apps.convert import main as convert

    assert main([str(kinect), "--out", str(tmp_path / "a.npz"), "--quiet"]) == 0
    assert convert([str(tmp_path / "a.npz"), "--to", "bvh,csv", "--out", str(tmp_path / "files"), "--quiet"]) == 0
    assert {path.suffix for path in (tmp_path / "files").iterdir()} >= {".bvh", ".csv"}


def test_each_body_of_a_file_gets_its_own_result(tmp_path):
    files.write_azure(tmp_path / "bodies.json", {3: files.body(), 7: files.body(1)})
    assert main([str(tmp_path / "bodies.json"), "--out", str(tmp_path / "a.npz"), "--height", "7:1.8"]) == 0
    assert load_poses(tmp_path / "a-person7.npz").world_info.heights == {1: (1.8, 0.0)}
    assert load_poses(tmp_path / "a-person3.npz").world_info.heights == {}


def test_suit_is_not_corrected(tmp_path, capsys):
    files.write_bvh(tmp_path / "suit.bvh", files.body())
    assert main([str(tmp_path / "suit.bvh"), "--out", str(tmp_path / "a.npz")]) == 0
    assert "as recorded" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["keypoints.npz"], "give 2D keypoints and skeletons of sensors in separate calls"),
        (["--fps", "30"], "apply only to JSON keypoints"),
        (["--imu-heading", "30"], "applies only to recordings of inertial sensors"),
        (["--height", "2:1.7"], "no person has the id 2"),
    ],
)
def test_options_that_do_not_apply_are_refused(options, message, tmp_path, capsys):
    files.write_bvh(tmp_path / "suit.bvh", files.body())
    np.savez(tmp_path / "keypoints.npz")
    words = [str(tmp_path / word) if word.endswith(".npz") else word for word in options]
    assert main([str(tmp_path / "suit.bvh"), *words, "--out", str(tmp_path)]) == 2
    assert message in error_line(capsys)


def test_network_cannot_be_switched_off_for_keypoints(tmp_path, capsys):
    np.savez(tmp_path / "keypoints.npz")
    assert main([str(tmp_path / "keypoints.npz"), "--no-sensor-network"]) == 2
    assert "applies only to skeletons of depth cameras" in error_line(capsys)
