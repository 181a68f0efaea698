"""The server: what it serves to which clients, and how it handles everything else."""

import asyncio
import shutil
import socket
import subprocess
import threading

import aiohttp
import pytest
from web_fakes import (
    PATIENCE,
    TOKEN,
    Clip,
    FakePipeline,
    closed,
    jpeg,
    picture_message,
    port_of,
    read_message,
    receive,
    run,
    serving,
    until,
)

from pose.errors import PoseError
from pose.live import LiveLoop
from pose.live.horizon import MAX_HORIZON_S
from pose.live.web import messages
from pose.live.web.jpeg import decode_jpeg
from pose.live.web.server import _read_static


def test_page_and_its_files_are_served_with_strict_headers():
    async def test():
        async with serving() as browser:
            for path in ("/", *(f"/static/{name}" for name in _read_static())):
                async with browser.get(path) as answer:
                    assert answer.status == 200
                    assert await answer.read()
                    policy = answer.headers["Content-Security-Policy"]
                    assert policy.startswith("default-src 'none'; script-src 'self'")
                    assert "unsafe" not in policy
                    assert answer.headers["X-Content-Type-Options"] == "nosniff"

    run(test)


def test_page_has_no_external_resources():
    texts = {name: data.decode() for name, data in _read_static().items()}
    for name, text in texts.items():
        for scheme in ("http://", "https://", 'src="//', "url("):
            assert scheme not in text.replace("http://www.w3.org/2000/svg", ""), name
    assert "innerHTML" not in "".join(texts.values())
    assert 'style="' not in texts["index.html"]
    assert "onclick" not in texts["index.html"]


@pytest.mark.parametrize(
    "path",
    [
        "/static/../server.py", "/static/..%2fserver.py", "/static/%2e%2e/%2e%2e/types.py", "/static/%2fetc%2fpasswd",
        "/static/", "/static/nothing.js", "/recordings/x/../../x", "/recordings/..%2f..%2fetc/passwd", "/server.py",
        "//etc/passwd",
    ],
)  # fmt: skip
def test_path_traversal_is_rejected(path):
    async def test():
        async with serving() as browser:
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(browser))
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            assert answer.split()[1] == b"404"

    run(test)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8000", 200), ("127.0.0.1", 200), ("[::1]:8000", 200), ("LOCALHOST", 200), ("evil.example", 421),
        ("localhost.evil.example", 421), ("127.0.0.1.evil.example", 421), ("192.168.1.7", 421), ("", 421),
        ("[::1", 421),
    ],
)  # fmt: skip
def test_foreign_host_name_is_rejected(host, status):
    async def test():
        async with serving() as browser, browser.get("/", Host=host) as answer:
            assert answer.status == status

    run(test)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://127.0.0.1:1", "file://", "chrome://x"])
def test_foreign_origin_is_rejected(origin):
    async def test():
        async with serving() as browser:
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await browser.live(Origin=origin)
            assert await browser.sign_in(TOKEN, Origin=origin) == 403

    run(test)


def test_token_grants_access():
    async def test():
        async with serving(host="0.0.0.0", token=TOKEN) as browser:
            async with browser.get("/") as page, browser.get("/session") as session:
                assert (page.status, session.status) == (200, 403)  # the page itself holds no secret
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await browser.live()
            for wrong in ("", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "ü" * 30):
                assert await browser.sign_in(wrong) == 403
            with pytest.raises(aiohttp.WSServerHandshakeError, match="403"):
                await browser.live(Cookie=f"pose-webcam-{port_of(browser)}=wrong")
            assert await browser.sign_in(TOKEN) == 204
            (cookie,) = browser.session.cookie_jar
            assert cookie.key == f"pose-webcam-{port_of(browser)}"  # that of the port, which port 0 left open
            assert cookie["httponly"]
            assert cookie["samesite"] == "Strict"
            assert TOKEN not in cookie.value
            async with browser.live() as live:
                assert (await receive(live, "hello"))[0]["mode"] == "camera"

    run(test)


