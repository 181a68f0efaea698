"""`pose-webcam --web` under fire: floods at 1,024 descriptors, hostile sessions, large pictures; and its sleep."""

import asyncio
import contextlib
import os
import re
import resource
import signal
import socket
import ssl
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
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Server:
    """The running command. errors: the lines of its standard error so far."""

    process: subprocess.Popen
    port: int
    errors: list[str]

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
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0
        assert time.monotonic() - began < 10
        assert not [line for line in self.errors if "Traceback" in line or "Error" in line], self.errors


@pytest.fixture
def serve(command_line, weights_dir, tmp_path) -> Iterator[Callable[..., Server]]:
    """Starts the command at a limit of 1,024 descriptors; this process gets more, to flood it."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, limits[1]), limits[1]))
    with ExitStack() as stack:
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)

        def begin(*arguments: object) -> Server:
            words = command_line("webcam", "--web", "--port", 0, *arguments)
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
            return Server(process, int(found[1]), errors)

        yield begin


def noisy_jpeg(width: int, height: int, quality: int = 30) -> bytes:
    image = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    done, data = cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert done
    return data.tobytes()


def flood(port: int, beginnings: list[bytes], count: int, stop: threading.Event, opened: list[int]) -> None:
    """Hold `count` connections that begin so and never go on; who is thrown out comes again."""
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


async def follow(server: Server, seconds: float) -> tuple[list[float], int]:
    """What a good guest sees meanwhile: how long the page takes each time, s, and how many poses come."""
    waits: list[float] = []
    end = time.monotonic() + seconds
    timeout = aiohttp.ClientTimeout(total=10)
    async with aiohttp.ClientSession(timeout=timeout) as session, server.live(session) as live:
        results = 0

        async def count() -> None:
            nonlocal results
            async for message in live:
                if message.type is aiohttp.WSMsgType.BINARY:
                    results += 1
                    await live.send_str('{"type":"ack"}')

        counting = asyncio.create_task(count())
        while time.monotonic() < end:
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
    return waits, results


BEGINNINGS = [
    b"",
    b"GET / HTTP/1.1\r\nHost: loc",
    b"POST /session HTTP/1.1\r\nHost: localhost\r\nContent-Le",
    b"\x16\x03\x01",
]


def test_good_guests_are_served_during_a_flood(serve, videos):
    server = serve("--source", videos / "dance.mp4", "--loop")
    stop, opened = threading.Event(), [0]
    _, results_before = asyncio.run(follow(server, 5))
    flooding = threading.Thread(target=flood, args=(server.port, BEGINNINGS, 1100, stop, opened))
    flooding.start()
    try:
        while opened[0] < 1100:
            time.sleep(0.05)
        memory = server.megabytes
        waits, results = asyncio.run(follow(server, 15))
        most = server.descriptors
        grown = server.megabytes - memory
    finally:
        stop.set()
        flooding.join()
    assert opened[0] > 1500
    assert max(waits) < 2.0
    assert results / 15 > 0.3 * results_before / 5  # the flood itself takes a core of the machine
    assert most < 500
    assert grown < 40
    assert len(server.errors) <= 3
    assert any("closed to make room" in line for line in server.errors)
    server.end()


def test_encryption_that_is_never_agreed_shuts_nobody_out(serve, tmp_path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    try:
        subprocess.run([*words, "-out", cert, "-keyout", key], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no openssl on this machine, to make a certificate with")
    server = serve("--cert", cert, "--key", key)
    trust = ssl.create_default_context(cafile=str(cert))
    trust.check_hostname = False
    held = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(600)]
    try:
        for guest in held[::2]:
            with contextlib.suppress(OSError):
                guest.sendall(b"\x16\x03\x01\x02\x00\x01")
        for _ in range(5):
            began = time.monotonic()
            with (
                socket.create_connection(("127.0.0.1", server.port), timeout=5) as plain,
                trust.wrap_socket(plain) as guest,
            ):
                guest.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                assert guest.recv(12) == b"HTTP/1.1 200"
            assert time.monotonic() - began < 2
        assert server.descriptors < 500
    finally:
        for guest in held:
            guest.close()
    server.end()


def break_off(live: aiohttp.ClientWebSocketResponse) -> None:
    """With a reset, if the connection is still there."""
    connection = live._response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()


def strange(rng: np.random.Generator) -> bytes | str:
    """A message that a page might not send."""
    texts = [
        '{"type":"ack"}',
        '{"type":"record","on":true}',
        '{"type":"record","on":false}',
        '{"type":"ping","time":1}',
    ]
    match int(rng.integers(6)):
        case 0:
            return rng.bytes(int(rng.integers(1, 4000)))
        case 1:
            return "".join(chr(c) for c in rng.integers(1, 0xD000, int(rng.integers(1, 4000))))
        case 2:
            return "[" * int(rng.integers(1, 4000))
        case 3:
            text = texts[rng.integers(len(texts))]
            return text.replace(text[rng.integers(len(text))], "\\ud800", 1)
        case 4:
            picture = bytearray(noisy_jpeg(64, 48))
            picture[rng.integers(len(picture))] = rng.integers(256)
            return struct.pack("<d", float(rng.normal() * 10.0 ** rng.integers(0, 20))) + bytes(picture)
        case _:
            return texts[rng.integers(len(texts))]


def test_hostile_sessions_end_and_leave_others_alone(serve, rng):
    server = serve("--clients", 8)

    async def attack(session: aiohttp.ClientSession, end: float) -> int:
        sessions = 0
        while time.monotonic() < end:
            with contextlib.suppress(aiohttp.ClientError, ConnectionError):
                async with server.live(session) as live:
                    sessions += 1
                    for _ in range(int(rng.integers(1, 30))):
                        message = strange(rng)
                        await (live.send_str(message) if isinstance(message, str) else live.send_bytes(message))
                    if rng.random() < 0.3:
                        break_off(live)
        return sessions

    async def good(session: aiohttp.ClientSession, end: float) -> tuple[int, float]:
        answered, slowest, number = 0, 0.0, 0
        picture = noisy_jpeg(320, 240)
        async with server.live(session) as live:
            while time.monotonic() < end:
                began = time.monotonic()
                await live.send_bytes(struct.pack("<d", number / 30) + picture)
                number += 1
                async with asyncio.timeout(20):
                    while '"result"' not in (await live.receive_str()):
                        pass
                await live.send_str('{"type":"ack"}')
                answered, slowest = answered + 1, max(slowest, time.monotonic() - began)
        return answered, slowest

    async def test() -> tuple[int, int, float]:
        async with aiohttp.ClientSession() as session:
            await good(session, time.monotonic() + 3)
            end = time.monotonic() + 20
            (answered, slowest), *attacks = await asyncio.gather(
                good(session, end), *(attack(session, end) for _ in range(5))
            )
        return sum(attacks), answered, slowest

    sessions, answered, slowest = asyncio.run(test())
    assert sessions > 50
    assert answered > 20
    assert slowest < 5
    assert server.descriptors < 200
    server.end()


def test_memory_of_greedy_browsers_is_bounded(serve):
    server = serve("--clients", 6)
    picture = noisy_jpeg(1920, 1920, 10)

    async def greedy(session: aiohttp.ClientSession, end: float) -> None:
        """Sends the largest pictures as fast as they are taken, and reads nothing."""
        live = await server.live(session)
        number = 0
        while time.monotonic() < end and not live.closed:
            number += 1
            with contextlib.suppress(TimeoutError, ConnectionError):
                async with asyncio.timeout(2):
                    await live.send_bytes(struct.pack("<d", number / 30) + picture)
        break_off(live)

    async def test() -> tuple[float, float]:
        async with aiohttp.ClientSession() as session:
            await greedy(session, time.monotonic() + 3)  # the networks have their memory now
            before, highest = server.megabytes, 0.0
            end = time.monotonic() + 15
            guests = [asyncio.create_task(greedy(session, end)) for _ in range(6)]
            while time.monotonic() < end:
                highest = max(highest, server.megabytes)
                await asyncio.sleep(0.05)
            await asyncio.gather(*guests)
        return before, highest

    before, highest = asyncio.run(test())
    assert highest - before < 6 * 35  # three pictures of 11 MB for each
    server.end()


def test_processor_is_left_alone_while_nobody_looks(serve, videos):
    server = serve("--source", videos / "dance.mp4", "--loop")

    def used(seconds: float) -> float:
        """Cores."""
        before = server.cpu_seconds
        time.sleep(seconds)
        return (server.cpu_seconds - before) / seconds

    time.sleep(2)
    assert used(5) < 0.03  # before the first one looks

    _, results = asyncio.run(follow(server, 8))
    assert results > 20
    time.sleep(12)
    assert used(5) < 0.03  # and after the last one has gone
    server.end()
