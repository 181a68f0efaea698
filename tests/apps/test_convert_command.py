"""`pose-convert` as a person calls it."""

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.convert import main
from pose_fakes import run_info, seen_result

from pose.results import NpzWriter
from pose.structures.skeletons import H36M17
from pose.utils.written_files import RECORD
from pose.world.frame import rotation_of, up_of


@pytest.fixture
def poses(tmp_path):
    """Two people for two seconds; the second is there for one of them."""
    path = tmp_path / "poses.npz"
    with NpzWriter(path, run_info(H36M17)) as writer:
        for frame in range(50):
            people = [(0, 0, 4), (1, 0, 5)] if frame >= 25 else [(0, 0, 4)]
            writer.write(seen_result(people, index=frame, time=frame / 25))
    return path


def test_converted_files_are_written_to_the_output_folder(poses, tmp_path, capsys):
    out = tmp_path / "deep" / "out"
    assert main([str(poses), "--to", "bvh,trc, csv", "--out", str(out)]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        RECORD, "poses-person1.bvh", "poses-person1.trc", "poses-person2.bvh", "poses-person2.trc", "poses.csv",
    ]  # fmt: skip
    said = capsys.readouterr().out
    assert "space: camera frame" in said
    assert "poses-person2.bvh: 25 frames at 25 frames/s, the first at 1.000 s (frame 26 of the result)" in said


def test_person_time_span_and_rate_options_select_frames(poses, tmp_path, capsys):
    assert main([str(poses), "--to", "trc", "--person", "2", "--start", "1.2", "--end", "1.6", "--fps", "50"]) == 0
    assert "19 frames at 50 frames/s, resampled, the first at 1.200 s" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".trc"] == ["poses-person2.trc"]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--to", "xyz"], "error: --to: unknown format 'xyz'; known: bvh, "),
        (["--to", ","], "error: --to: give at least one format"),
        (["--to", "bvh", "--person", ","], "error: --person: name at least one id; the result has 1, 2"),
        (["--to", "bvh", "--person", "5"], "error: --person: '5' is not in the result; it has 1, 2"),
        (["--to", "bvh", "--fps", "0"], "error: --fps 0: must be above 0"),
        (["--to", "bvh", "--start", "3", "--end", "2"], "error: --start 3 --end 2: the start must be"),
        (["--to", "bvh", "--start", "30"], "error: no frame from 30 s on; the result has 0 to 1.96 s"),
        (["--to", "bvh", "--space", "moon"], "error: --space: expected one of world, camera, got"),
        (["--to", "bvh", "--space", "camera", "--pitch", "-5"], "error: --pitch: has no effect on the camera"),
        (["--to", "bvh", "--roll", "999"], "error: --roll: 999.0 is out of range; allowed: -180"),
        (["--to", "bvh", "--height", "tall"], "error: --height: expected metres, such as 1.82, or by id of the person"),
        (["--to", "bvh", "--height", "1:1.8,7:1.9"], "error: --height: no person has the id 7; ids: 1, 2"),
        (["--to", "csv,trc", "--rig", "vrm"], "error: --rig: applies only to bvh, glb, usd, fbx; --to has csv, trc\n"),
        (["--to", "csv", "--video", __file__], "error: --video: applies only to rrd, html; --to has csv\n"),
        (["--to", "bvh", "--video", "none.mp4"], "error: --video none.mp4: no such file"),
    ],
)  # fmt: skip
def test_invalid_arguments_give_a_one_line_error(poses, capsys, words, complaint):
    assert main([str(poses), *words]) == 2
    assert error_line(capsys).startswith(complaint)


def test_existing_files_are_kept_without_overwrite(poses, tmp_path, capsys):
    there = tmp_path / "poses.csv"
    there.write_text("mine")
    assert main([str(poses), "--to", "bvh,csv"]) == 2
    assert there.read_text() == "mine"
    assert not (tmp_path / "poses-person1.bvh").exists(), "checked before any work"
    assert "--overwrite" in capsys.readouterr().err
    assert main([str(poses), "--to", "csv", "--overwrite", "--quiet"]) == 0
    assert there.read_text().startswith("video,frame")
    assert capsys.readouterr().out == ""


def test_formats_of_one_file_per_person_name_people_without_one(tmp_path, capsys):
    path = tmp_path / "poses.npz"
    with NpzWriter(path, run_info(H36M17)) as writer:
        writer.write(seen_result(np.zeros((0, 3))))
    assert main([str(path), "--to", "bvh,csv,trc"]) == 0
    assert "\nbvh, trc: the result contains no person; no file was written\n" in capsys.readouterr().out
    with NpzWriter(path, run_info(H36M17)) as writer:
        for frame in range(9):
            writer.write(seen_result([(0, 0, 4), (np.nan, 0, 5)], index=frame, time=frame / 25))
    assert main([str(path), "--to", "csv,bvh", "--overwrite"]) == 0
    assert "\nbvh: no file for person 2, who has no valid pose\n" in capsys.readouterr().out


def test_pose_lift_output_converts_as_one_person(tmp_path):
    path = tmp_path / "lifted.npz"
    rng = np.random.default_rng(0)
    np.savez(
        path, joints3d=rng.normal(size=(30, 17, 3)).astype(np.float32), root=np.ones((30, 3), np.float32),
        sigma=np.ones((30, 17), np.float32), timestamps=np.arange(30) / 30,
    )  # fmt: skip
    assert main([str(path), "--to", "bvh", "--quiet"]) == 0
    assert (tmp_path / "lifted-person1.bvh").exists()


