"""The web server of `pose-webcam --web`: the page, its WebSocket, and the recordings."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from aiohttp import WSCloseCode, web

from pose.config import LiveConfig
from pose.errors import PoseError
from pose.live import LiveLoop, LiveSource, Loop, PushedFrames
from pose.live.access import is_loopback
from pose.live.listener import SHUTDOWN_SECONDS, listening
from pose.live.loop import DEFAULTS
from pose.live.web import messages
from pose.live.web.bodies import page_mesh
from pose.live.web.client import Client, reason
from pose.live.web.feed import Feed
from pose.live.web.guard import Guard, add_headers
from pose.live.web.recording import ALL_BROWSERS, FinishedRecording, RecordingStore
from pose.live.web.settings import WebSettings
from pose.live.web.shared import SharedSource
from pose.pipeline import Pipeline
from pose.utils.shown import in_brief
from pose.world.clean import Steps

MAX_BODY_BYTES = 4096  # maximum size of the body of a request
HEARTBEAT_INTERVAL_S = 15.0  # interval of pings; a browser that does not answer is disconnected
WRONG_TOKEN_DELAY_S = 0.5  # delay of the answer to a wrong token
BODY_TIMEOUT_S = 10.0  # time limit for receiving the body of a request
EXPIRY_INTERVAL_S = 60.0  # interval of checks for expired recordings
MAX_DECODERS = 2  # maximum number of images that are decoded at the same time
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class WebServer:
    """Server that shows one source to all browsers, or processes each browser's own camera.

    All loops share the pipeline and take turns in using it.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        settings: WebSettings,
        source: Callable[[], LiveSource | Loop] | None = None,
        *,
        live: LiveConfig = DEFAULTS,
        world: Steps | None = None,
        body: bool = False,
        studio: Callable[[Path], Awaitable[str]] | None = None,
    ) -> None:
        """Prepare the server, which `run` starts.

        `studio` opens the folder of a recording in the studio of this computer and returns its address; it may raise
        PoseError.
        """
        self._body, self._studio = body, studio
        self._pipeline = pipeline
        self._settings = settings
        self._loop = partial(LiveLoop, pipeline, config=live, world=world)
        self._shared = None if source is None else SharedSource(self._loop, source, body=body)
        self._mirror = settings.mirror or source is None
        self._guard = Guard(settings)
        self._recordings: RecordingStore | None = None
        self._static = _read_static()
        self._sockets: set[web.WebSocketResponse] = set()
        self._decoding = asyncio.Semaphore(MAX_DECODERS)

    async def run(
        self,
        started: Callable[[int], None],
        seconds: float | None = None,
        recorded: Callable[[FinishedRecording], None] = lambda recording: None,
    ) -> None:
        """Serve until cancelled, `seconds` passed or, with `once`, the source ended; finish recordings then.

        Raises:
            PoseError: If the address cannot be bound, or with `once` if the source fails.
        """
        keep_seconds = 3600 * self._settings.keep_hours
        self._recordings = RecordingStore(Path(self._settings.out), keep_seconds, recorded)
        host, port = self._settings.host, self._settings.port
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._close)
            try:
                bound = await stack.enter_async_context(listening(self._app(), host, port, tls=self._settings.tls()))
            except OSError as error:
                advice = "choose another --port (0 takes a free one)"
                raise PoseError(f"cannot listen on {host}, port {port}: {error.strerror}; {advice}") from error
            self._guard.set_port(bound)
            started(bound)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over(), seconds)
                await asyncio.wait_for(self._emptied(), SHUTDOWN_SECONDS)

    async def _over(self) -> None:
        """Wait for the end of the source if the server ends with it, else forever, and delete expired recordings."""
        over = asyncio.Event() if self._shared is None or not self._settings.once else self._shared.ended
        while not over.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), EXPIRY_INTERVAL_S)
            self._store.delete_expired()

    async def _emptied(self) -> None:
        """Wait until all browsers are disconnected, so that they have been told that the source ended."""
        while self._sockets:
            await asyncio.sleep(0.05)

    async def _close(self) -> None:
        """Close the shared source and the recordings."""
        try:
            if self._shared is not None:
                await self._shared.close()
        finally:
            await self._store.close()
        if self._shared is not None and self._settings.once and self._shared.error is not None:
            raise self._shared.error

    def finished_recordings(self) -> list[FinishedRecording]:
        """Return the finished recordings that have not been deleted."""
        return [] if self._recordings is None else self._recordings.finished_recordings()

    @property
    def _store(self) -> RecordingStore:
        assert self._recordings is not None, "made by `run`"
        return self._recordings

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY_BYTES, middlewares=[self._check])
        app.on_response_prepare.append(add_headers)
        app.on_shutdown.append(self._close_sockets)
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/static/{name}", self._page),
                web.get("/session", self._session),
                web.post("/session", self._sign_in),
                web.get("/live", self._live),
                web.get("/recordings/{key}/{name}", self._recording),
                web.post("/recordings/{key}/studio", self._open_studio),
            ]
        )
        return app

    @web.middleware
    async def _check(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if not self._guard.host_allowed(request):
            raise web.HTTPMisdirectedRequest(text="this server does not answer to that name")
        if (request.method == "POST" or request.path == "/live") and not self._guard.origin_allowed(request):
            raise web.HTTPForbidden(text="only the server's own page may ask for this")
        if request.path.startswith(("/live", "/recordings")) and not self._guard.is_authorised(request):
            raise web.HTTPForbidden(text="the token is missing")
        return await handler(request)

    async def _page(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "index.html")
        if name not in self._static:
            raise web.HTTPNotFound
        return web.Response(body=self._static[name], content_type=TYPES[name.rpartition(".")[2]], charset="utf-8")

    async def _session(self, request: web.Request) -> web.Response:
        if not self._guard.is_authorised(request):
            raise web.HTTPForbidden(text="the token is missing")
        return web.Response(status=204)

    async def _sign_in(self, request: web.Request) -> web.Response:
        body = await _read_json(request)
        token = body.get("token") if isinstance(body, dict) else None
        if not self._guard.is_authorised(request) and not (
            isinstance(token, str) and self._guard.token_is_valid(token)
        ):
            await asyncio.sleep(WRONG_TOKEN_DELAY_S)
            raise web.HTTPForbidden(text="that is not the token")
        response = web.Response(status=204)
        self._guard.authorise(response)
        return response

    async def _recording(self, request: web.Request) -> web.FileResponse:
        name = request.match_info["name"]
        found = self._store.find(request.match_info["key"], name)
        if found is None or not found[1].is_file():
            raise web.HTTPNotFound
        recording, path = found
        response = web.FileResponse(path, headers={"Content-Disposition": f'attachment; filename="{name}"'})
        await response.prepare(request)  # sends the whole file
        if request.method == "GET" and response.status == 200:
            recording.downloaded.add(name)
        return response

    async def _open_studio(self, request: web.Request) -> web.Response:
        """Open a recording in the studio, for a browser of this computer."""
        recording = self._store.find_recording(request.match_info["key"])
        if self._studio is None or not is_loopback(request.remote or ""):
            raise web.HTTPForbidden(text="the studio opens on the computer of the server only")
        if recording is None:
            raise web.HTTPNotFound(text="the recording was deleted")
        try:
            return web.json_response({"address": await self._studio(recording.folder)})
        except PoseError as error:
            return web.Response(status=422, text=in_brief(error))

    async def _live(self, request: web.Request) -> web.WebSocketResponse:
        # Compression is off, so that a small message cannot expand to a large one.
        socket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_INTERVAL_S,
            compress=False,
            max_msg_size=messages.MAX_MESSAGE_BYTES + 1,  # some versions of aiohttp refuse the limit itself
            timeout=SHUTDOWN_SECONDS,
        )
        browser = self._guard.browser_id(request)
        self._guard.set_browser_id(socket, browser)
        await socket.prepare(request)
        with suppress(ConnectionError):  # the browser disconnected while a message was sent
            if len(self._sockets) >= self._settings.clients:
                full = _full(self._settings.clients)
                await socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=full.encode())
                return socket
            self._sockets.add(socket)
            try:
                await self._serve(socket, request.remote or "browser", browser)
            finally:
                self._sockets.discard(socket)
        return socket

    async def _serve(self, socket: web.WebSocketResponse, name: str, browser: str) -> None:
        if self._shared is None:
            await self._serve_camera(socket, name, browser)
            return
        try:
            async with self._shared.watched() as (loop, feed):
                await socket.send_str(self._hello("source", loop.source.name))
                await Client(socket, loop, feed, self._store, ALL_BROWSERS, self._decoding, None).run()
        except PoseError as error:  # the source could not be opened; the page may try again
            await socket.close(code=WSCloseCode.INTERNAL_ERROR, message=reason(str(error)))

    async def _serve_camera(self, socket: web.WebSocketResponse, name: str, browser: str) -> None:
        # The page drops images beyond this number, so the server never does.
        most = messages.max_unanswered_images(self._pipeline.config.lookahead)
        camera = PushedFrames(f"camera of {name}", capacity=most)
        loop = self._loop(camera, backlog=most)
        feed = Feed(loop, with_images=False, body=self._body)
        loop.start()
        try:
            async with _following(feed):
                await socket.send_str(self._hello("camera", camera.name))
                await Client(socket, loop, feed, self._store, browser, self._decoding, camera).run()
        finally:
            camera.close()  # ends the loop, even if this task is cancelled before `stop` runs
            await asyncio.to_thread(loop.stop)

    def _hello(self, mode: str, source: str) -> str:
        lookahead = self._pipeline.config.lookahead
        replay = mode == "source" and not self._settings.once
        skeleton = self._pipeline.skeleton
        mesh = page_mesh() if self._body else None
        return messages.hello(
            mode, source, skeleton, lookahead=lookahead, mirror=self._mirror, replay=replay, mesh=mesh
        )

    async def _close_sockets(self, app: web.Application) -> None:
        async def bye(socket: web.WebSocketResponse) -> None:
            async with asyncio.timeout(SHUTDOWN_SECONDS):
                await socket.close(code=WSCloseCode.GOING_AWAY, message=b"The server was stopped.")

        # Concurrently, because a browser that no longer reads takes until the timeout.
        await asyncio.gather(*map(bye, self._sockets), return_exceptions=True)


@asynccontextmanager
async def _following(feed: Feed) -> AsyncIterator[Feed]:
    task = asyncio.create_task(feed.run())
    try:
        yield feed
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _full(clients: int) -> str:
    return f"The server is full: {clients} {'browser is' if clients == 1 else 'browsers are'} connected."


async def _read_json(request: web.Request) -> Any:
    """Parse the body of a request as UTF-8 JSON, whatever encoding the request declares."""
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            body = await request.read()
        return json.loads(body.decode())
    except TimeoutError as error:
        raise web.HTTPRequestTimeout(text="the request did not end") from error
    except (ValueError, RecursionError, web.RequestPayloadError) as error:
        raise web.HTTPBadRequest(text="expected JSON") from error


def _read_static() -> dict[str, bytes]:
    """Read the files of the page, and return their contents by name. No other file is served."""
    return {entry.name: entry.read_bytes() for entry in (files("pose.live.web") / "static").iterdir()}
