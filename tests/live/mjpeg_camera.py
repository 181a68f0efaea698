"""A camera on loopback that sends MJPEG over HTTP as cheap ones do: images without time stamps, at its own pace."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import cv2
from live_fakes import picture


class Shot(NamedTuple):
    """An image to send: its number, how long to wait before it, and its (width, height)."""

    number: int
    wait: float = 0.04
    size: tuple[int, int] = (64, 48)


class MjpegCamera(ThreadingHTTPServer):
    """Sends to each who connects what `script` gives for this connection, 0, 1, ...; then it hangs up.

    sent: for each image, in order, its number and when it was sent, s on the clock of `time.monotonic`.
    """

    daemon_threads = True

    def __init__(self, script: Callable[[int], Iterator[Shot]]) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.script, self.connections = script, 0
        self.sent: list[tuple[int, float]] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/video"


class _Connection(BaseHTTPRequestHandler):
    server: MjpegCamera

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
        self.end_headers()
        number, self.server.connections = self.server.connections, self.server.connections + 1
        with suppress(OSError):  # who has enough goes
            for shot in self.server.script(number):
                time.sleep(shot.wait)
                data = cv2.imencode(".jpg", picture(shot.number, shot.size))[1].tobytes()
                head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(data)}\r\n\r\n"
                self.server.sent.append((shot.number, time.monotonic()))
                self.wfile.write(head.encode() + data + b"\r\n")

    def log_message(self, *_args: object) -> None:
        """Nothing on the terminal."""


@contextmanager
def mjpeg_camera(script: Callable[[int], Iterator[Shot]]) -> Iterator[MjpegCamera]:
    """It runs within the block."""
    with MjpegCamera(script) as camera:
        thread = threading.Thread(target=partial(camera.serve_forever, poll_interval=0.01), daemon=True)
        thread.start()
        try:
            yield camera
        finally:
            camera.shutdown()
