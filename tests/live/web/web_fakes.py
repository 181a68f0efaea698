"""A server on a port of this computer, a pipeline without networks, and a browser's side of the protocol."""

import asyncio
import json
import queue
import struct
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, replace

import aiohttp
import cv2
import numpy as np
from pose_fakes import seen_result

from pose.config import LiveConfig, PipelineConfig
from pose.live.web.server import WebServer
from pose.live.web.settings import WebSettings
from pose.results import RunInfo
from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17
from pose.structures.types import Frame, FrameResult

TOKEN = "correct-horse-battery-staple"
PATIENCE = 60.0  # s, for what comes at once, on a machine that stands still meanwhile


def run(test: Callable[[], Coroutine[object, None, object]], seconds: float = 3 * PATIENCE) -> object:
    """What an asynchronous test returns, which has so much time."""
    return asyncio.run(asyncio.wait_for(test(), seconds))


class FakePipeline:
    """All people stand 3 m away, known to `sigma` mm. fails_at: the frame at which a network breaks with `error`.

    gate: clear it to let the networks wait.
    """

    device, skeleton = "cpu", H36M17

    def __init__(
        self, *, people: int = 1, sigma: float = 20, fails_at: int | None = None, error: Exception | None = None
    ) -> None:
        self.config = PipelineConfig()
        self.people, self.sigma, self.fails_at, self.error = people, sigma, fails_at, error
        self.gate = threading.Event()
        self.gate.set()

    def run_info(self, source: str, fps: float, image_size: tuple[int, int]) -> RunInfo:
        camera = Camera.of(image_size)
        return RunInfo(source=source, fps=fps, camera=camera, skeleton=self.skeleton, settings=asdict(self.config))

    def session(self, size: tuple[int, int]) -> "FakeSession":
        return FakeSession(self, size)


class FakeSession:
    refines = False

    def __init__(self, pipeline: FakePipeline, size: tuple[int, int]) -> None:
        self._pipeline, self._size = pipeline, size
        self.camera = Camera.of(size)

    def track(self, frame: Frame) -> Frame:
        assert self._pipeline.gate.wait(PATIENCE)
        if frame.index == self._pipeline.fails_at:
            raise self._pipeline.error
        return frame

    def lift(self, frame: Frame) -> list[FrameResult]:
        roots = np.array([(row - 0.5, 0, 3) for row in range(self._pipeline.people)], np.float32)
        result = seen_result(roots, index=frame.index, time=frame.time, size=self._size)
        sigma = np.full_like(result.poses.sigma, self._pipeline.sigma)
        return [replace(result, poses=replace(result.poses, sigma=sigma))]

    def flush(self) -> list[FrameResult]:
        return []


def jpeg(size: tuple[int, int] = (64, 48), *, progressive: bool = False) -> bytes:
    grey = np.full((size[1], size[0], 3), 90, np.uint8)
    done, data = cv2.imencode(".jpg", grey, [cv2.IMWRITE_JPEG_PROGRESSIVE, int(progressive)])
    assert done
    return data.tobytes()


def picture_message(seconds: float, data: bytes | None = None) -> bytes:
    return struct.pack("<d", seconds) + (jpeg() if data is None else data)


def read_message(message: aiohttp.WSMessage) -> tuple[dict, bytes]:
    """The object and the image of what the server sent."""
    if message.type is aiohttp.WSMsgType.TEXT:
        return json.loads(message.data), b""
    assert message.type is aiohttp.WSMsgType.BINARY, message
    (length,) = struct.unpack_from("<I", message.data)
    return json.loads(message.data[4 : 4 + length]), message.data[4 + length :]