def test_certificate_makes_it_https_and_the_cookie_secure(tmp_path):
    cert, key = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    if (openssl := shutil.which("openssl")) is None:
        pytest.skip("no openssl on this machine, to make a certificate with")
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-out", cert, "-keyout", key]
    subprocess.run([openssl, *words], check=True, capture_output=True)

    async def test():
        async with serving(cert=cert, key=key, token=TOKEN) as browser:
            plain = browser.address
            browser.address = plain.replace("http:", "https:")
            browser.origin = {"Origin": browser.address}
            assert await browser.sign_in(TOKEN, ssl=False) == 204
            assert await browser.sign_in(TOKEN, ssl=False, Origin=plain) == 403  # an injected page
            (cookie,) = browser.session.cookie_jar
            assert cookie["secure"]
            async with browser.live(ssl=False) as live:
                assert (await receive(live, "hello"))[0]["mode"] == "camera"

    run(test)


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"token": 3}', "x" * 5000])
def test_sign_in_takes_only_a_token(body):
    async def test():
        async with (
            serving(token=TOKEN) as browser,
            browser.session.post(f"{browser.address}/session", data=body, headers=browser.origin) as answer,
        ):
            assert answer.status in (400, 403, 413)

    run(test)


def test_browser_images_return_poses():
    async def test():
        async with serving(FakePipeline(people=2)) as browser, browser.live() as live:
            assert (await receive(live, "hello"))[0]["version"] == messages.VERSION
            for number in range(5):
                await live.send_bytes(picture_message(10 + number / 30))
                result, picture = await receive(live, "result")
                assert result["number"] == number
                assert [person["id"] for person in result["people"]] == [1, 2]
                assert picture == b""
            await live.send_str('{"type":"ping","time":12.5}')
            assert (await receive(live, "pong"))[0]["time"] == 12.5
            status, _ = await receive(live, "status")
            assert (status["people"], status["device"]) == (2, "cpu")

    run(test)


def list_loops(monkeypatch) -> list[LiveLoop]:
    """All loops that are started from now on."""
    loops: list[LiveLoop] = []
    start = LiveLoop.start
    monkeypatch.setattr(LiveLoop, "start", lambda loop: loops.append(loop) or start(loop))
    return loops


@pytest.mark.parametrize("own_camera", [True, False])
def test_poses_are_predicted_by_the_reported_latency(own_camera, monkeypatch):
    """An old page says nothing; a page that claims hours gets what is allowed."""

    async def test():
        source = None if own_camera else Clip(fps=30.0)
        loops = list_loops(monkeypatch)
        async with serving(FakePipeline(), source, "auto") as browser, browser.live() as live:
            for number, after in enumerate(["", "", *[',"after":40'] * 6, *[',"after":3.6e6'] * 40]):
                if own_camera:
                    await live.send_bytes(picture_message(10 + number / 30))
                message = {"type": ""}
                while message["type"] != "result":
                    message, _ = read_message(await live.receive())
                await live.send_str(f'{{"type":"ack"{after}}}')
                if number == 7:
                    way = loops[0].ahead.prediction_time(5.0, 5.0)
            (ahead,) = [person["ahead"] for person in message["people"]]
            assert way == pytest.approx(0.04)
            assert ahead == pytest.approx(MAX_HORIZON_S)
            assert 0 < message["latency"] < PATIENCE
            await live.send_str('{"type":"ack","after":"soon"}')
            assert await closed(live) == (1008, "Invalid message: ack: 'after' must be a number below 1e15.")

    run(test)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (b"short", "image without content"),
        (picture_message(1, b"no picture"), "not a JPEG"),
        (picture_message(1, jpeg((1921, 8))), "1921 x 8 px; at most 1920"),
        ("{", "not JSON"),
        ('{"type":"exec"}', "unknown type 'exec'"),
        ('{"type":"ping","time":"now"}', "must be a number"),
        ('{"type":"record"}', "on: true or false"),
    ],
)
def test_protocol_violation_closes_with_a_reason(message, reason):
    async def test():
        async with serving() as browser, browser.live() as live:
            await (live.send_bytes(message) if isinstance(message, bytes) else live.send_str(message))
            code, text = await closed(live)
            assert code == aiohttp.WSCloseCode.POLICY_VIOLATION
            assert reason in text

    run(test)


def test_message_above_the_limit_ends_the_connection():
    async def test():
        async with serving() as browser, browser.live() as live:
            await live.send_bytes(bytes(messages.MAX_MESSAGE_BYTES + 2))
            assert (await closed(live))[0] == aiohttp.WSCloseCode.MESSAGE_TOO_BIG

    run(test)


def test_excess_client_is_queued():
    async def test():
        async with serving(clients=2) as browser:
            async with browser.live() as first, browser.live() as second:
                await receive(first, "hello")
                await receive(second, "hello")
                async with browser.live() as third:
                    assert await closed(third) == (1013, "The server is full: 2 browsers are connected.")
            await until(lambda: not browser.server._sockets)
            async with browser.live() as fourth:
                assert (await receive(fourth, "hello"))[0]["type"] == "hello"

    run(test)


