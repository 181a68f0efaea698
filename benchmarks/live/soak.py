"""Half an hour of a cheap camera: MJPEG over HTTP with stalls, size changes and broken connections, and two clients.

    python -m benchmarks.live soak

The camera is a process of its own, and so is `pose-webcam --headless --ws`; one client reads everything, the other one
sleeps for 8 s of every minute. At the end it compares what the camera sent, and when, with what the clients got: drift
of time, memory, and images that are missing without being counted. docs/studies/live.md quotes the figures.
"""

import json
import multiprocessing
import select
import socket
import subprocess
import sys
import tempfile
import threading
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from benchmarks.common.command import VIDEOS
from pose.live.subscriber import QUEUE_CAPACITY
from pose.video import open_source

SIZES = ((192, 248), (144, 186))  # (width, height) px
RESIZE_SECONDS = 20.0
STALL_SECONDS = 45.0  # interval of stalls
STALLS = (1.5, 3.0, 12.0)  # s; the last kind is longer than a stream may be silent
BREAK_SECONDS = 240.0  # after which the camera hangs up
ASLEEP = (30.0, 38.0)  # s of each minute in which the slow client reads nothing
Sent = NDArray[np.float64]
MOST_DRIFT, MOST_GROWTH = 0.05, 0.02


def camera(clip: Path, rate: float, answers: Connection) -> None:
    """Serves until it is asked for what it sent, which is (n,) s since 1970."""
    with open_source(str(clip)) as source:
        fps = source.info.fps
        frames = [frame.image for frame in source][: round(20 * fps) : max(1, round(fps / rate))]
    images = [
        [cv2.imencode(".jpg", cv2.cvtColor(cv2.resize(f, size), cv2.COLOR_RGB2BGR))[1].tobytes() for f in frames]
        for size in SIZES
    ]
    sent: list[float] = []
    begun = time.monotonic()

    def shots() -> Iterator[tuple[bytes, float]]:
        """Images, and how long to wait before each. Half of the intervals are short, half long."""
        number, connected, stalled = 0, time.monotonic(), int((time.monotonic() - begun) / STALL_SECONDS)
        while (now := time.monotonic()) - connected < BREAK_SECONDS:
            wait = (0.6, 1.4)[number % 2] / rate
            if (stall := int((now - begun) / STALL_SECONDS)) > stalled:
                wait, stalled = STALLS[stall % len(STALLS)], stall
            size = int((now - begun) / RESIZE_SECONDS) % len(SIZES)
            yield images[size][number % len(frames)], wait
            number += 1

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=frame")
            self.end_headers()
            try:
                for data, wait in shots():
                    time.sleep(wait)
                    if select.select([self.connection], [], [], 0)[0]:
                        return  # the other side hung up, as it does when nothing comes for long
                    head = f"--frame\r\nContent-Type: image/jpeg\r\nContent-Length: {len(data)}\r\n\r\n"
                    moment = time.time()
                    self.wfile.write(head.encode() + data + b"\r\n")
                    sent.append(moment)
            except OSError:
                return

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    answers.send(server.server_address[1])
    answers.recv()
    answers.send(np.array(sent))


class Client(threading.Thread):
    """Reads until the server hangs up. heard: of each frame its `time`, its `clock` and its size."""

    def __init__(self, port: int, sleepy: bool) -> None:
        super().__init__(daemon=True)
        self.heard: dict[int, tuple[float, float, tuple[int, int]]] = {}
        self._port, self._sleepy = port, sleepy

    def run(self) -> None:
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 13)
        line.connect(("127.0.0.1", self._port))
        begun = time.monotonic()
        with suppress(ConnectionClosed), connect(f"ws://127.0.0.1:{self._port}", sock=line, max_queue=1) as client:
            for text in client:
                message = json.loads(text)
                width, height = message["size"]
                self.heard[message["frame"]] = message["time"], message["clock"], (width, height)
                second = (time.monotonic() - begun) % 60
                if self._sleepy and ASLEEP[0] < second < ASLEEP[1]:
                    time.sleep(ASLEEP[1] - second)


