"""The live program as a whole, in processes of its own, under what cameras, disks, systems and clients do to it."""

import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from mjpeg_camera import Shot, mjpeg_camera
from test_live_mjpeg import endless
from test_recording_survives import read_by_opencv, recording_process, small_disk, video_times  # noqa: F401
from websockets.sync.client import connect

from benchmarks.live_soak import measure
from pose.live.recording import finish_interrupted
from pose.results import load_poses

pytestmark = pytest.mark.slow

COMMAND = [
    sys.executable,
    "-c",
    "import sys; from pose_apps.webcam.command import main; sys.exit(main())",
    "--headless",
]


@pytest.fixture(autouse=True)
def at_hand(weights_dir, monkeypatch) -> None:
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))


def test_a_camera_that_stalls_changes_its_size_and_hangs_up_beside_two_clients(videos):
    """A short one of the benchmark, whose figures docs/studies/live.md quotes: memory is settled after a minute."""
    result = measure(videos / "dance.mp4", 80.0, 6.0)
    assert result["holds"], result
    assert result["size_changes"] >= 3


@contextmanager
def command(*words: object) -> Iterator[subprocess.Popen]:
    """The running program, with its standard error as text."""
    with subprocess.Popen([*COMMAND, *map(str, words)], stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read_to(process: subprocess.Popen, words: str) -> None:
    """Read what it says until it says that. It is killed where it does not for long."""
    killing = threading.Timer(400, process.kill)
    killing.start()
    try:
        said = []
        for line in process.stderr:
            said.append(line)
            if words in line.lower():
                return
        pytest.fail(f"it never said {words!r}, but {said}")
    finally:
        killing.cancel()


@pytest.mark.usefixtures("usual_signals")
def test_a_disk_that_fills_under_the_program(small_disk, videos):  # noqa: F811
    disk = small_disk(1_200_000)
    with command("--source", videos / "dance.mp4", "--loop", "--record", "--out", disk) as process:
        read_to(process, "no space left on device")
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=400)
    assert process.returncode == 1
    assert said.splitlines()[-1].startswith("error: the recording ended early: ")
    assert "no space left on device" in said.lower()
    (folder,) = disk.iterdir()
    poses = load_poses(folder / "poses.npz")
    assert len(json.loads((folder / "poses.json").read_text())["frames"]) == len(poses) > 10
    assert read_by_opencv(folder / "video.mp4") == len(video_times(folder / "video.mp4")) > 10


@pytest.mark.parametrize("seed", range(8))
def test_killed_at_any_moment(tmp_path, seed):
    """What was said to be written a second before is there afterwards, in all three files."""
    written = 0
    with recording_process(tmp_path) as process:
        end = time.monotonic() + random.Random(seed).uniform(1, 5)
        for line in process.stdout:
            written = int(line)
            if time.monotonic() > end and written:
                break
        process.kill()
    finish_interrupted(tmp_path)
    (folder,) = tmp_path.iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["poses.json", "poses.npz", "video.mp4"] or written < 50
    assert len(load_poses(folder / "poses.npz")) >= written
    assert len(json.loads((folder / "poses.json").read_text())["frames"]) >= written
    if written >= 50:
        assert len(video_times(folder / "video.mp4")) >= written - 50


PATIENT = "import sys, pose.live.subscriber as s; s.JOIN_SECONDS = 200.0; " + COMMAND[2]


@pytest.mark.usefixtures("usual_signals")
def test_ctrl_c_beside_clients_that_never_read_and_descriptors_that_run_out():
    """With 64 descriptors, 60 idle connections, 8 clients that take nothing, and one that reads everything."""
    with mjpeg_camera(endless) as camera, ExitStack() as stack:
        words = ["bash", "-c", 'ulimit -n 64; exec "$@"', "-", COMMAND[0], "-c", PATIENT, *COMMAND[3:]]
        words += ["--ws", "0", "--source", camera.address]
        pipe = subprocess.PIPE
        process = stack.enter_context(subprocess.Popen(words, stdout=pipe, stderr=pipe, text=True))
        stack.callback(process.kill)
        address = process.stdout.readline().split()[-1]
        port = int(address.rpartition(":")[2])
        reader = stack.enter_context(connect(address, open_timeout=120))
        assert json.loads(reader.recv(timeout=120))["format"] == "pose-live"
        silent = [stack.enter_context(connect(address, max_queue=1, close_timeout=0.1)) for _ in range(8)]
        idle = [stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=120)) for _ in range(60)]
        before = json.loads(reader.recv(timeout=120))["frame"]
        assert all(connection.recv(1) == b"" for connection in idle[:5])  # they are let go
        with connect(address, open_timeout=120) as late:
            assert json.loads(late.recv(timeout=120))["frame"] > before
        assert len(silent) == 8
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=100)  # to wait for them would take the 200 s of its subscriber
        assert process.returncode == 130
        assert "Traceback" not in said


@pytest.mark.usefixtures("usual_signals")
def test_a_stream_that_sends_nothing_for_longer_than_it_may_is_taken_up_again():
    stalled = []

    def stalls(connection):
        for number in range(10_000):
            if number == 40 and not stalled:  # a busy machine may give up its first connection before it reads it
                stalled.append(connection)
                yield Shot(number % 250, 12.0)
            yield Shot(number % 250, 0.05)

    with mjpeg_camera(stalls) as camera, command("--source", camera.address) as process:
        read_to(process, "no answer within 10 s")
        read_to(process, f"note: {camera.address} is back")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=200)
    assert process.returncode == 130
    assert camera.connections > stalled[0] + 1
