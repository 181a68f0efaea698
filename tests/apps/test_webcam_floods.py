"""`pose-webcam --web` under fire: floods at 1,024 descriptors, hostile sessions, large images; and its sleep."""

import asyncio
import contextlib
import itertools
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import cv2
import numpy as np
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="measures by /proc, which only Linux has"),
]
DESCRIPTORS = 1024
PATIENCE = 300.0  # s, for what takes seconds, on a busy machine
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Server:
    """The running command. errors: the lines of its standard error so far; all of them once `reader` has ended."""

    process: subprocess.Popen
    port: int
    errors: list[str]
    reader: threading.Thread

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def megabytes(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * resource.getpagesize() / 1e6

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def live(self, session: aiohttp.ClientSession):
        return session.ws_connect(f"{self.address}/live", headers={"Origin": self.address})

    def end(self) -> None:
        """As a system ends it: in good order, soon, and without a word that is not one of its lines."""
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        self.reader.join()
        assert not [line for line in self.errors if "Traceback" in line or "Error" in line], self.errors


@contextlib.contextmanager
def flooded(port: int, beginnings: list[bytes], count: int) -> Iterator[list[int]]:
    """Within, the flood is there, and goes on; how many connections it has opened."""
    stop, opened = threading.Event(), [0]
    flooding = threading.Thread(target=flood, args=(port, beginnings, count, stop, opened))
    flooding.start()
    try:
        while opened[0] < count:
            time.sleep(0.05)
        yield opened
    finally:
        stop.set()
        flooding.join()


@pytest.fixture
def serve(command_line, weights_dir, tmp_path) -> Iterator[Callable[..., Server]]:
    """Starts the command at a limit of 1,024 descriptors; this process gets more, to flood it."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, limits[1]), limits[1]))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)

        def begin(*arguments: object) -> Server:
            words = command_line("webcam", "--web", "--port", 0, "--out", tmp_path, *arguments)
            process = subprocess.Popen(
                ["sh", "-c", f'ulimit -n {DESCRIPTORS} && exec "$@"', "sh", *words],
                env={**os.environ, "POSE_WEIGHTS_DIR": str(weights_dir), "TMPDIR": str(tmp_path)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            errors: list[str] = []
            reader = threading.Thread(target=lambda: errors.extend(process.stderr), daemon=True)
            reader.start()
            stack.callback(reader.join, 10)
            line = process.stdout.readline()
            found = re.search(r":(\d+)/ in a browser", line)
            assert found, (line, errors)
            return Server(process, int(found[1]), errors, reader)

        yield begin


def noisy_jpeg(width: int, height: int, quality: int = 30) -> bytes:
    image = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    done, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done
    return data.tobytes()


def flood(port: int, beginnings: list[bytes], count: int, stop: threading.Event, opened: list[int]) -> None:
    """Hold `count` connections that begin so and never go on; who is thrown out comes again. opened: so many."""
    held: list[socket.socket] = []
    while not stop.is_set():
        guest = socket.socket()
        try:
            guest.settimeout(2)
            guest.connect(("127.0.0.1", port))
            guest.sendall(beginnings[opened[0] % len(beginnings)])
        except OSError:
            guest.close()
        else:
            held.append(guest)
        opened[0] += 1
        if opened[0] > count:
            time.sleep(0.002)
        while len(held) > count:
            held.pop(0).close()
    for guest in held:
        guest.close()


async def follow(server: Server, enough: Callable[[int, int], bool]) -> list[float]:
    """What a good guest sees meanwhile: how long the page took each time, s. enough: of so many pages and poses."""
    waits: list[float] = []
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(timeout=timeout) as session, server.live(session) as live:
        results = 0

        async def count() -> None:
            nonlocal results
            async for message in live:
                if message.type is aiohttp.WSMsgType.BINARY:
                    results += 1
                    await live.send_str('{"type":"ack"}')

        counting = asyncio.create_task(count())
        async with asyncio.timeout(PATIENCE):
            while not enough(len(waits), results):
                began = time.monotonic()
                async with session.get(server.address, headers={"Connection": "close"}) as page:
                    assert page.status == 200
                    await page.read()
                waits.append(time.monotonic() - began)
                await asyncio.sleep(0.1)
        assert not live.closed
        counting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await counting
    return waits


BEGINNINGS = [
    b"",
    b"GET / HTTP/1.1\r\nHost: loc",
    b"POST /session HTTP/1.1\r\nHost: localhost\r\nContent-Le",
    b"\x16\x03\x01",
]


def usually(waits: list[float]) -> float:
    """A machine may stand still for one of them. Who finds no room waits each time."""
    return sorted(waits)[len(waits) // 2]


def test_web_server_serves_clients_during_a_connection_flood(serve, videos):
    server = serve("--source", videos / "dance.mp4", "--loop")
    asyncio.run(follow(server, lambda pages, poses: pages > 10 and poses > 20))  # the networks have their memory now
    with flooded(server.port, BEGINNINGS, 1100) as opened:
        memory = server.megabytes
        waits = asyncio.run(follow(server, lambda pages, poses: pages > 50 and poses > 40 and opened[0] > 1500))
        most = server.descriptors
        grown = server.megabytes - memory
    assert usually(waits) < 8.0  # a connection without requests keeps its place for 10 s
    assert most < 500
    assert grown < 40
    server.end()


def break_off(live: aiohttp.ClientWebSocketResponse) -> None:
    """With a reset, if the connection is still there."""
    connection = live._response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


async def answered(live: aiohttp.ClientWebSocketResponse, number: int, picture: bytes) -> None:
    """Send an image as the page does, and wait for its poses."""
    await live.send_bytes(struct.pack("<d", number / 30) + picture)
    async with asyncio.timeout(PATIENCE):
        while '"result"' not in (await live.receive_str()):
            pass
    await live.send_str('{"type":"ack"}')


def test_memory_for_clients_that_never_read_is_bounded(serve):
    """Of 3 GB of images, three of 11 MB are kept for each at most, and what the C library makes of them.

    Images count and not seconds: each browser sends more than sockets (25) and the lifter's refinement (9) can hold.
    """
    server = serve("--clients", 6)
    picture, taken = noisy_jpeg(1920, 1920, 10), [0] * 6

    async def greedy(session: aiohttp.ClientSession, over: asyncio.Event, guest: int) -> None:
        """Sends the largest images as fast as they are taken, and reads nothing."""
        live = await server.live(session)

        async def send() -> None:
            for number in itertools.count():
                await live.send_bytes(struct.pack("<d", number / 30) + picture)
                taken[guest] += 1
                await asyncio.sleep(0)

        # Not called off while it waits: aiohttp then gives the next one that waits the same end.
        sending = asyncio.create_task(send())
        await over.wait()
        break_off(live)
        with contextlib.suppress(ConnectionError):
            await sending
        await live.close()

    async def test() -> tuple[float, float]:
        over = asyncio.Event()
        async with aiohttp.ClientSession() as session:
            async with server.live(session) as live:
                for number in range(3):
                    await answered(live, number, picture)
            before, highest = server.megabytes, 0.0  # the networks have their memory now
            guests = [asyncio.create_task(greedy(session, over, guest)) for guest in range(6)]
            async with asyncio.timeout(PATIENCE):
                while min(taken) < 45:
                    highest = max(highest, server.megabytes)
                    await asyncio.sleep(0.05)
            over.set()
            await asyncio.gather(*guests)
        return before, highest

    before, highest = asyncio.run(test())
    assert highest - before < 6 * 60
    server.end()
