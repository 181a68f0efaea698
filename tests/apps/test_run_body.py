"""`pose-run --body` from a video to the overlay."""

import numpy as np
from pose_apps.run import main
from short_clips import beginning

from pose.video import open_source


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
