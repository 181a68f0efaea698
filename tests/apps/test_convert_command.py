"""`pose-convert` as a person calls it."""

import numpy as np
import pytest
from pose_apps.convert import main
from pose_fakes import run_info, seen_result

from pose.files import NpzWriter
from pose.skeletons import H36M17


@pytest.fixture
def poses(tmp_path):
    """Two people for two seconds; the second is there for one of them."""
    path = tmp_path / "poses.npz"
    with NpzWriter(path, run_info(H36M17)) as writer:
        for frame in range(50):
            people = [(0, 0, 4), (1, 0, 5)] if frame >= 25 else [(0, 0, 4)]
            writer.write(seen_result(people, index=frame, time=frame / 25))
    return path


def test_files_appear_where_they_were_asked_for(poses, tmp_path, capsys):
    out = tmp_path / "deep" / "out"
    assert main([str(poses), "--to", "bvh,trc, csv", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "poses-person1.bvh", "poses-person1.trc", "poses-person2.bvh", "poses-person2.trc", "poses.csv",
    ]  # fmt: skip
    said = capsys.readouterr().out
    assert "space: camera frame" in said
    assert "poses-person2.bvh: 25 frames at 25 frames/s, the first at 1.000 s (frame 26 of all); centimetres" in said


def test_person_time_and_rate_are_chosen(poses, tmp_path, capsys):
    assert main([str(poses), "--to", "trc", "--person", "2", "--start", "1.2", "--end", "1.6", "--fps", "50"]) == 0
    assert "19 frames at 50 frames/s, resampled, the first at 1.200 s" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".trc"] == ["poses-person2.trc"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--to", "fbx"], "error: --to: unknown format 'fbx'; known: bvh, "),
        (["--to", ","], "error: --to: nothing to write"),
        (["--to", "bvh", "--person", "5"], "error: --person: '5' is not in the result; it has 1, 2"),
        (["--to", "bvh", "--fps", "0"], "error: --fps 0: must be above 0"),
        (["--to", "bvh", "--start", "3", "--end", "2"], "error: --start 3 --end 2: the start must be"),
        (["--to", "bvh", "--start", "30"], "error: no frame from 30 s on; the result has 0 to 1.96 s"),
        (["--to", "bvh", "--space", "moon"], "error: --space: expected one of 'camera', 'level', got"),
        (["--to", "bvh", "--video", "none.mp4"], "error: --video none.mp4: no such file"),
    ],
)  # fmt: skip
def test_wrong_calls_get_one_line(poses, capsys, words, complaint):
    assert main([str(poses), *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith(complaint)
    assert said.count("\n") == 1


def test_files_that_are_there_stay_until_they_may_go(poses, tmp_path, capsys):
    there = tmp_path / "poses.csv"
    there.write_text("mine")
    assert main([str(poses), "--to", "bvh,csv"]) == 2
    assert there.read_text() == "mine"
    assert not (tmp_path / "poses-person1.bvh").exists(), "checked before any work"
    assert "--overwrite" in capsys.readouterr().err
    assert main([str(poses), "--to", "csv", "--overwrite", "--quiet"]) == 0
    assert there.read_text().startswith("video,frame")
    assert capsys.readouterr().out == ""


def test_a_result_without_people_writes_nothing(tmp_path, capsys):
    path = tmp_path / "empty.npz"
    with NpzWriter(path, run_info(H36M17)) as writer:
        writer.write(seen_result(np.zeros((0, 3))))
    assert main([str(path), "--to", "bvh", "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == f"error: {path}: nobody is in it; nothing was written\n"
    assert not (tmp_path / "out").exists()


def test_an_answer_of_pose_lift_is_one_person(tmp_path):
    path = tmp_path / "lifted.npz"
    rng = np.random.default_rng(0)
    np.savez(
        path, joints3d=rng.normal(size=(30, 17, 3)).astype(np.float32), root=np.ones((30, 3), np.float32),
        sigma=np.ones((30, 17), np.float32), timestamps=np.arange(30) / 30,
    )  # fmt: skip
    assert main([str(path), "--to", "bvh", "--quiet"]) == 0
    assert (tmp_path / "lifted-person1.bvh").exists()
