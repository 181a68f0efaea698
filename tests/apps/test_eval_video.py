"""`pose-eval video` from pixels to numbers, on a real clip."""

import json

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.evaluate.command import main

from pose.config import PipelineConfig
from pose.pipeline import Pipeline
from pose.video import open_source

pytestmark = pytest.mark.usefixtures("at_hand")

END = 0.8


@pytest.fixture
def truth(videos, tiny_lifter, tmp_path):
    """What the pipeline itself says of the clip, with one joint 34 mm elsewhere and no truth in two frames."""
    with open_source(str(videos / "dance.mp4"), end=END) as source:
        results = list(Pipeline(PipelineConfig(lifter=str(tiny_lifter))).run(source))
    joints = np.stack([result.poses.joints[0] + result.poses.root[0] for result in results])
    joints[:, 16, 0] += 0.034
    joints[[3, 8]] = np.nan
    path = tmp_path / "truth.npz"
    np.savez(path, joints3d=joints, timestamps=np.array([result.time for result in results]))
    return path


def test_video_evaluation_measures_a_known_3d_error(videos, truth, tiny_lifter, tmp_path, capsys):
    arguments = ["video", "--video", videos / "dance.mp4", "--gt", truth, "--lifter", tiny_lifter, "--end", END]
    status = main([str(argument) for argument in (*arguments, "--out", tmp_path / "o")])
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    result = json.loads((tmp_path / "o" / "results.json").read_text())["results"][0]
    average = result["variants"]["as given"]["average"]
    assert (result["found"], result["known"]) == (22, 22)
    assert average["mpjpe"] == pytest.approx(34 / 17, abs=1e-3)
    assert average["accel"] == pytest.approx(0, abs=1e-3)
    assert " (22 of 22 found), as given" in printed.out
    with np.load(tmp_path / "o" / "predictions.npz") as predictions:
        assert np.isnan(predictions["person 1"]).any(axis=(1, 2)).nonzero()[0].tolist() == [3, 8]
    assert (tmp_path / "o" / "report.html").stat().st_size > 10_000


def test_invalid_input_gives_a_one_line_error(videos, tmp_path, capsys):
    np.savez(tmp_path / "truth.npz", joints3d=np.zeros((4, 5, 3)))
    for gt, status, message in (("none.npz", 2, "no such file; ground truth is"), ("truth.npz", 1, r"got (4, 5, 3)")):
        arguments = ["video", "--video", videos / "dance.mp4", "--gt", tmp_path / gt, "--out", tmp_path / "o"]
        assert main([str(argument) for argument in arguments]) == status
        assert message in error_line(capsys)
