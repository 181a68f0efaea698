"""`pose-run` with --depth, --body and --analyse, as a user calls it."""

import csv
import json

import cv2
import numpy as np
import pytest
from command_errors import error_line
from pose_apps.run import main
from short_clips import beginning

from pose import Pipeline
from pose.video import open_source


@pytest.fixture
def depth(tmp_path):
    """Depth images of a wall at 4.0 m, where the person of the clip is taken to be, for 1 s at 15 Hz."""
    folder = tmp_path / "recording"
    (folder / "depth").mkdir(parents=True)
    for at in range(16):
        cv2.imwrite(str(folder / "depth" / f"{at:05d}.png"), np.full((90, 160), 4000, np.uint16))
    camera = {"width": 1280, "height": 720, "intrinsic_matrix": [1100, 0, 0, 0, 1100, 0, 639.5, 359.5, 1], "fps": 15}
    (folder / "intrinsic.json").write_text(json.dumps(camera))
    return folder


def test_depth_images_set_camera_and_distance(depth, shared, tmp_path, capsys):
    clip = shared / "videos/dance.mp4"
    video = cv2.VideoCapture(str(clip))
    size = [int(video.get(side)) for side in (cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT)]
    camera = json.loads((depth / "intrinsic.json").read_text()) | {"width": size[0], "height": size[1]}
    camera["intrinsic_matrix"][6:8] = [(size[0] - 1) / 2, (size[1] - 1) / 2]
    (depth / "intrinsic.json").write_text(json.dumps(camera))
    out = tmp_path / "out"
    words = ["--depth", str(depth), "--out", str(out), "--no-overlay", "--cache", str(tmp_path / "cache")]
    assert main([str(clip), "--end", "1", *words]) == 0
    assert "depth images: 1 people measured, no floor seen" in " ".join(capsys.readouterr().out.split())
    with np.load(out / "poses.npz", allow_pickle=False) as result:
        # The surface is at 4.0 m, the pelvis 0.05 to 0.15 m behind it; the distance of the body's size has some weight.
        assert np.median(result["root_sigma"]) < 60
        same = Pipeline(lazy=True).process(clip, depth=depth, end=1, cache=tmp_path / "cache")
        np.testing.assert_array_equal(same.table.root, result["root"])
    info = json.loads((out / "poses.json").read_text())
    (person,) = info["world"]["people"]
    assert 0 < person["height_sigma"] < 0.1 * person["height"]
    assert info["camera"]["intrinsics"][0][0] == pytest.approx(1100)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--depth", "no-such-folder"], "expected a folder with 16-bit PNG files"),
        (["--depth", "a.mkv"], "expected a folder with 16-bit PNG files"),
        (["--depth-offset", "2"], "only with --depth"),
        (["--depth", ".", "--no-world"], "needs world coordinates"),
    ],
)
def test_wrong_uses_end_in_one_line(words, message, tmp_path, capsys):
    assert main([str(tmp_path / "clip.mp4"), *words]) == 2
    assert message in error_line(capsys)


def test_body_option_draws_bodies_in_the_overlay(videos, tmp_path, tiny_lifter, capsys):
    clip = beginning(videos / "dance.mp4", tmp_path / "clip.mp4", 0.2)
    drawn = []
    for name, words in (("plain", []), ("bodies", ["--body"])):
        common = [str(clip), "--formats", "overlay", "--inset", "off", "--lifter", str(tiny_lifter), "--quiet"]
        assert main([*common, *words, "--out", str(tmp_path / name)]) == 0
        with open_source(str(tmp_path / name / "overlay.mp4")) as source:
            drawn.append(np.stack([frame.image.astype(int) for frame in source]))
    assert drawn[0].shape == drawn[1].shape
    changed = (np.abs(drawn[0] - drawn[1]).max(axis=3) > 40).mean(axis=(1, 2))
    assert (changed > 0.02).all(), "a body in every frame"
    assert (changed < 0.5).all()


def test_body_option_is_rejected_with_several_cameras(capsys):
    assert main(["left.mp4", "right.mp4", "--body"]) == 2
    assert "body: not supported with several cameras" in capsys.readouterr().err


@pytest.fixture
def arguments(videos, at_hand, tiny_lifter, tmp_path):
    clip = [str(videos / "dance.mp4"), "--out", str(tmp_path), "--end", "0.8", "--lifter", str(tiny_lifter)]
    return [*clip, "--no-overlay", "--formats", "json", "--quiet"]


def test_analysis_tables_are_removed_by_a_run_without_them(arguments, tmp_path):
    assert main([*arguments, "--analyse", "--height", "1.75"]) == 0
    with (tmp_path / "analysis-omissions.csv").open() as file:
        reasons = {row["group"]: row["reason"] for row in csv.DictReader(file)}
    assert reasons["gait"] == "no walk of two strides or more"
    assert (tmp_path / "poses.npz").exists(), "the tables are made of it, whatever formats were asked for"
    assert main([*arguments, "--overwrite"]) == 0
    assert not list(tmp_path.glob("analysis*")), "figures of another run stay beside no result"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--no-world"], "--analyse: needs world coordinates; leave out --no-world"),
        (["--stills"], "--analyse: not available for single images, which show no movement"),
    ],
)
def test_analyse_is_rejected_without_world_or_time(arguments, words, message, capsys):
    assert main([*arguments, "--analyse", *words]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"
