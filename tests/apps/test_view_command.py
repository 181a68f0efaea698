"""`pose-view` as a user calls it."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.view import main
from pose_fakes import run_info, seen_result

from pose.results import NpzWriter
from pose.structures.colours import SIDE_COLOURS
from pose.structures.skeletons import H36M17
from pose.video import open_source

BLOCKER = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "open3d":
            raise {error}
sys.meta_path.insert(0, Blocker())
from pose_apps.view import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def poses(tmp_path):
    path = tmp_path / "poses.npz"
    with NpzWriter(path, run_info(H36M17)) as writer:
        for i in range(3):
            writer.write(seen_result([(i / 4, 0, 4.0)], index=i, time=i / 10))
    return path


def _refusal(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    error = error_line(capsys)
    return status, error


@pytest.mark.parametrize(
    ("error", "advice", "options"),
    [
        ("ModuleNotFoundError('No module named open3d')", 'pip install "pose-run[view3d]"', []),
        pytest.param(
            "ImportError('libusb-1.0.so.0: cannot open shared object file')",
            "apt-get install libusb-1.0-0",
            [],
            marks=pytest.mark.slow,
        ),
        ("OSError('libGL.so.1: cannot open shared object file')", "libusb-1.0-0 libgl1", ["--save", "clip.mp4"]),
    ],
)
def test_missing_open3d_names_the_install_command(poses, tmp_path, error, advice, options):
    done = subprocess.run(
        [sys.executable, "-c", BLOCKER.format(error=error), str(poses), *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert advice in done.stderr
    assert list(tmp_path.iterdir()) == [poses]


def test_without_a_display_the_window_points_to_save(poses, capsys, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("pose.view.open3d_scene.import_open3d", lambda: None)  # as if it were there
    status, error = _refusal(capsys, poses)
    assert status == 1
    assert "--save" in error


ABORTING = """
import os, sys
from types import SimpleNamespace
def create_window(*_):
    {does}
application = SimpleNamespace(initialize=lambda: None, create_window=create_window)
visualization = SimpleNamespace(gui=SimpleNamespace(Application=SimpleNamespace(instance=application)))
"""


@pytest.mark.parametrize(
    ("does", "advice"),
    [
        ("os.abort()", "mesa-vulkan-drivers"),  # what Open3D 0.20 does with Vulkan's library but no driver
        ("raise RuntimeError('Failed to load vulkan library!')", "mesa-vulkan-drivers"),  # and without the library
        ("print('Falling back to headless mode.')", "the display :7 cannot be reached"),
    ],
)
def test_window_failure_gives_a_one_line_error(poses, tmp_path, does, advice):
    (tmp_path / "open3d.py").write_text(ABORTING.format(does=does))
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from pose_apps.view import main; sys.exit(main(sys.argv[1:]))", str(poses)],
        env={
            **os.environ,
            "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
            "DISPLAY": ":7",
            "WAYLAND_DISPLAY": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert advice in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--save", "clip.avi"], "must end in .mp4"),
        (["--save", "nowhere/clip.mp4"], "no such folder: nowhere"),
        (["--save", "clip.mp4", "--size", "big"], "--size 'big'"),
        (["--save", "clip.mp4", "--fps", "0"], "--fps"),
        (["--save", "clip.mp4", "--speed", "-1"], "--speed"),
        (["--fps", "25"], "--fps applies only to --save"),
        (["--colour"], "--colour"),
    ],
)
def test_invalid_arguments_exit_with_2(poses, capsys, monkeypatch, tmp_path, options, message):
    monkeypatch.chdir(tmp_path)
    status, error = _refusal(capsys, poses, *options)
    assert status == 2
    assert message in error
    assert list(tmp_path.iterdir()) == [poses]


def test_an_existing_video_is_not_overwritten_unless_asked(poses, capsys, tmp_path):
    target = tmp_path / "clip.mp4"
    target.write_text("mine")
    status, error = _refusal(capsys, poses, "--save", target)
    assert (status, target.read_text()) == (2, "mine")
    assert "--overwrite" in error


def test_result_without_frames_gives_a_one_line_error(capsys, tmp_path):
    with NpzWriter(tmp_path / "poses.npz", run_info()):
        pass
    status, error = _refusal(capsys, tmp_path / "poses.npz", "--save", tmp_path / "a.mp4")
    assert status == 1
    assert "contains no frame" in error


@pytest.mark.slow
def test_the_video_shows_the_people(poses, tmp_path):
    """Runs wherever the extra is installed; elsewhere it checks that the command says so and leaves no file."""
    target = tmp_path / "clip.mp4"
    code = "import sys; from pose_apps.view import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(poses), "--save", str(target), "--size", "320x240"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        assert importlib.util.find_spec("open3d") is None or "install" in done.stderr
        assert not target.exists()
        return
    assert done.stdout.strip() == str(target)
    with open_source(str(target)) as source:
        frames = list(source)
    assert [frame.time for frame in frames] == pytest.approx([0.0, 0.1, 0.2], abs=1e-3)
    for side in ("left", "right"):
        distance = np.abs(frames[0].image.astype(int) - SIDE_COLOURS[side]).max(axis=2)
        assert (distance < 60).sum() > 20
    assert (frames[0].image != frames[2].image).any()
