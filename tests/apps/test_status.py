"""Something moves on the terminal before a command loads what takes long, and nothing is left of it."""

import io
import os
import pty
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from pose_apps.support import status as module
from pose_apps.support.status import StatusLine

# Says on the terminal when the first module is looked for that takes long to load.
SPY = """
import os, sys
HEAVY = {"torch", "onnxruntime", "ai_edge_litert", "open3d", "av", "cv2", "aiohttp", "scipy"}
class Spy:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            sys.meta_path.remove(self)
            os.write(2, b"<heavy>")
sys.meta_path.insert(0, Spy())
"""
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def on_a_terminal(command_line, weights_setting):
    """What a command writes to a terminal, its heavy imports marked."""

    def run(name: str, *arguments: object, seconds: float = 250.0, before: str = SPY) -> str:
        python, _, code, *words = command_line(name, *arguments)
        ours, theirs = pty.openpty()
        environment = {**os.environ, **weights_setting, "TERM": "xterm"}
        process = subprocess.Popen(
            [python, "-c", before + code, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
        )
        os.close(theirs)
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        written = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # how Linux says that the other end is closed
                break
            if not part:
                break
            written += part
        os.close(ours)
        process.wait()
        timer.cancel()
        return written.decode(errors="replace")

    return run


@pytest.fixture
def keypoints(tmp_path):
    path = tmp_path / "in.npz"
    arrays = {"scores": np.ones((9, 17), np.float32), "timestamps": np.arange(9) / 30, "image_size": np.array([9, 9])}
    np.savez(path, keypoints=np.full((9, 17, 2), 5, np.float32), skeleton="coco17", **arrays)
    return path


HELP = """
import contextlib, sys
sys.modules.update(dict.fromkeys([sys.argv.pop(1), "torch", "onnxruntime", "av"]))  # none of them can be imported
calls = sys.argv[1:]
sys.argv[1:] = ["--help"]
for call in calls:
    with contextlib.suppress(SystemExit):
        exec(call)
"""


@pytest.mark.parametrize(
    ("missing", "names"),
    [
        ("numpy", ("run", "lift", "webcam", "view", "export", "prepare", "setup")),
        ("cv2", ("eval", "bench", "convert", "weights")),
    ],
)
def test_help_imports_no_heavy_module(command_line, missing, names):
    """pose-train is not among them: what can be trained is known to torch's side only."""
    calls = [command_line(name)[2] for name in names]
    done = subprocess.run([sys.executable, "-c", HELP, missing, *calls], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    for name in names:
        assert f"\npose-{name}: " in f"\n{done.stdout}"


@pytest.mark.parametrize(
    ("words", "first"),
    [
        (("run", "nothing.mp4"), "loading the networks"),
        (("lift", "in.npz"), "lifting"),
        pytest.param(("webcam", "--headless", "--source", "nothing.mp4"), "loading", marks=pytest.mark.slow),
        pytest.param(("webcam", "--source", "nothing.mp4"), "loading", marks=pytest.mark.slow),
        (("webcam", "--web", "--source", "nothing.mp4", "--lifter", "nothing"), "loading the networks"),
        pytest.param(
            ("train", "lifter", "--out", "runs", "--data.mocap", "nothing.npz"), "loading torch", marks=pytest.mark.slow
        ),
        pytest.param(("view", "in.npz", "--save", "clip.mp4"), "loading the viewer", marks=pytest.mark.slow),
        pytest.param(
            ("eval", "sequence", "--keypoints", "in.npz", "--gt", "in.npz"), "loading", marks=pytest.mark.slow
        ),
        pytest.param(("prepare", "mocap", "--source", ".", "--out", "out.npz"), "preparing", marks=pytest.mark.slow),
        pytest.param(("export", "nothing", "--format", "onnx", "--out", "x.onnx"), "exporting", marks=pytest.mark.slow),
        pytest.param(
            ("bench", "lifter", "--offline", "nothing", "--stream", "nothing", "--no-attention"),
            "loading torch",
            marks=pytest.mark.slow,
        ),
        pytest.param(("convert", "in.npz", "--to", "csv"), "converting", marks=pytest.mark.slow),
    ],
    ids=lambda value: "-".join(value[:2]).replace("--", "") if isinstance(value, tuple) else "",
)
def test_status_line_appears_before_heavy_imports(on_a_terminal, keypoints, tmp_path, monkeypatch, words, first):
    monkeypatch.chdir(tmp_path)
    written = CONTROL.sub("", on_a_terminal(*words))
    assert written.lstrip("\r\n").startswith(first), written
    assert "Traceback" not in written
    assert not re.search(rf"{first} \d\d:\d\d[^\r\n]*error", written)  # the line is taken away before others come


def test_status_line_is_erased_at_the_end(on_a_terminal, keypoints):
    written = on_a_terminal("lift", keypoints, before="")
    last = written.replace("\r\n", "\n").rstrip("\n").rpartition("\n")[2]
    assert last.rpartition("\r")[2].strip() in ("", f"{keypoints.with_name('in-3d.npz')}: 9 frames")
    assert "in-3d.npz: 9 frames" in written


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_status_line_keeps_updating(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    monkeypatch.setattr(module, "TICK_SECONDS", 3600.0)
    with StatusLine("working"):
        assert terminal.getvalue().count("working") == 1
    monkeypatch.setattr(module, "TICK_SECONDS", 0.01)
    sys.stderr = terminal = Terminal()
    with StatusLine("working") as status:
        deadline = time.monotonic() + 60
        while terminal.getvalue().count("working") < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert terminal.getvalue().count("working") >= 4
        status.end()
        status.end()
        ended = terminal.getvalue()
    assert terminal.getvalue() == ended
    assert ended.endswith("\r")


def test_status_line_can_be_hidden(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with StatusLine("working", hidden=True):
        pass
    assert terminal.getvalue() == ""
