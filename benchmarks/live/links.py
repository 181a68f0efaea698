"""Long run of all links with receivers that come and go: latency, losses and memory (docs/guides/links.md).

    python -m benchmarks.live links --minutes 60

A loop without networks gets frames of a moving person; every other 5 seconds, a second loop without links gets them,
so that both are measured under the same load. A second process is the receivers: each is there for 5 to 20 seconds and
away as long. On a loaded machine, give the program real-time priority (`chrt -r 10`).
"""

import json
import random
import socket
import subprocess
import sys
import threading
import time
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections import deque
from contextlib import suppress
from pathlib import Path

import numpy as np

from pose.live import LiveLoop, PushedFrames
from pose.live.links import open_links
from tests.live.live_fakes import FakePipeline, FakeSession
from tests.pose_fakes import STANDING, seen_result

SIZE, PORTS = (640, 480), {"vmc": 39639, "vrchat": 9100, "osc": 9101, "mqtt": 18830, "foxglove": 18765}
TURN_S = 5.0


class Pipeline(FakePipeline):
    """One person who walks to and fro, without networks."""

    def session(self, size):
        return Session(self, size)


class Session(FakeSession):
    def track(self, frame):
        return frame

    def lift(self, frame):
        phase = np.sin(frame.time)
        body = STANDING.copy()
        body[[2, 3]] += np.array([0, 0, 0.2 * phase], np.float32)
        return [seen_result(np.array([[phase, 0, 4]]), body, frame.index, frame.time)]

    def flush(self):
        return []


def receivers() -> None:
    """Receive in threads, each for a while, then go away for a while, until stdin closes."""

    def udp(port):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind(("127.0.0.1", port))
            one.settimeout(0.5)
            while True:
                with suppress(TimeoutError):
                    one.recv(65536)
                yield

    def broker():
        with socket.create_server(("127.0.0.1", PORTS["mqtt"])) as server:
            server.settimeout(0.5)
            client = None
            try:
                while True:
                    with suppress(OSError):
                        if client is None:
                            client, _ = server.accept()
                            client.settimeout(0.5)
                            client.recv(4096)
                            client.sendall(b"\x20\x02\x00\x00")
                        else:
                            client.recv(65536)
                    yield
            finally:
                if client is not None:
                    client.close()

    def foxglove():
        from websockets.sync.client import connect

        with connect(f"ws://127.0.0.1:{PORTS['foxglove']}", subprotocols=["foxglove.sdk.v1"]) as client:
            while True:
                with suppress(TimeoutError):
                    message = client.recv(timeout=0.5)
                    if isinstance(message, str) and '"advertise"' in message:
                        channels = json.loads(message)["channels"]
                        wanted = [{"id": one["id"], "channelId": one["id"]} for one in channels]
                        client.send(json.dumps({"op": "subscribe", "subscriptions": wanted}))
                yield

    def lsl():
        import pylsl

        found = pylsl.resolve_byprop("name", "pose_person_1", timeout=5)
        inlet = pylsl.StreamInlet(found[0], max_buflen=5)
        while True:
            inlet.pull_sample(timeout=0.5)
            yield

    def come_and_go(make, seed):
        chance = random.Random(seed)
        while True:
            with suppress(Exception):
                end = time.monotonic() + chance.uniform(5, 20)
                one = make()
                while time.monotonic() < end:
                    next(one)
                one.close()
            time.sleep(chance.uniform(5, 20))

    makers = [lambda port=PORTS[name]: udp(port) for name in ("vmc", "vrchat", "osc")] + [broker, foxglove, lsl]
    for seed, make in enumerate(makers):
        threading.Thread(target=come_and_go, args=(make, seed), daemon=True).start()
    sys.stdin.read()


def memory_mib() -> float:
    text = Path("/proc/self/status").read_text()
    return int(text.partition("VmRSS:")[2].split()[0]) / 1024


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--fps", type=float, default=15)
    parser.add_argument("--receivers", action="store_true", help=SUPPRESS)


def main(given: Namespace) -> None:
    if given.receivers:
        receivers()
        return
    other = subprocess.Popen([sys.executable, "-m", "benchmarks.live", "links", "--receivers"], stdin=subprocess.PIPE)
    send = ",".join(f"{name}={port}" for name, port in PORTS.items()) + ",lsl"
    sources = {name: PushedFrames(name, capacity=4) for name in ("linked", "bare")}
    loops = {name: LiveLoop(Pipeline(), source) for name, source in sources.items()}
    links = open_links(loops["linked"], send)
    latencies = {name: deque(maxlen=100_000) for name in loops}
    threads = []
    for name, loop in loops.items():
        mailbox = loop.subscribe(8)

        def read(mailbox=mailbox, into=latencies[name]) -> None:
            for live in mailbox:
                into.append(1000 * live.latency)

        threads.append(threading.Thread(target=read, daemon=True))
        threads[-1].start()
    memory, begun, count = [], time.monotonic(), 0
    with loops["linked"], loops["bare"]:
        while (now := time.monotonic() - begun) < 60 * given.minutes:
            name = ("linked", "bare")[int(now / TURN_S) % 2]
            sources[name].push(np.zeros((SIZE[1], SIZE[0], 3), np.uint8))
            if count % round(60 * given.fps) == 0:
                memory.append(round(memory_mib(), 1))
                print(f"{now / 60:.0f} min, {memory[-1]} MiB", file=sys.stderr, flush=True)
            count += 1
            time.sleep(max(0.0, begun + count / given.fps - time.monotonic()))
        statuses = {name: loop.status() for name, loop in loops.items()}
    for link in links:
        link.close()
    other.stdin.close()
    other.wait(30)
    report = {
        "minutes": given.minutes, "fps": given.fps,
        "latency_ms": {
            name: {f"p{part}": round(float(np.percentile(values, part)), 2) for part in (50, 95, 99)}
            for name, values in latencies.items()
        },
        "largest_difference_up_to_p95_ms": round(float(np.max(
            np.subtract(*(np.percentile(latencies[name], np.arange(1, 96)) for name in ("linked", "bare")))
        )), 2),
        "processed": {name: status.processed for name, status in statuses.items()},
        "dropped_by_loop": {name: status.dropped for name, status in statuses.items()},
        "lost": {link.name: link.lost for link in links}, "problems": {link.name: link.problem for link in links},
        "memory_mib": memory,
    }  # fmt: skip
    print(json.dumps(report, indent=1))
