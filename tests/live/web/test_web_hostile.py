"""Hostile clients: invalid, incomplete or too many requests; and which clients are served meanwhile."""

import asyncio
import contextlib
import gzip
import logging
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from pathlib import Path

import pytest
from web_fakes import PATIENCE, TOKEN, Clip, FakePipeline, picture_message, port_of, receive, run, serving, until

from pose.live import listener
from pose.live.web.jpeg import decode_jpeg
from pose.live.web.messages import MAX_UNANSWERED
from pose.live.web.server import MAX_DECODERS


async def ask(browser, request: bytes) -> bytes:
    """All that comes back on a connection of its own, which the server ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(browser))
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    return answer


def head(browser, line: str, *fields: bytes) -> bytes:
    """A request of our own page, without its body."""
    own = (f"Host: 127.0.0.1:{port_of(browser)}", f"Origin: {browser.address}", "Connection: close")
    return b"\r\n".join([line.encode(), *(field.encode() for field in own), *fields, b"", b""])


def post(browser, body: bytes, *fields: bytes) -> bytes:
    return head(browser, "POST /session HTTP/1.1", b"Content-Length: %d" % len(body), *fields) + body


def assert_refused(answer: bytes, caplog) -> None:
    """4xx, and nothing about the server's internals, neither in the answer nor in the log."""
    assert answer.split()[1].startswith(b"4"), answer
    assert b"Traceback" not in answer
    assert [record for record in caplog.records if record.exc_info] == []


BODIES = {
    "half a character": (b'{"token":"\\ud800aaaaaaaaaaaaaaaaaaaaaaaa"}',),
    "deep nesting": (b"[" * 4000,),
    "unknown charset": (b"{}", b"Content-Type: application/json; charset=foo"),
    "a charset that is none": (b"{}", b"Content-Type: application/json; charset=base64"),
    "bytes in the type": (b"{}", b"Content-Type: \xff\xfe"),
    "no UTF-8": (b"\xff\xfe{}",),
    "no gzip": (b"no gzip at all", b"Content-Encoding: gzip"),
    "damaged gzip": (gzip.compress(b"{}" * 100)[:-12] + b"xxxx", b"Content-Encoding: gzip"),
    "no deflate": (b"no deflate at all", b"Content-Encoding: deflate"),
    "damaged deflate": (zlib.compress(b"{}" * 100)[:-3], b"Content-Encoding: deflate"),
    "no brotli": (b"no brotli", b"Content-Encoding: br"),
    "a bomb": (gzip.compress(bytes(3_000_000)), b"Content-Encoding: gzip"),
    "a number of 4,000 digits": (b'{"token":' + b"1" * 4000 + b"}",),
    "too much": (b" " * 5000,),
    "another form": (b"x", b"Content-Type: multipart/form-data"),
    "unknown expectation": (b"{}", b"Expect: a miracle"),
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_invalid_request_body_is_rejected(body, caplog):
    async def test():
        async with serving(token=TOKEN) as browser:
            assert_refused(await ask(browser, post(browser, *body)), caplog)
            assert await browser.sign_in(TOKEN) == 204

    run(test)


NO_REQUESTS = {
    "encryption": b"\x16\x03\x01\x02\x00\r\n\r\n",
    "a long line": b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
    "many fields": b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(300)) + b"\r\n",
    "two lengths": b"POST /session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
    "length and chunks": b"POST /session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a zero byte": b"GET / HTTP/1.1\r\nHost: local\x00host\r\n\r\n",
    "another method": b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "another protocol": b"GET / RTSP/1.0\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
    "a host of bytes": b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\nConnection: close\r\n\r\n",
    "an address that is none": b"GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tunnel": b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
}


@pytest.mark.parametrize("request_", NO_REQUESTS.values(), ids=NO_REQUESTS)
def test_invalid_request_is_rejected(request_, caplog):
    async def test():
        async with serving() as browser:
            assert_refused(await ask(browser, request_), caplog)

    run(test)


def reset(port: int, data: bytes, **_) -> None:
    """Send, and break off with a reset in place of an end."""
    with socket.create_connection(("127.0.0.1", port)) as guest:
        guest.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        guest.sendall(data)