def lags(client: Client, sent: Sent) -> Sent:
    """s by which the time of each frame is behind the sending of its image: the last one sent before it arrived."""
    times, clocks = (np.array([value[column] for value in client.heard.values()]) for column in (0, 1))
    images = sent[np.searchsorted(sent, clocks) - 1]
    return clocks[0] + (times - times[0]) - images


def least(client: Client, sent: Sent, frames: slice) -> tuple[int, float]:
    """Of some frames: how many images the camera sent that are none of them or before, and s that times are behind.

    Both at the least. A busy machine reads images late, and then more of them were sent, but it does not always: what
    is lost, or drifts, is so for all frames from then on.
    """
    numbers = np.array(list(client.heard))[frames]
    times, clocks = (np.array([value[column] for value in client.heard.values()]) for column in (0, 1))
    ahead = int((np.searchsorted(sent, clocks[frames]) - 1 - numbers).min())
    begun = clocks[0] - times[0]
    return ahead, float((begun + times[frames] - sent[numbers + ahead]).min())


def measure(clip: Path, seconds: float, rate: float) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=camera, args=(clip, rate, theirs), daemon=True)
    process.start()
    address = f"http://127.0.0.1:{ours.recv()}/video"
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        words = [sys.executable, "-c", "from pose_apps.webcam.command import main; main()", "--headless", "--ws", "0"]
        words += ["--source", address, "--seconds", str(seconds), "--report", str(report)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as run:
            assert run.stdout is not None
            port = int(run.stdout.readline().rpartition(":")[2])  # poses at ws://127.0.0.1:PORT
            clients = [Client(port, sleepy=False), Client(port, sleepy=True)]
            for client in clients:
                client.start()
            print(run.communicate(timeout=seconds + 300)[0], flush=True)
        for client in clients:
            client.join(60)
        ours.send(None)
        sent = ours.recv()
        process.join(10)
        return summed_up(json.loads(report.read_text()), clients, sent)


def summed_up(report: dict[str, Any], clients: list[Client], sent: Sent) -> dict[str, Any]:
    behind = lags(clients[0], sent)
    part = max(len(behind) // 6, 1)
    (ahead, early), (ahead_at_end, late_at_end) = (
        least(clients[0], sent, s) for s in (slice(part), slice(-part, None))
    )
    drift = late_at_end - early
    memory = report["memory_mib"]
    growth = memory["highest_after"] / memory["settled"] - 1
    images = max(0, ahead_at_end - ahead - report["left_out"])
    # Of the frames before its first one it is unknown whether a client was late, or the frames dropped.
    unknown = sum(min(client.heard) for client in clients)
    heard = sum(len(client.heard) for client in clients)
    messages = max(0, len(clients) * report["processed"] - heard - report["lost"]["--ws"] - unknown)
    sizes = [size for _, _, size in clients[0].heard.values()]
    return {
        **{key: report[key] for key in ("seconds", "frames_in", "left_out", "dropped", "processed", "lost")},
        "sent": len(sent),
        "heard": [len(client.heard) for client in clients],
        "size_changes": sum(one != other for one, other in pairwise(sizes)),
        "troubles": len(report["messages"]),
        "latency_ms": report["latency_ms"],
        "behind_ms": [round(1000 * float(np.percentile(behind, percent)), 1) for percent in (50, 95)],
        "drift_ms": round(1000 * drift, 1),
        "memory_mib": memory,
        "memory_growth": round(growth, 4),
        "pictures_not_counted": images,
        "messages_not_counted": messages,
        "cpu_seconds": report["cpu_seconds"],
        # A client that did not read for GOODBYE_SECONDS at the end misses what waited for it, and what was under way.
        "holds": abs(drift) <= MOST_DRIFT
        and growth <= MOST_GROWTH
        and images == 0
        and messages <= len(clients) * (QUEUE_CAPACITY + 2),
    }


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--clip", type=Path, default=VIDEOS / "dance.mp4", help="what the camera sees")
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--rate", type=float, default=6.0, help="images a second")


def main(given: Namespace) -> int:
    result = measure(given.clip, given.seconds, given.rate)
    print(json.dumps(result, indent=2))
    return 0 if result["holds"] else 1
