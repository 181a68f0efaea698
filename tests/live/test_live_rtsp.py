"""RTSP from a server that is not ours: rtsp-streaming-server, an npm package, to which a camera publishes.

    npm install --prefix DIR rtsp-streaming-server@2.1.0
    POSE_TEST_NPM=DIR python -m pytest -m slow tests/live/test_live_rtsp.py

It speaks UDP only, so that these tests also see the way back from TCP.
"""

import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import count
from pathlib import Path

import av
import numpy as np
import pytest
from live_fakes import picture
from test_live_sources import read

from pose.live import open_live
from pose.live import sources as module
from pose.live.sources import Reconnecting
from pose.video import container

FPS = 25
SLACK = 1.0  # s, for encoder, server and decoder on a busy machine; steps between frames are compared exactly
NPM = Path(os.environ.get("POSE_TEST_NPM", "."))
SERVER = """
const Server = require('rtsp-streaming-server').default;
const [serverPort, clientPort, rtpPortStart] = process.argv.slice(1).map(Number);
new Server({serverPort, clientPort, rtpPortStart, rtpPortCount: 200}).start().then(() => console.log('ready'));
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("node") or not (NPM / "node_modules" / "rtsp-streaming-server").is_dir(),
        reason="needs node and the npm package rtsp-streaming-server in POSE_TEST_NPM",
    ),
]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """The server, and a camera that publishes to it. sent: number -> when it was sent, s of `time.monotonic`."""

    def __init__(self) -> None:
        self.ports = free_port(), free_port(), 20_000 + 2 * (free_port() % 5000)
        self.address = f"rtsp://127.0.0.1:{self.ports[1]}/camera"
        self.sent: dict[int, float] = {}
        self._process: subprocess.Popen | None = None
        self._over = threading.Event()
        self._camera: threading.Thread | None = None

    def start(self) -> None:
        words = ["node", "-e", SERVER, *map(str, self.ports)]
        self._process = subprocess.Popen(words, cwd=NPM, stdout=subprocess.PIPE, text=True)
        while "ready" not in self._process.stdout.readline():
            assert self._process.poll() is None

    def publish(self, plan) -> None:
        """plan: for each image its number, how long to wait before it, and its stamp, s."""
        self._over.clear()
        self._camera = threading.Thread(target=self._publish, args=(plan,), daemon=True)
        self._camera.start()
        while not self.sent:
            time.sleep(0.01)
        time.sleep(0.3)

    def _publish(self, plan) -> None:
        address = f"rtsp://127.0.0.1:{self.ports[0]}/camera"
        with av.open(address, "w", format="rtsp", options={"rtsp_transport": "udp"}) as output:
            options = {"preset": "ultrafast", "tune": "zerolatency", "g": "5"}
            stream = output.add_stream("libx264", rate=FPS, options=options)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            stream.codec_context.time_base = Fraction(1, 90000)
            output.start_encoding()  # connects, which can take seconds; the first images must not wait and then hurry
            due = time.monotonic()
            for number, wait, stamp in plan:
                due += wait
                if self._over.wait(max(0, due - time.monotonic())):
                    return
                frame = av.VideoFrame.from_ndarray(picture(number)).reformat(format="yuv420p")
                frame.pts, frame.time_base = round(90000 * stamp), Fraction(1, 90000)
                self.sent[number] = time.monotonic()
                output.mux(stream.encode(frame))

    def unplug(self) -> None:
        """The camera is gone."""
        self._over.set()
        self._camera.join(10)

    def stop(self) -> None:
        if self._camera is not None:
            self.unplug()
        if self._process is not None:
            with self._process as process:
                process.kill()


@pytest.fixture
def server() -> Iterator[Server]:
    started = Server()
    started.start()
    yield started
    started.stop()


def number_of(item) -> int:
    return round(float(item.frame.image.mean()))


def errors(captured, sent: dict[int, float]) -> np.ndarray:
    """s by which each image's time differs from when it was sent, less the median of the first ten."""
    late = np.array([item.frame.time - sent[number_of(item)] for item in captured])
    return late - np.median(late[:10])


def even(numbers, first: float = 0.0):
    return ((number, 1 / FPS, first + number / FPS) for number in numbers)


def test_rtsp_stream_keeps_its_timestamps(server):
    server.publish(even(range(250)))
    source = open_live(server.address)
    assert isinstance(source, Reconnecting)
    captured = read(source, count=75)
    assert np.abs(errors(captured, server.sent)).max() < SLACK
    np.testing.assert_allclose(np.diff([item.frame.time for item in captured]), 1 / FPS, atol=0.01)
    assert captured[0].at - server.sent[round(float(captured[0].frame.image.mean()))] < SLACK  # nothing that waited


def test_rtsp_stall_keeps_its_duration(server):
    server.publish((n, 3 if n == 100 else 1 / FPS, n / FPS + (3 if n >= 100 else 0)) for n in range(250))
    captured = read(open_live(server.address), count=90)
    assert np.abs(errors(captured, server.sent)).max() < SLACK
    steps = np.sort(np.diff([item.frame.time for item in captured]))
    np.testing.assert_allclose(steps, [*[1 / FPS] * 88, 3 + 1 / FPS], atol=0.01)


def test_rtsp_camera_reconnects(server, monkeypatch):
    """It sends image 140 until that is received, however long it takes, and then goes on."""
    monkeypatch.setattr(container, "TIMEOUT", 2.0)
    monkeypatch.setattr(module, "MIN_RETRY_S", 0.2)
    server.publish(even(range(125)))
    source = open_live(server.address)
    stop, captured, messages = threading.Event(), [], set()
    returned = None

    def until_found():
        number = 140
        for n in count():
            yield number, 1 / FPS, 5 + n / FPS
            number += any(number_of(item) > 130 for item in captured)  # the images before are 0 to 124

    watchdog = threading.Timer(300, stop.set)
    watchdog.start()
    for item in source.frames(stop):
        captured.append(item)
        messages.add(source.message)
        if len(captured) == 25:
            server.stop()
            returned = threading.Timer(3.0, lambda: (server.start(), server.publish(until_found())))
            returned.start()
        if len(captured) == 60:
            stop.set()
    watchdog.cancel()
    returned.join()
    assert len(captured) == 60
    once = [item for item in captured if not 139 <= number_of(item) <= 141]  # within the rounding of the codec
    assert np.abs(errors(once, server.sent)).max() < SLACK
    assert np.diff([item.frame.time for item in captured]).max() > 3
    assert source.message == ""
