"""The web server of `pose-webcam --web`: the page, its WebSocket, and the recordings."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from importlib.resources import files

from aiohttp import WSCloseCode, web

from pose.errors import PoseError
from pose.live import LiveLoop, LiveSource, PushedFrames
from pose.pipeline import Pipeline
from pose.web import messages
from pose.web.client import Client
from pose.web.feed import Feed
from pose.web.guard import Guard, add_headers
from pose.web.recording import Recordings
from pose.web.settings import WebSettings

LONGEST_BODY = 4096  # bytes of a request that is no WebSocket
HEARTBEAT_SECONDS = 15.0  # a browser that does not answer for so long is gone
WRONG_TOKEN_SECONDS = 0.5  # to wait after a wrong token
SHUTDOWN_SECONDS = 2.0
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


class WebServer:
    """Serves the poses of one source to all browsers, or those of every browser's own camera to that browser.

    The pipeline, made with `live=True`, is shared: the loops of several cameras take turns.
    """

    def __init__(
        self, pipeline: Pipeline, settings: WebSettings, source: LiveSource | None = None, *, mirror: bool | None = None
    ) -> None:
        """source: what everybody sees; None takes the browsers' cameras. mirror: by default those are mirrored."""
        self._pipeline = pipeline
        self._settings = settings
        self._source = source
        self._mirror = source is None if mirror is None else mirror
        self._guard = Guard(settings)
        self._recordings = Recordings()
        self._static = _read_static()
        self._sockets: set[web.WebSocketResponse] = set()
        self._shared: tuple[LiveLoop, Feed] | None = None
        self._following: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()

    async def run(self, started: Callable[[int], None], seconds: float | None = None) -> None:
        """Serve until the source ends or `seconds` have passed; cancel it to end it sooner.

        started: called with the port once the page can be opened. Raises PoseError when the address cannot be
        bound or the source fails.
        """
        runner = web.AppRunner(self._app(), access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            site = web.TCPSite(runner, self._settings.host, self._settings.port, ssl_context=self._settings.tls())
            try:
                await site.start()
            except OSError as error:
                reason = (error.strerror or str(error)).lower()
                raise PoseError(
                    f"cannot listen at {self._settings.host}, port {self._settings.port}: {reason}; "
                    "choose another --port (0 takes a free one)"
                ) from error
            started(runner.addresses[0][1])
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), seconds)
                await asyncio.wait_for(self._emptied(), SHUTDOWN_SECONDS)
            if self._following is not None and self._following.done():
                self._following.result()  # raises what broke it
        finally:
            await runner.cleanup()
            await asyncio.to_thread(self._close)

    async def _emptied(self) -> None:
        """The source has ended, of which every browser is being told."""
        while self._sockets:
            await asyncio.sleep(0.05)

    def _close(self) -> None:
        """Raises what made the shared loop fail."""
        try:
            if self._shared is not None:
                self._shared[0].stop()
            elif self._source is not None:
                self._source.close()
        finally:
            self._recordings.close()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=LONGEST_BODY, middlewares=[self._check])
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
        try:
            body = await request.json()
        except ValueError as error:
            raise web.HTTPBadRequest(text="expected JSON") from error
        token = body.get("token") if isinstance(body, dict) else None
        if not self._guard.is_authorised(request) and not (isinstance(token, str) and self._guard.token_right(token)):
            await asyncio.sleep(WRONG_TOKEN_SECONDS)
            raise web.HTTPForbidden(text="that is not the token")
        response = web.Response(status=204)
        self._guard.authorise(response)
        return response

    async def _recording(self, request: web.Request) -> web.FileResponse:
        name = request.match_info["name"]
        path = self._recordings.file(request.match_info["key"], name)
        if path is None or not path.is_file():
            raise web.HTTPNotFound
        return web.FileResponse(path, headers={"Content-Disposition": f'attachment; filename="{name}"'})

    async def _live(self, request: web.Request) -> web.WebSocketResponse:
        # Without compression: a small message cannot become a large one.
        socket = web.WebSocketResponse(
            heartbeat=HEARTBEAT_SECONDS, compress=False, max_msg_size=messages.LONGEST_MESSAGE, timeout=SHUTDOWN_SECONDS
        )
        await socket.prepare(request)
        if len(self._sockets) >= self._settings.clients:
            full = f"The server is full: {self._settings.clients} browsers are connected."
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=full.encode())
            return socket
        self._sockets.add(socket)
        try:
            if self._source is None:
                await self._serve_camera(socket, request.remote or "browser")
            else:
                await self._serve_source(socket, self._source)
        finally:
            self._sockets.discard(socket)
        return socket

    async def _serve_camera(self, socket: web.WebSocketResponse, name: str) -> None:
        camera = PushedFrames(f"camera of {name}")
        loop = LiveLoop(self._pipeline, camera).start()
        try:
            async with _following(Feed(loop, pictures=False)) as feed:
                await socket.send_str(self._hello("camera", camera.name))
                await Client(socket, loop, feed, self._recordings, camera).run()
        finally:
            await asyncio.to_thread(loop.stop)

    async def _serve_source(self, socket: web.WebSocketResponse, source: LiveSource) -> None:
        if self._shared is None:  # the first who looks starts it
            loop = LiveLoop(self._pipeline, source).start()
            self._shared = loop, Feed(loop, pictures=True)
            self._following = asyncio.create_task(self._shared[1].run())
            self._following.add_done_callback(lambda _: self._ended.set())
        loop, feed = self._shared
        await socket.send_str(self._hello("source", source.name))
        await Client(socket, loop, feed, self._recordings, None).run()

    def _hello(self, mode: str, source: str) -> str:
        lookahead = self._pipeline.config.lookahead
        return messages.hello(mode, source, self._pipeline.skeleton, lookahead=lookahead, mirror=self._mirror)

    async def _close_sockets(self, app: web.Application) -> None:
        for socket in list(self._sockets):
            await socket.close(code=WSCloseCode.GOING_AWAY, message=b"The server was stopped.")


@asynccontextmanager
async def _following(feed: Feed) -> AsyncIterator[Feed]:
    task = asyncio.create_task(feed.run())
    try:
        yield feed
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _read_static() -> dict[str, bytes]:
    """The files of the page, by name. Only these can be asked for."""
    return {entry.name: entry.read_bytes() for entry in (files("pose.web") / "static").iterdir()}
