"""`pose-lift` with recordings of inertial sensors, as a user calls it."""

import zipfile

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.lift import main

from pose.results import load_poses
from pose.structures.skeletons import H36M17


@pytest.fixture
def walk(shared):
    return str(shared / "mocap/imu/lower-body-walk.zip")


def test_recording_becomes_a_result_with_joint_angles(walk, tmp_path, capsys):
    out = tmp_path / "walk.npz"
    assert main([walk, "--out", str(out), "--height", "1.75"]) == 0
    assert "sensors on pelvis, left_thigh" in capsys.readouterr().out
    with np.load(out, allow_pickle=False) as result:
        assert result["angles"].shape == (len(result["timestamps"]), len(result["angle_names"]))
        knee = result["angles"][:, list(result["angle_names"]).index("left_knee_flexion")]
        assert result["sensors"][H36M17.index("left_ankle")] == "pelvis left_thigh left_shank"
    assert 100 < knee.max() < 140
    table = load_poses(out)
    assert table.placed is not None
    assert table.placed.joints[..., 1].min() >= 0
    assert table.world_info.heights == {1: (1.75, 0.0)}


def test_result_of_sensors_can_be_converted(walk, tmp_path):
    from pose_apps.convert import main as convert

    assert main([walk, "--out", str(tmp_path / "walk.npz"), "--quiet"]) == 0
    assert convert([str(tmp_path / "walk.npz"), "--to", "bvh,csv", "--out", str(tmp_path / "files"), "--quiet"]) == 0
    assert {path.suffix for path in (tmp_path / "files").iterdir()} >= {".bvh", ".csv"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["keypoints.npz"], "give 2D keypoints and recordings of inertial sensors in separate calls"),
        (["--fps", "30"], "apply only to JSON keypoints"),
        (["--height", "2:1.7"], "no person has the id 2"),
    ],
)
def test_options_that_do_not_apply_are_refused(options, message, walk, tmp_path, capsys):
    np.savez(tmp_path / "keypoints.npz")
    words = [str(tmp_path / word) if word.endswith(".npz") else word for word in options]
    assert main([walk, *words, "--out", str(tmp_path)]) == 2
    assert message in error_line(capsys)


def test_zip_file_without_sensors_is_not_taken_for_a_recording(tmp_path, capsys):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    assert main([str(tmp_path / "a.zip"), "--out", str(tmp_path / "a.npz")]) != 0
    assert "a.zip" in error_line(capsys)
