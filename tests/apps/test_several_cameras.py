"""`pose-run` with several videos: what is refused in one line, and a real scene from the videos to the files."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.cameras.command import with_joints_of
from pose_apps.cameras.options import camera_videos, joint_folder, read_distance, read_offsets
from pose_apps.run import main
from pose_apps.support.summary import Tally

from pose.errors import PoseError, UsageError
from pose.multiview.run import check_static
from pose.multiview.videos import camera_names
from pose.results import load_poses
from pose.world.camera_motion.verdict import ROTATING, SHAKING, STATIC, TRANSLATING, UNKNOWN, ZOOMING, CameraMotion


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--start", "1"], "start: not supported with several cameras"),
        (["--stills"], "stills: not supported with several cameras"),
        (["--no-world"], "world: not supported with several cameras"),
        (["--offsets", "0,1,2"], "offsets: got 3 for 2 videos"),
        (["--offsets", "now"], "offsets: expected seconds"),
        (["--distance", "cam1,cam3=2"], "distance: expected two cameras"),
        (["--distance", "left,right=0"], "distance: expected two cameras"),
        (["--height", "1.8", "--distance", "left,right=3"], "both set the scale"),
        (["--cameras", "nowhere.json"], "nowhere.json: no such file"),
        (["--formats", "nothing"], "'nothing' is unknown"),
    ],
)
def test_incompatible_options_give_a_one_line_error(clips, more, message, capsys):
    assert main([*clips, *more]) == 2
    assert message in error_line(capsys)


def test_duplicate_and_missing_videos_are_rejected(clips, tmp_path, capsys):
    assert main([clips[0], clips[0]]) == 2
    assert "given twice" in capsys.readouterr().err
    clip = Path(clips[0])
    elsewhere = clip.parent / ".." / clip.parent.name / clip.name
    assert main([clips[0], str(elsewhere)]) == 2
    assert "given twice" in capsys.readouterr().err
    assert main([clips[0], str(tmp_path / "gone.mp4")]) == 2
    assert "no such file" in capsys.readouterr().err
    assert main([*clips * 5]) == 2
    assert "allowed: 2 to 8" in capsys.readouterr().err


def test_every_video_is_opened_before_the_first_is_processed(clips, videos, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("pose.pipeline.Pipeline", None)  # not needed yet
    assert main([str(videos / "squats.mp4"), clips[1], "--out", str(tmp_path / "out"), "--quiet"]) == 1
    assert "right.mp4: not a video" in capsys.readouterr().err


def test_a_broken_calibration_is_refused_before_the_videos_are_processed(clips, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("pose.pipeline.Pipeline", None)  # not needed yet
    (tmp_path / "empty.json").write_text("")
    assert main([*clips, "--cameras", str(tmp_path / "empty.json")]) == 1
    assert "empty.json: not a calibration" in error_line(capsys)


def test_a_file_that_is_not_a_video_is_one_line(clips, tmp_path, capsys, at_hand):
    assert main([*clips, "--out", str(tmp_path / "out"), "--quiet"]) == 1
    assert "left.mp4" in error_line(capsys)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_videos_is_a_camera_each(clips, tmp_path):
    assert camera_videos([str(tmp_path)], "auto") == clips
    with pytest.raises(UsageError, match="one video"):
        camera_videos([str(tmp_path)], None)


def test_camera_names_and_result_folder_are_derived_from_files():
    assert camera_names(["a/left.mp4", "b/left.mp4", "b/right.mp4"]) == ["left-1", "left-2", "right"]
    assert str(joint_folder(["a/left.mp4", "a/right.mp4"])) == "a/left+right"


def test_distance_and_offsets_are_parsed():
    assert read_distance("cam1,cam2=3.4", ["left", "right"]) == (0, 1, 3.4)
    assert read_distance("right,left=2", ["left", "right"]) == (1, 0, 2.0)
    assert read_offsets("0,-1.25") == [0.0, -1.25]


@pytest.mark.parametrize(
    ("motion", "message"),
    [
        (CameraMotion(ROTATING, pan=12.0, tilt=1.0, roll=0.2, zoom=1.0), "turns by 12 degrees"),
        (CameraMotion(ZOOMING, pan=0.2, tilt=0.1, roll=0.2, zoom=1.4), "zooms"),
        (CameraMotion(TRANSLATING, pan=0.2, tilt=0.1, roll=0.2, zoom=1.0), "is carried"),
    ],
)
def test_moving_camera_is_rejected(motion, message):
    with pytest.raises(PoseError, match=f"left.mp4: the camera {message}; several cameras must be static"):
        check_static("left.mp4", motion)


def test_static_or_shaking_camera_is_accepted():
    check_static("left.mp4", CameraMotion(STATIC, pan=0.1, tilt=0.1, roll=0.0, zoom=1.0))
    check_static("left.mp4", CameraMotion(SHAKING, pan=0.5, tilt=0.4, roll=0.1, zoom=1.0))
    check_static("left.mp4", CameraMotion(UNKNOWN))


def test_the_summary_counts_the_2d_joints_of_all_cameras():
    cameras = [Tally(joints=10, low_confidence_joints=2, score_sum=7.5), Tally(joints=5, score_sum=4.0)]
    expected = Tally(frames=3, joints=15, low_confidence_joints=2, score_sum=11.5)
    assert with_joints_of(Tally(frames=3), cameras) == expected


@pytest.mark.slow
def test_two_real_views_are_calibrated_without_input(videos, at_hand, tmp_path, capsys):
    views = [str(videos / "two-people" / f"view-{name}.mp4") for name in "ab"]
    assert main([*views, "--out", str(tmp_path / "both"), "--quiet"]) == 0
    assert sorted(path.name for path in (tmp_path / "both").glob("[!.]*")) == [
        "cameras.json", "overlay.mp4", "poses.json", "poses.npz",
    ]  # fmt: skip
    table = load_poses(tmp_path / "both" / "poses.npz")
    assert len(set(table.id.tolist())) == 2
    assert ((table.seen_by == 3).mean(axis=1) > 0.3).mean() > 0.8
    published = json.loads((videos / "two-people" / "calibration.json").read_text())["cameras"]
    first, second = (np.array(published[name]["R"]) for name in ("view-a", "view-b"))
    found = np.array(table.run.cameras[1]["R"])
    angle = np.degrees(np.arccos((np.trace(found @ (second @ first.T).T) - 1) / 2))
    assert angle < 6
    assert abs(table.run.cameras[1]["offset"] - table.run.cameras[0]["offset"]) < 0.03


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--offsets", "0,1"], "--offsets"),
        (["--cameras", "auto"], "--cameras"),
        (["--cameras", "auto", "--distance", "a,b=3"], "--cameras and --distance"),
    ],
)
def test_options_of_several_cameras_are_rejected_for_one_video(videos, tmp_path, words, options, capsys):
    clip = str(videos / "dance.mp4")
    assert main([clip, "--out", str(tmp_path / "out"), *words]) == 2
    assert capsys.readouterr().err == f"error: {options}: only for several cameras; {clip} is one video\n"