def trc_points(path):
    """(T, joints, 3) m of a TRC file in mm."""
    rows = [line.split("\t") for line in path.read_text().splitlines()[5:] if line.strip()]
    return np.array([[float(value) for value in row[2:] if value] for row in rows]).reshape(len(rows), -1, 3) / 1000


def test_a_result_without_a_world_is_exported_upright_by_pitch_and_roll(poses, tmp_path, capsys):
    """A camera that looks 30 degrees down: what is straight ahead of it lies lower the farther it is."""
    words = ["--to", "trc", "--person", "1", "--out"]
    assert main([str(poses), *words, str(tmp_path / "a"), "--pitch", "0"]) == 0
    assert "the vertical (as given) is 0 degrees from the camera's" in capsys.readouterr().out
    assert main([str(poses), *words, str(tmp_path / "b"), "--pitch", "-30", "--roll", "10"]) == 0
    assert "the vertical (as given) is 31 degrees from the camera's" in capsys.readouterr().out
    straight, tilted = (trc_points(tmp_path / name / "poses-person1.trc") for name in "ab")
    turn = rotation_of(up_of(-30, 10)) @ rotation_of(up_of(0, 0)).T
    body = [points[0] - points[0].mean(axis=0) for points in (straight, tilted)]
    np.testing.assert_allclose(body[1], body[0] @ turn.T, atol=2e-3)


def test_height_option_scales_exported_people(poses, tmp_path, capsys):
    for folder, height in (("a", "1.4"), ("b", "1:2.6,2:1.4")):
        words = ["--to", "trc", "--height", height, "--out", str(tmp_path / folder)]
        assert main([str(poses), *words]) == 0, capsys.readouterr().err
    small, large = (trc_points(tmp_path / name / "poses-person1.trc") for name in "ab")
    np.testing.assert_allclose(large, small * (2.6 - 0.18) / (1.4 - 0.18), atol=2e-3)
    same = [trc_points(tmp_path / name / "poses-person2.trc") for name in "ab"]
    np.testing.assert_array_equal(*same)


def test_overwrite_renames_files_it_did_not_write(poses, tmp_path, capsys):
    frames = tmp_path / "poses-openpose"
    call = [str(poses), "--to", "openpose,bvh", "--overwrite", "--quiet"]
    assert main(call) == 0
    assert main(call) == 0, "its own files are replaced without a word"
    (frames / "notes.txt").write_text("mine")
    (tmp_path / "poses-person2.bvh").write_text("mine")
    (tmp_path / "poses-person2.bvh.filled.csv").write_text("mine")
    assert main(call) == 0
    assert capsys.readouterr().err.count("kept as") == 3
    for name in ("poses-openpose.kept/notes.txt", "poses-person2.bvh.kept", "poses-person2.bvh.filled.csv.kept"):
        assert (tmp_path / name).read_text() == "mine"
    assert len(list(frames.iterdir())) == 50


@pytest.mark.parametrize("target", ["elsewhere", "nowhere"])
def test_overwrite_renames_symlinks_and_keeps_their_targets(poses, tmp_path, target):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.txt").write_text("mine")
    (tmp_path / "poses-openpose").symlink_to(tmp_path / target)
    call = [str(poses), "--to", "openpose", "--quiet"]
    assert main(call) == 2
    assert main([*call, "--overwrite"]) == 0
    assert (tmp_path / "elsewhere" / "thesis.txt").read_text() == "mine"
    assert (tmp_path / "poses-openpose.kept").is_symlink()


@pytest.mark.parametrize(("pause", "step"), [(365 * 86_400.0, 1 / 25), (28 * 3600.0, 0.001), (86_400.0, 1 / 30)])
def test_long_time_gaps_are_filled_up_to_a_limit(tmp_path, capsys, pause, step):
    path = tmp_path / "poses.npz"
    with NpzWriter(path, run_info(H36M17)) as writer:
        for frame in range(20):
            writer.write(seen_result([(0, 0, 4)], index=frame, time=frame * step + (pause if frame > 9 else 0)))
    assert main([str(path), "--to", "bvh,trc,csv,glb,angles,html", "--quiet"]) == 1
    said = capsys.readouterr().err
    assert said.count("would be filled with more than 108000 frames") == 2
    assert "from 0.3" in said or "from 0.009" in said
    made = {name.suffix for name in tmp_path.iterdir() if name.suffix != ".npz"}
    assert made == {".csv", ".glb", ".html", ".json"}, "formats that keep time stamps are written"
    assert main([str(path), "--to", "bvh", "--quiet", "--end", "1"]) == 0


def test_gap_limit_allows_a_high_requested_rate(poses, capsys):
    assert main([str(poses), "--to", "csv", "--fps", "1000", "--quiet"]) == 0


def test_the_video_of_a_conversion_is_never_replaced(poses, tmp_path, capsys):
    video = tmp_path / "poses.html"
    video.write_text("a video")
    assert main([str(poses), "--to", "html", "--video", str(video), "--overwrite", "--quiet"]) == 2
    assert "would replace an input" in error_line(capsys)
    assert video.read_text() == "a video"
