"""The base install has no torch: what it promises runs without, and what needs torch says so in one line.

So does `pose-run`: `test_pose_run_writes_tracked_3d_of_a_clip`.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from short_clips import beginning

ADVICE = 'needs torch: pip install "pose-run[torch]"'


SEVERAL = """
import contextlib, io, json, sys
sys.modules["torch"] = None  # from here on `import torch` is a ModuleNotFoundError
ends = []
for name, code, *words in json.loads(sys.argv[1]):
    sys.argv, said, errors, status = [name, *words], io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        try:
            exec(code)
        except SystemExit as end:
            status = end.code or 0
    ends.append([status, errors.getvalue()])
print(json.dumps(ends))
"""


@pytest.fixture
def call_all_without_torch(weights_setting, command_line) -> Callable[..., list[tuple[int, str]]]:
    """Runs several commands in one process that cannot import torch; status and stderr of each."""

    def run(*calls: tuple[object, ...]) -> list[tuple[int, str]]:
        lines = [[f"pose-{name}", *command_line(name, *words)[2:]] for name, *words in calls]
        words = [sys.executable, "-c", SEVERAL, json.dumps(lines)]
        done = subprocess.run(words, env={**os.environ, **weights_setting}, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return [tuple(end) for end in json.loads(done.stdout)]

    return run


@pytest.fixture
def keypoints(tmp_path, rng):
    path = tmp_path / "in.npz"
    np.savez(
        path,
        keypoints=rng.uniform(100, 300, (30, 17, 2)).astype(np.float32),
        scores=np.ones((30, 17), np.float32),
        timestamps=np.arange(30) / 30,
        image_size=np.array([640, 480]),
        skeleton="coco17",
    )
    return path


def test_shipped_lifters_need_no_torch(call_all_without_torch, keypoints, tmp_path):
    lifters = [["offline"], ["stream", "--lookahead", "4"], ["sliding", "--lookahead", "4"]]
    calls = [("lift", keypoints, "--out", tmp_path / f"{words[0]}.npz", "--lifter", *words) for words in lifters]
    assert call_all_without_torch(*calls) == [(0, "")] * 3
    for name, *_ in lifters:
        assert np.isfinite(np.load(tmp_path / f"{name}.npz")["joints3d"]).all()


def test_live_poses_need_no_torch(call_without_torch, videos, tmp_path):
    clip = beginning(videos / "dance.mp4", tmp_path / "clip.mp4", 0.5)
    done = call_without_torch("webcam", "--headless", "--source", clip)
    assert done.returncode == 0, done.stderr


def test_checkpoint_without_onnx_names_the_torch_extra(call_without_torch, keypoints, tmp_path, tiny_lifter):
    done = call_without_torch("lift", keypoints, "--out", tmp_path / "out.npz", "--lifter", tiny_lifter)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert str(tiny_lifter) in done.stderr
    assert ADVICE in done.stderr


NEED_TORCH = (
    ("run", "--video", "dance.mp4", "--device", "cuda", "--detector", "rtmdet", "--estimator", "rtmpose-t"),
    ("run", "--video", "dance.mp4", "--estimator", "rtmpose-t", "--estimator-model", "m.pth"),
    ("lift", "in.npz", "--device", "cuda"),
    ("export", "offline", "--format", "onnx", "--out", "x.onnx"),
    ("bench", "lifter"),
)


def test_commands_that_need_torch_name_the_extra(call_all_without_torch, keypoints, videos, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dance.mp4").symlink_to(videos / "dance.mp4")
    (tmp_path / "m.pth").write_bytes(b"weights")
    *ends, help_of_eval = call_all_without_torch(*NEED_TORCH, ("eval", "sequence", "--help"))
    assert help_of_eval == (0, "")
    for words, (status, error) in zip(NEED_TORCH, ends, strict=True):
        assert (status, error.count("\n")) == (1, 1), (words, error)
        assert ADVICE in error


def test_lifters_of_presets_do_not_import_torch():
    """It takes seconds and 600 MB, which a run on the CPU does not need."""
    program = (
        "import sys\nfrom pose.config import PipelineConfig\nfrom pose_apps.support.lifters import *\n"
        "for name in (PipelineConfig().lifter, 'auto', 'offline', 'sliding', 'stream'): allow_research_lifters(name)\n"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