class Browser:
    """Asks a server as our page does."""

    def __init__(
        self, session: aiohttp.ClientSession, address: str, server: WebServer, running: "asyncio.Task[None]"
    ) -> None:
        self.session, self.address, self.server, self.running = session, address, server, running
        self.origin = {"Origin": address}

    def live(self, *, ssl: bool = True, **headers: str):
        return self.session.ws_connect(f"{self.address}/live", headers=self.origin | headers, ssl=ssl)

    def get(self, path: str, **headers: str):
        return self.session.get(f"{self.address}{path}", headers=headers)

    async def sign_in(self, token: str, *, ssl: bool = True, **headers: str) -> int:
        body, headers = json.dumps({"token": token}), self.origin | headers
        async with self.session.post(f"{self.address}/session", data=body, headers=headers, ssl=ssl) as answer:
            return answer.status


def port_of(browser: Browser) -> int:
    return int(browser.address.rpartition(":")[2])


async def receive(socket: aiohttp.ClientWebSocketResponse, kind: str, seconds: float = PATIENCE) -> tuple[dict, bytes]:
    """The next message of one kind; results on the way to it are acknowledged."""
    async with asyncio.timeout(seconds):
        while True:
            message, picture = read_message(await socket.receive())
            if message["type"] == "result":
                await socket.send_str('{"type":"ack"}')
            if message["type"] == kind:
                return message, picture


async def closed(socket: aiohttp.ClientWebSocketResponse, seconds: float = PATIENCE) -> tuple[int, str]:
    """Code and reason with which the server closes."""
    async with asyncio.timeout(seconds):
        while True:
            message = await socket.receive()
            if message.type is aiohttp.WSMsgType.CLOSE:
                return message.data, message.extra
            if message.type in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR):
                return socket.close_code or 0, ""


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def recording_begins(browser: Browser, socket: aiohttp.ClientWebSocketResponse) -> None:
    """The page of a server with a source asks for a recording, which gets every image from now on."""
    await socket.send_str('{"type":"record","on":true}')
    await receive(socket, "recording")


@asynccontextmanager
async def serving(
    pipeline: FakePipeline | None = None, source=None, ahead: str | None = None, body: bool = False, **settings
) -> AsyncIterator[Browser]:
    """A running server on a free port, and a browser that knows nothing of it yet."""
    with tempfile.TemporaryDirectory(prefix="pose-web-test-") as out:  # for recordings
        chosen = replace(WebSettings(port=0, out=out), **settings)
        opened = source if source is None or callable(source) else lambda: source
        config = LiveConfig(ahead=ahead)
        server = WebServer(pipeline or FakePipeline(), chosen, opened, live=config, body=body)  # type: ignore[arg-type]
        bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        running = asyncio.create_task(server.run(bound.set_result))
        await asyncio.wait([running, bound], return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        address = f"http://127.0.0.1:{bound.result()}"
        try:
            async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
                yield Browser(session, address, server, running)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


class Clip:
    """A live source of coloured images, `count` of them, or for ever. turns: release it once for each image."""

    name, message = "clip", ""

    def __init__(
        self,
        count: int | None = None,
        fps: float = 100.0,
        size: tuple[int, int] = (64, 48),
        turns: threading.Semaphore | None = None,
    ) -> None:
        self.count, self.fps, self.size, self.turns = count, fps, size, turns
        self.closed = False

    def frames(self, stop):
        from pose.live import Captured

        index = 0
        while index != self.count and not self.closed and not stop.wait(1 / self.fps):
            if self.turns is not None and not self.turns.acquire(blocking=False):
                continue
            image = np.full((self.size[1], self.size[0], 3), index % 256, np.uint8)
            yield Captured(Frame(image, index, index / self.fps), time.monotonic())
            index += 1

    def close(self) -> None:
        self.closed = True


@contextmanager
def in_thread(**options) -> Iterator[str]:
    """`serving(**options)` in a thread; its address."""
    ready: queue.SimpleQueue[tuple[str, Callable[[], object]]] = queue.SimpleQueue()

    async def serve() -> None:
        end, events = asyncio.Event(), asyncio.get_running_loop()
        async with serving(**options) as browser:
            ready.put((browser.address, lambda: events.call_soon_threadsafe(end.set)))
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    address, end = ready.get(timeout=PATIENCE)
    try:
        yield address
    finally:
        end()
        thread.join(PATIENCE)
        assert not thread.is_alive()