def upgrade(browser) -> bytes:
    return (
        head(browser, "GET /live HTTP/1.1", b"Upgrade: websocket", b"Sec-WebSocket-Version: 13")
        .replace(b"Connection: close", b"Connection: Upgrade")
        .replace(b"\r\n\r\n", b"\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
    )


@pytest.mark.parametrize("source", [False, True], ids=["camera", "source"])
def test_reset_handshakes_are_cleaned_up(source, caplog):
    async def test():
        async with serving(source=Clip() if source else None, clients=8) as browser:
            port, whole = port_of(browser), upgrade(browser)
            for round_ in range(40):
                await asyncio.to_thread(reset, port, whole if round_ % 2 else whole[: 20 + round_])
            await until(lambda: not browser.server._sockets)
            async with browser.live() as live:
                await receive(live, "hello")

    run(test)
    assert [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("begun", [b"", b"GET /", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "], ids=range(3))
def test_partial_request_times_out(begun, monkeypatch):
    monkeypatch.setattr(listener, "IDLE_SECONDS", 0.4)

    async def test():
        async with serving() as browser:
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(browser))
            writer.write(begun)
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), PATIENCE) == b""
            writer.close()

    run(test)


def test_partial_body_times_out(monkeypatch, caplog):
    monkeypatch.setattr("pose.live.web.server.BODY_TIMEOUT_S", 0.3)

    async def test():
        async with serving(token=TOKEN) as browser:
            request = post(browser, b"{}" + b" " * 100)
            assert_refused(await ask(browser, request[:-50]), caplog)

    run(test)


def test_idle_connections_are_closed_for_new_requests(monkeypatch):
    monkeypatch.setattr(listener, "MAX_CONNECTIONS", 20)
    monkeypatch.setattr(listener, "IDLE_SECONDS", 600.0)  # no connection ends by timeout

    async def test():
        async with serving() as browser, browser.live() as live:
            await receive(live, "hello")
            idle = []
            for number in range(60):
                reader, writer = await asyncio.open_connection("127.0.0.1", port_of(browser))
                writer.write(b"" if number % 2 else b"GET / HTTP/1.1\r\nHost: lo")
                idle.append((reader, writer))
                if number % 10 == 0:
                    async with browser.get("/", Connection="close") as page:
                        assert page.status == 200
            assert await asyncio.wait_for(idle[0][0].read(), PATIENCE) == b""
            await live.send_bytes(picture_message(1))  # who is served stays
            assert (await receive(live, "result"))[0]["number"] == 0
            for _, writer in idle:
                writer.close()

    run(test)


FEW_DESCRIPTORS = """
import resource, sys
sys.path[:0] = sys.argv[1:]
from pose.live import listener
listener.MAX_CONNECTIONS = 1000  # so that the system runs out first
from web_fakes import in_thread
with in_thread() as address:
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    print(address, flush=True)
    sys.stdin.read()
"""


def test_server_recovers_from_descriptor_exhaustion():
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    with subprocess.Popen(
        [sys.executable, "-c", FEW_DESCRIPTORS, *folders],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        port = int(server.stdout.readline().rpartition(":")[2])
        with contextlib.ExitStack() as stack:
            for _ in range(100):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=PATIENCE))
            assert "no further connection can be accepted: too many open files" in server.stderr.readline()
        with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as guest:
            guest.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert guest.recv(12) == b"HTTP/1.1 200"
        _, errors = server.communicate("", timeout=PATIENCE)
    assert server.returncode == 0
    assert "Traceback" not in errors


def test_unacknowledged_images_are_not_read(monkeypatch):
    decoded = []

    def decode(data: bytes, longest: int):
        decoded.append(len(data))
        return decode_jpeg(data, longest)

    monkeypatch.setattr("pose.live.web.client.decode_jpeg", decode)
    pipeline = FakePipeline()
    pipeline.gate.clear()

    async def test():
        async with serving(pipeline) as browser, browser.live() as live:
            await receive(live, "hello")
            for number in range(40):
                await live.send_bytes(picture_message(number / 30))
            await until(lambda: len(decoded) >= MAX_UNANSWERED)
            await asyncio.sleep(0.3)
            assert len(decoded) == MAX_UNANSWERED
            pipeline.gate.set()
            while (await receive(live, "result"))[0]["number"] < 39:  # all of them come in at last
                pass
            assert len(decoded) == 40

    run(test)


def test_concurrent_decoding_is_limited(monkeypatch):
    changed, running, most = threading.Condition(), 0, 0

    def decode(data: bytes, longest: int):
        nonlocal running, most
        with changed:
            running += 1
            most = max(most, running)
            changed.notify_all()
            changed.wait_for(lambda: most >= MAX_DECODERS, PATIENCE)
        time.sleep(0.02)
        with changed:
            running -= 1
        return decode_jpeg(data, longest)

    monkeypatch.setattr("pose.live.web.client.decode_jpeg", decode)

    async def test():
        async with serving(clients=8) as browser, contextlib.AsyncExitStack() as stack:
            guests = [await stack.enter_async_context(browser.live()) for _ in range(8)]
            for number in range(3):
                for live in guests:
                    await live.send_bytes(picture_message(number))
                for live in guests:
                    await receive(live, "result")

    run(test)
    assert most == MAX_DECODERS
