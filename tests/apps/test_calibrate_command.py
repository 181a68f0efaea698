"""`pose-calibrate`: what it refuses in one line, and that it writes what `--cameras` reads."""

import json
from pathlib import Path

import pytest
from command_errors import error_line
from pose_apps.cameras.calibrate import main

from pose.errors import PoseError, UsageError
from pose.functions import several


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        (["--offsets", "0,1,2"], 2, "offsets: got 3 for 2 videos"),
        (["--height", "1.8", "--distance", "left,right=3"], 2, "both set the scale"),
        (["--cameras", "nowhere.json"], 2, "nowhere.json: no such file"),
        ([], 1, "left.mp4"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(clips, more, status, message, capsys):
    assert main([*clips, *more, "--quiet"]) == status
    assert message in error_line(capsys)


def test_missing_videos_and_existing_output_are_rejected(clips, tmp_path, capsys):
    assert main([]) == 2
    assert "no videos" in capsys.readouterr().err
    assert main([clips[0]]) == 2
    assert "only one video" in capsys.readouterr().err
    (tmp_path / "cameras.json").write_text("{}")
    assert main(clips) == 2
    assert "give --overwrite to replace it" in capsys.readouterr().err


@pytest.mark.slow
def test_given_calibration_of_two_real_views_is_refined(videos, at_hand, tmp_path, capsys):
    views = [str(videos / "two-people" / f"view-{name}.mp4") for name in "ab"]
    cache = ["--cache", str(tmp_path / "cache"), "--quiet"]
    assert main([*views, "--out", str(tmp_path / "new.json"), *cache]) == 0
    published = videos / "two-people" / "calibration.json"
    assert main([*views, "--out", str(tmp_path / "refined.json"), "--cameras", str(published), *cache]) == 0
    new, refined = (json.loads((tmp_path / name).read_text())["cameras"] for name in ("new.json", "refined.json"))
    assert [camera["name"] for camera in new] == ["view-a", "view-b"]
    given = json.loads(published.read_text())["cameras"]["view-a"]["K"][0][0]
    assert refined[0]["K"][0][0] == pytest.approx(given, rel=1e-3)
    assert refined[0]["K"][0][0] != new[0]["K"][0][0]


def test_python_several_validates_its_arguments(clips):
    for arguments, message in (
        ({"videos": clips[:1]}, "videos: got 1; allowed: 2 to 8"),
        ({"videos": clips, "offsets": [0.0]}, "offsets: got 1 for 2 videos"),
        ({"videos": clips, "height": 1.8, "cameras": "cameras.json"}, "already sets the scale"),
    ):
        with pytest.raises(UsageError, match=message):
            several(**arguments)
    with pytest.raises(PoseError, match=r"left\.mp4"):
        several(clips)


@pytest.mark.slow
def test_python_several_calibrates_two_real_views(videos, at_hand):
    result = several([videos / "two-people" / f"view-{name}.mp4" for name in "ab"], height=1.75)
    assert result.people == (1, 2)
    assert result.has_world
    assert [camera["name"] for camera in result.table.run.cameras] == ["view-a", "view-b"]


def test_cameras_are_not_written_over_a_video(clips, capsys):
    before = Path(clips[0]).read_bytes()
    assert main([*map(str, clips), "--out", str(clips[0]), "--overwrite"]) == 2
    assert "would replace an input" in capsys.readouterr().err
    assert Path(clips[0]).read_bytes() == before