def test_all_clients_see_the_source_with_its_image():
    async def test():
        clip = Clip(size=(1200, 600))
        async with serving(source=clip) as browser, browser.live() as one, browser.live() as other:
            assert (await receive(one, "hello"))[0]["mode"] == "source"
            for live in (one, other):
                result, picture = await receive(live, "result")
                assert decode_jpeg(picture, 1000).shape == (480, 960, 3)
                x, y, _ = result["people"][0]["keypoints"][0]
                assert 0 < x < 960
                assert 0 < y < 480
            await one.send_bytes(picture_message(1))
            assert "shows its own source" in (await closed(one))[1]

    run(test)


def test_slow_client_drops_frames_without_delaying_others():
    async def test():
        turns = threading.Semaphore(0)
        source = Clip(fps=1000, turns=turns)
        async with serving(source=source) as browser, browser.live() as slow, browser.live() as fast:
            for live in (slow, fast):
                await receive(live, "hello")
            numbers = []
            for _ in range(50):
                turns.release()
                numbers.append((await receive(fast, "result"))[0]["number"])
            assert numbers == list(range(50))  # nothing is missing, though the other does not answer
            waiting = []
            while len(waiting) < messages.MAX_UNANSWERED:
                message, _ = read_message(await slow.receive())
                if message["type"] == "result":
                    waiting.append(message["number"])
            await slow.send_str('{"type":"ack"}')
            newest = (await receive(slow, "result"))[0]["number"]
            assert waiting[-1] < numbers[5]
            assert newest == numbers[-1]

    run(test)


def test_source_is_released_without_viewers(monkeypatch):
    monkeypatch.setattr("pose.live.web.shared.CLOSE_DELAY_S", 600.0)  # time enough to load the page again
    opened: list[Clip] = []

    def source() -> Clip:
        opened.append(Clip(fps=50))
        return opened[-1]

    async def test():
        async with serving(source=source) as browser:
            await asyncio.sleep(0.3)
            assert opened == []  # the camera is off before the first one looks
            async with browser.live() as live:
                await receive(live, "result")
            shared = browser.server._shared
            await until(lambda: shared._close_timer is not None)
            async with browser.live() as live:  # who loads the page again finds it running, and it stays so
                await receive(live, "result")
                assert shared._close_timer.cancelled()
                assert len(opened) == 1
                assert not opened[0].closed
                monkeypatch.setattr("pose.live.web.shared.CLOSE_DELAY_S", 0.2)
            await until(lambda: opened[0].closed)
            async with browser.live() as live:
                assert (await receive(live, "result"))[0]["people"]
            assert len(opened) == 2
            assert not browser.running.done()
        assert opened[1].closed

    run(test)


def test_failed_source_reopen_is_reported_to_clients():
    def source() -> Clip:
        raise PoseError("camera 0 is in use")

    async def test():
        async with serving(source=source) as browser:
            for _ in range(2):
                async with browser.live() as live:
                    assert await closed(live) == (aiohttp.WSCloseCode.INTERNAL_ERROR, "camera 0 is in use")
            assert not browser.running.done()

    run(test)


@pytest.mark.parametrize("once", [False, True])
def test_source_failure_is_reported_to_clients_and_terminal(once, caplog):
    async def test():
        pipeline = FakePipeline(fails_at=3, error=PoseError("the network burnt down"))
        async with serving(pipeline, lambda: Clip(), once=once) as browser:
            for _ in range(1 if once else 2):  # who tries again may find it mended
                async with browser.live() as live:
                    assert await closed(live) == (aiohttp.WSCloseCode.INTERNAL_ERROR, "the network burnt down")
            await asyncio.wait([browser.running], timeout=PATIENCE if once else 0.0)
            assert browser.running.done() == once

    if once:
        with pytest.raises(PoseError, match="burnt down"):
            run(test)
    else:
        run(test)
    assert "clip: the network burnt down" in [record.getMessage() for record in caplog.records]


def test_occupied_port_gives_a_one_line_error():
    async def test():
        with socket.create_server(("127.0.0.1", 0)) as taken:
            async with serving(port=taken.getsockname()[1]):
                pass

    with pytest.raises(PoseError, match=r"cannot listen on 127\.0\.0\.1, port \d+: .*; choose another --port"):
        run(test)
