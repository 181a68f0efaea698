"""Videos that arrive: from the page, from programs, and from a phone in the local network."""

import asyncio
import secrets
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from pose.errors import PoseError, UsageError
from pose.live.web.guard import Guard
from pose.live.web.settings import WebSettings
from pose.structures.types import U8
from pose.utils.shown import in_brief, shown
from pose_apps.studio.jobs import Jobs
from pose_apps.studio.projects import INCOMPLETE, Project, Projects

MAX_PROJECTS = 1000
MAX_UPLOADS = 2  # videos that arrive at the same time
UPLOAD_IDLE_S = 30.0  # time without data after which an upload ends
WRONG_TOKEN_DELAY_S = 0.5
ANY_ADDRESS = "0.0.0.0"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Uploads:
    """Receiver of videos, which adds them to the projects and to the queue."""

    projects: Projects
    jobs: Jobs
    max_gigabytes: float  # maximum size of a video, GB
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_UPLOADS))

    async def take(self, request: web.Request) -> Project:
        """Receive the video of a new project."""
        query = request.query
        self.check_room()
        try:
            height = float(query["height"]) if query.get("height") else None
        except ValueError as error:
            raise UsageError(f"height: expected metres, got {shown(query['height'], 40)!r}") from error
        cameras = whole(request, "cameras", 1)
        async with self._slots:
            project = self.projects.create(query.get("name", ""), query.get("preset", "standard"), height, cameras)
            try:
                await self._receive(request, project.clip)
                await asyncio.to_thread(check_video, project)
            except BaseException:
                project.clip.unlink(missing_ok=True)
                (project.folder / "thumbnail.jpg").unlink(missing_ok=True)
                with suppress(OSError):
                    project.folder.rmdir()
                raise
        self.projects.add(project)
        if project.state != INCOMPLETE:
            self.jobs.add(project)
        return project

    async def take_camera(self, request: web.Request, project: Project) -> None:
        """Receive the video of the next camera of a project; the last one puts the project into the queue."""
        async with self._slots:
            target = project.camera(request.query.get("name", ""))
            try:
                await self._receive(request, target)
                await asyncio.to_thread(first_image, target, request.query.get("name", ""))
            except BaseException:
                target.unlink(missing_ok=True)
                raise
        if len(project.clips) == project.cameras:
            self.jobs.add(project)

    def check_room(self) -> None:
        """Refuse a further video if there are too many; UsageError if the folder is full."""
        if sum(1 for _ in self.projects) >= MAX_PROJECTS:
            raise UsageError(f"the folder has {MAX_PROJECTS} projects; start pose-studio with another folder")
        if self._slots.locked():
            raise web.HTTPTooManyRequests(text=f"{MAX_UPLOADS} videos arrive at the moment; try again later")

    async def _receive(self, request: web.Request, target: Path) -> None:
        left = int(1e9 * self.max_gigabytes)
        with target.open("xb") as file:
            while True:
                try:
                    async with asyncio.timeout(UPLOAD_IDLE_S):
                        chunk = await request.content.read(1 << 20)
                except TimeoutError as error:
                    raise UsageError("the video did not arrive completely") from error
                if not chunk:
                    return
                left -= len(chunk)
                if left < 0:
                    limit = self.max_gigabytes
                    raise UsageError(f"the video is larger than {limit:g} GB; --max-gigabytes sets this limit")
                await asyncio.to_thread(file.write, chunk)


class Phone:
    """Server for phones in the local network: a page that sends videos and shows nothing else. It has its own token."""

    def __init__(self, uploads: Uploads, page: Handler) -> None:
        self._uploads, self._page = uploads, page
        self._token = secrets.token_urlsafe(18)
        self._guard = Guard(WebSettings(host=ANY_ADDRESS, token=self._token))
        self._port = 0

    def app(self) -> web.Application:
        """Return the application; it must listen on `ANY_ADDRESS`."""
        app = web.Application(middlewares=[self._check])
        app.add_routes(
            [web.get("/", self._page), web.get("/static/{name}", self._page), web.post("/upload", self._upload)]
        )
        return app

    def listens(self, port: int) -> None:
        """Set the port at which the server listens."""
        self._port = port
        self._guard.set_port(port)

    @property
    def address(self) -> str:
        """Address that the phone opens, with the token."""
        return f"http://{own_address()}:{self._port}/#token={self._token}"

    @web.middleware
    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._guard.host_allowed(request):
            raise web.HTTPMisdirectedRequest(text="this server does not answer to that name")
        if request.method == "POST":
            scheme, _, token = request.headers.get("Authorization", "").partition(" ")
            if scheme != "Bearer" or not self._guard.token_is_valid(token) or not self._guard.origin_allowed(request):
                await asyncio.sleep(WRONG_TOKEN_DELAY_S)
                raise web.HTTPForbidden(text="scan the code again: the key is missing or old")
        try:
            return await handler(request)
        except PoseError as error:
            return web.Response(status=400 if isinstance(error, UsageError) else 422, text=in_brief(error))

    async def _upload(self, request: web.Request) -> web.Response:
        await self._uploads.take(request)
        return web.Response(status=201)


def own_address() -> str:
    """Return the address of this computer in the local network; loopback without a network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, suppress(OSError):
        probe.connect(("192.0.2.1", 9))  # sends nothing; it chooses the interface (RFC 5737)
        return str(probe.getsockname()[0])
    return "127.0.0.1"


def qr_code(text: str) -> list[str] | None:
    """Return the rows of the QR code of a text as 0 and 1, with a border; None without the package `segno`."""
    try:
        import segno
    except ModuleNotFoundError:
        return None
    return ["".join(map(str, row)) for row in segno.make(text, error="m").matrix_iter(border=4)]


def whole(request: web.Request, key: str, default: int) -> int:
    """Return a whole number of the address."""
    given = request.query.get(key, str(default))
    if not (given.isascii() and given.isdigit() and len(given) <= 9):
        raise UsageError(f"{key}: expected a whole number, got {shown(given, 40)!r}")
    return int(given)


def first_image(video: Path, name: str) -> U8:
    """Return the first image of a video, with its name in errors; UsageError if the file is not a video."""
    from pose.video import open_source

    try:
        with open_source(str(video)) as source:
            frame = next(iter(source), None)
    except PoseError as error:
        raise UsageError(f"{shown(name, 60)}: {in_brief(error).replace(str(video), 'this file')}") from error
    if frame is None:
        raise UsageError(f"{shown(name, 60)}: no frame could be read")
    return frame.image


def check_video(project: Project) -> None:
    """Open the video, and write its first image as thumbnail."""
    import cv2

    image = first_image(project.clip, project.name)
    scale = 160 / max(image.shape[:2])
    small = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(project.folder / "thumbnail.jpg"), small[:, :, ::-1])
