"""HTTP server of the studio. docs/reference/studio-http.md documents its interface, version 1."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from aiohttp import web

from pose.errors import PoseError, UsageError
from pose.live.listener import listening
from pose.live.web.guard import HEADERS, Guard, add_headers
from pose.live.web.settings import WebSettings
from pose.results.edits import parse_edits, to_json
from pose.utils.json_values import check_type, strict_json
from pose.utils.shown import in_brief, shown
from pose_apps.studio import data
from pose_apps.studio.exports import EXPORTS, SHOWN, LivePlayer, ResultExporter, blender, live_links, open_in_blender
from pose_apps.studio.jobs import Jobs
from pose_apps.studio.projects import (
    DONE,
    INCOMPLETE,
    PRESETS,
    ConflictError,
    Project,
    Projects,
    link_or_copy,
    result_name,
)
from pose_apps.studio.uploads import ANY_ADDRESS, WRONG_TOKEN_DELAY_S, Phone, Uploads, check_video, qr_code, whole
from pose_apps.support.demo import demo_clip

API = "/api/v1"
MAX_JSON_BYTES = 8 << 20
SHARED = ("paint.js", "turntable.js", "body.js", "scene.js", "style.css", "icon.svg")  # files of the live page
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
POLICY = HEADERS["Content-Security-Policy"].replace("img-src", "media-src 'self' blob:; img-src")
PHONE_FILES = ("phone.html", "phone.js", "style.css", "studio.css", "icon.svg")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(kw_only=True)
class StudioSettings:
    """Settings of the server."""

    settings: WebSettings
    max_gigabytes: float  # maximum size of a video, GB
    phone: bool = False  # whether phones in the local network may send videos


@dataclass
class Studio:
    """The server and its projects."""

    options: StudioSettings
    projects: Projects

    def __post_init__(self) -> None:
        self._guard = Guard(self.options.settings)
        self._jobs = Jobs(str(self.projects.folder / ".cache"))
        self._exports, self._player = ResultExporter(self.projects, self._jobs), LivePlayer()
        self._uploads = Uploads(self.projects, self._jobs, self.options.max_gigabytes)
        self._phone = Phone(self._uploads, self._phone_page) if self.options.phone else None
        self._static = {entry.name: entry.read_bytes() for entry in (files("pose_apps.studio") / "static").iterdir()}
        shared = files("pose.live.web") / "static"
        self._static |= {name: (shared / name).read_bytes() for name in SHARED}

    async def run(self, started: Callable[[int], None]) -> None:
        """Serve until cancelled; the next studio queues unfinished runs. PoseError if the port is taken."""
        settings, queue = self.options.settings, asyncio.create_task(self._jobs.run())
        for project in self.projects:
            if project.state == "queued":
                self._jobs.add(project)
        try:
            async with AsyncExitStack() as stack:
                if self._phone is not None:
                    phone = self._phone.app()
                    phone.on_response_prepare.append(_add_headers)
                    self._phone.listens(await stack.enter_async_context(listening(phone, ANY_ADDRESS, 0)))
                port = await stack.enter_async_context(listening(self._app(), settings.host, settings.port))
                self._guard.set_port(port)
                started(port)
                await asyncio.Event().wait()
        except OSError as error:
            raise PoseError(f"cannot listen on {settings.host}, port {settings.port}: {error.strerror}") from error
        finally:
            queue.cancel()
            with suppress(asyncio.CancelledError):
                await queue
            await self._jobs.solver.stop()
            await self._exports.worker.stop()
            await self._player.stop()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_JSON_BYTES, middlewares=[self._check])
        app.on_response_prepare.append(_add_headers)
        one = f"{API}/projects/{{id}}"
        app.add_routes(
            [
                web.get("/", self._page), web.get("/static/{name}", self._page), web.post("/session", self._sign_in),
                web.get(API, self._about), web.get(f"{API}/projects", self._list),
                web.post(f"{API}/projects", self._upload), web.get(one, self._show),
                web.post(f"{API}/demo", self._demo), web.get(f"{API}/phone", self._show_phone),
                web.post(f"{one}/cameras", self._camera),
                web.post(f"{one}/run", self._rerun), web.post(f"{one}/cancel", self._cancel),
                web.get(f"{one}/video", self._video),
                web.get(f"{one}/thumbnail", self._thumbnail), web.post(f"{one}/edits", self._change),
                web.get(f"{one}/edits", self._edits), web.post(f"{one}/solve", self._solve),
                web.get(f"{one}/results/{{result}}", self._result),
                web.get(f"{one}/results/{{result}}/frames", self._frames),
                web.get(f"{one}/results/{{result}}/events", self._events),
                web.get(f"{one}/results/{{result}}/exports/{{format}}", self._export),
                web.post(f"{one}/results/{{result}}/send", self._send),
                web.post(f"{API}/send/stop", self._stop_sending),
                web.post(f"{one}/results/{{result}}/blender", self._blender),
            ]
        )  # fmt: skip
        return app

    @web.middleware
    async def _check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if not self._guard.host_allowed(request):
            raise web.HTTPMisdirectedRequest(text="this server does not answer to that name")
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        program = scheme == "Bearer" and self._guard.token_is_valid(token)
        if request.method not in ("GET", "HEAD") and not program and not self._guard.origin_allowed(request):
            raise web.HTTPForbidden(text="only the server's own page may ask for this")
        if request.path.startswith(API) and not program and not self._guard.is_authorised(request):
            await asyncio.sleep(WRONG_TOKEN_DELAY_S if scheme else 0)
            raise web.HTTPForbidden(text="the token is missing")
        try:
            return await handler(request)
        except ConflictError as error:
            return web.Response(status=409, text=in_brief(error))
        except UsageError as error:
            return web.Response(status=400, text=in_brief(error))
        except PoseError as error:
            return web.Response(status=422, text=in_brief(error))

    async def _page(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "index.html")
        if name not in self._static:
            raise web.HTTPNotFound
        return web.Response(body=self._static[name], content_type=TYPES[name.rpartition(".")[2]], charset="utf-8")

    async def _phone_page(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "phone.html")
        if name not in PHONE_FILES:
            raise web.HTTPNotFound
        return web.Response(body=self._static[name], content_type=TYPES[name.rpartition(".")[2]], charset="utf-8")

    async def _sign_in(self, request: web.Request) -> web.Response:
        token = (await _read_object(request)).get("token")
        if not (isinstance(token, str) and self._guard.token_is_valid(token)):
            await asyncio.sleep(WRONG_TOKEN_DELAY_S)
            raise web.HTTPForbidden(text="that is not the token")
        response = web.Response(status=204)
        self._guard.authorise(response)
        return response

    async def _about(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "version": 1, "presets": PRESETS, "maxGigabytes": self.options.max_gigabytes,
                "formats": [
                    {"name": name, "for": purpose, "shown": name in SHOWN} for name, purpose in EXPORTS.items()
                ],
                "links": [{"name": name, "for": purpose} for name, purpose in live_links()],
                "blender": blender() is not None, "phone": self._phone is not None,
            }
        )  # fmt: skip

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response([self._shown(project) for project in self.projects])

    async def _show(self, request: web.Request) -> web.Response:
        return web.json_response(self._shown(self._project(request)))

    def _shown(self, project: Project) -> dict[str, Any]:
        return project.shown() | {"progress": self._jobs.progress.get(project.id)}

    def _project(self, request: web.Request) -> Project:
        project = self.projects.find(request.match_info["id"])
        if project is None:
            raise web.HTTPNotFound(text="no such project")
        return project

    async def _upload(self, request: web.Request) -> web.Response:
        return web.json_response(self._shown(await self._uploads.take(request)), status=201)

    async def _camera(self, request: web.Request) -> web.Response:
        project = self._project(request)
        await self._uploads.take_camera(request, project)
        return web.json_response(self._shown(project), status=201)

    async def _demo(self, request: web.Request) -> web.Response:
        """Put the demo clip into the queue; it is fetched once."""
        self._uploads.check_room()
        clip = Path(await asyncio.to_thread(demo_clip, quiet=True))
        project = self.projects.create(f"demo{clip.suffix}", "standard", None)
        await asyncio.to_thread(link_or_copy, clip, project.clip)
        await asyncio.to_thread(check_video, project)
        self.projects.add(project)
        self._jobs.add(project)
        return web.json_response(self._shown(project), status=201)

    async def _show_phone(self, request: web.Request) -> web.Response:
        if self._phone is None:
            raise web.HTTPNotFound(text="pose-studio was started without --phone")
        return web.json_response({"address": self._phone.address, "code": qr_code(self._phone.address)})

    async def _rerun(self, request: web.Request) -> web.Response:
        project = self._project(request)
        preset = (await _read_object(request)).get("preset", project.preset)
        if preset not in PRESETS:
            raise UsageError(f"preset: unknown value {shown(preset, 40)!r}; known: {', '.join(PRESETS)}")
        if project.state in ("queued", "running", INCOMPLETE) or len(project.clips) < project.cameras:
            raise UsageError("the clip is in the queue already, or not all of its videos arrived")
        project.preset = preset
        project.trim_results()  # those of the other networks
        self._jobs.add(project)
        return web.json_response(self._shown(project))

    async def _cancel(self, request: web.Request) -> web.Response:
        self._jobs.cancel(self._project(request))
        return web.Response(status=204)

    async def _video(self, request: web.Request) -> web.FileResponse:
        """Send a video, or its copy that browsers play and search fast."""
        project, camera = self._project(request), whole(request, "camera", 1)
        if not 1 <= camera <= len(project.clips):
            raise UsageError(f"camera: expected 1 to {len(project.clips)}, got {camera}")
        if not whole(request, "preview", 0):
            return web.FileResponse(project.clips[camera - 1])
        if camera not in project.previews:
            raise web.HTTPNotFound(text="this video has no copy")
        return web.FileResponse(project.preview(camera))

    async def _thumbnail(self, request: web.Request) -> web.FileResponse:
        path = self._project(request).folder / "thumbnail.jpg"
        if not path.is_file():
            raise web.HTTPNotFound
        return web.FileResponse(path)

    async def _edits(self, request: web.Request) -> web.Response:
        name = {"Content-Disposition": 'attachment; filename="edits.json"'}
        return web.json_response(to_json(self._project(request).edits()), headers=name)

    async def _change(self, request: web.Request) -> web.Response:
        """Append a step of edits, or go to a position of the history."""
        project, body = self._project(request), await _read_object(request)
        try:
            check_type(body.get("revision"), int, "revision")
            check_type(body.get("position"), int | None, "position")
        except TypeError as error:
            raise UsageError(in_brief(error)) from error
        if extra := set(body) - {"revision", "position", "edits"}:
            raise UsageError(f"unknown key {shown(min(extra), 40)!r}")
        position = body.get("position")
        project.change(body["revision"], position, () if position is not None else parse_edits(body.get("edits")))
        return web.json_response(self._shown(project))

    async def _solve(self, request: web.Request) -> web.Response:
        """Compute the result of edits, and return its name."""
        project, edits = self._project(request), parse_edits(await _read_object(request))
        if project.state != DONE:
            raise UsageError("the clip is not processed yet")
        self._jobs.prepare(project)
        name = result_name(edits)
        target, problems, seconds = project.result(name), list[str](), 0.0
        if not target.is_file():
            done = await self._jobs.solve(project, to_json(edits), target)
            problems, seconds = done["problems"], done["seconds"]
            project.trim_results(name)
        return web.json_response({"result": name, "problems": problems, "seconds": seconds})

    def _table(self, request: web.Request) -> Any:
        path = self._existing(request)
        return data.opened(path, path.stat().st_mtime_ns)

    async def _result(self, request: web.Request) -> web.Response:
        clips = self._project(request).clips
        content = await asyncio.to_thread(
            lambda: json.dumps(data.metadata(self._table(request), clips), allow_nan=False)
        )
        return web.Response(text=content, content_type="application/json")

    async def _frames(self, request: web.Request) -> web.Response:
        table = self._table(request)
        first, count = whole(request, "first", 0), whole(request, "count", data.MAX_FRAMES)
        camera = whole(request, "camera", 1)
        content = await asyncio.to_thread(
            lambda: json.dumps(data.portion(table, first, count, camera), allow_nan=False)
        )
        return web.Response(text=content, content_type="application/json")

    async def _events(self, request: web.Request) -> web.Response:
        self._table(request)  # refuses an unknown result
        poses = self._project(request).result(request.match_info["result"])
        try:
            found = await self._exports.worker.ask({"do": "events", "poses": str(poses)})
        except PoseError:  # a movement that cannot be analysed has none
            found = {"events": []}
        return web.json_response(found)

    async def _export(self, request: web.Request) -> web.StreamResponse:
        """Write a result in a format, and send the file, or an archive of several files."""
        project, name = self._project(request), request.match_info["format"]
        poses = self._existing(request)
        if name not in EXPORTS:
            raise UsageError(f"format: unknown value {shown(name, 40)!r}; known: {', '.join(EXPORTS)}")
        return await self._exports.file(project, name, poses, request.query)

    async def _send(self, request: web.Request) -> web.Response:
        """Play a result in real time to other programs, in place of what is sent at the moment."""
        body, poses = await _read_object(request), self._existing(request)
        link, address = body.get("link"), body.get("address", "")
        texts = isinstance(link, str) and isinstance(address, str)
        if not texts or link not in dict(live_links()) or "," in address:
            raise UsageError(f"link: expected one of {', '.join(dict(live_links()))} and an address")
        await self._player.play(poses, f"{link}={address}" if address else link)
        return web.Response(status=204)

    async def _stop_sending(self, request: web.Request) -> web.Response:
        await self._player.pause()
        return web.Response(status=204)

    async def _blender(self, request: web.Request) -> web.Response:
        """Open the characters of a result in Blender."""
        project, poses = self._project(request), self._existing(request)
        folder = project.folder / "blender"
        folder.mkdir(exist_ok=True)
        written = await self._exports.written(project, "glb", poses, folder, {})
        await open_in_blender(written[0])
        return web.Response(status=204)

    def _existing(self, request: web.Request) -> Path:
        path = self._project(request).result(request.match_info["result"])
        if not path.is_file():
            raise web.HTTPNotFound(text="no such result; solve its edits first")
        return path


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.setdefault("Content-Security-Policy", POLICY)
    await add_headers(request, response)


async def _read_object(request: web.Request) -> dict[str, Any]:
    try:
        value = strict_json(await request.read())
    except ValueError as error:
        raise UsageError(in_brief(error)) from error
    if not isinstance(value, dict):
        raise UsageError("expected a JSON object")
    return value
