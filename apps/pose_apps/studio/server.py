"""HTTP server of the studio. docs/reference/studio-http.md documents its interface, version 1."""

import asyncio
import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from aiohttp import web

from pose.errors import PoseError, UsageError
from pose.live.listener import listening
from pose.live.web.guard import HEADERS, Guard, add_headers
from pose.live.web.settings import WebSettings
from pose.results.edits import parse_edits, to_json
from pose.utils.json_types import check_type
from pose.utils.json_values import strict_json
from pose.utils.shown import in_brief, shown
from pose_apps.studio import data
from pose_apps.studio.jobs import Jobs, WorkerProcess
from pose_apps.studio.projects import DONE, FIRST, PRESETS, ConflictError, Project, Projects, result_name
from pose_apps.studio.takeaway import EXPORTS

API = "/api/v1"
MAX_JSON_BYTES = 8 << 20
MAX_PROJECTS = 1000
MAX_UPLOADS = 2  # videos that arrive at the same time
UPLOAD_IDLE_S = 30.0  # time without data after which an upload ends
WRONG_TOKEN_DELAY_S = 0.5
SHARED = ("paint.js", "turntable.js", "body.js", "scene.js", "style.css", "icon.svg")  # files of the live page
TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
POLICY = HEADERS["Content-Security-Policy"].replace("img-src", "media-src 'self' blob:; img-src")
OVERLAY = "overlay"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(kw_only=True)
class StudioSettings:
    """Settings of the server."""

    settings: WebSettings
    max_gigabytes: float  # maximum size of a video, GB


@dataclass
class Studio:
    """The server and its projects."""

    options: StudioSettings
    projects: Projects
    _uploads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_UPLOADS))

    def __post_init__(self) -> None:
        self._guard = Guard(self.options.settings)
        self._jobs = Jobs(str(self.projects.folder / ".cache"))
        self._exporter = WorkerProcess()
        self._static = {entry.name: entry.read_bytes() for entry in (files("pose_apps.studio") / "static").iterdir()}
        shared = files("pose.live.web") / "static"
        self._static |= {name: (shared / name).read_bytes() for name in SHARED}

    async def run(self, started: Callable[[int], None]) -> None:
        """Serve until cancelled; unfinished runs are queued again by the next studio of this folder.

        Raises:
            PoseError: If the address cannot be bound.
        """
        settings, queue = self.options.settings, asyncio.create_task(self._jobs.run())
        for project in self.projects:
            if project.state == "queued":
                self._jobs.add(project)
        try:
            async with listening(self._app(), settings.host, settings.port) as port:
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
            await self._exporter.stop()

    def _app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_JSON_BYTES, middlewares=[self._check])
        app.on_response_prepare.append(_add_headers)
        one = f"{API}/projects/{{id}}"
        app.add_routes(
            [
                web.get("/", self._page), web.get("/static/{name}", self._page), web.post("/session", self._sign_in),
                web.get(API, self._about), web.get(f"{API}/projects", self._list),
                web.post(f"{API}/projects", self._upload), web.get(one, self._show),
                web.post(f"{one}/run", self._rerun), web.post(f"{one}/cancel", self._cancel),
                web.get(f"{one}/video", self._video),
                web.get(f"{one}/thumbnail", self._thumbnail), web.post(f"{one}/edits", self._change),
                web.get(f"{one}/edits", self._edits), web.post(f"{one}/solve", self._solve),
                web.get(f"{one}/results/{{result}}", self._result),
                web.get(f"{one}/results/{{result}}/frames", self._frames),
                web.get(f"{one}/results/{{result}}/events", self._events),
                web.get(f"{one}/results/{{result}}/exports/{{format}}", self._export),
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
                "formats": [{"name": name, "for": purpose} for name, purpose in EXPORTS.items()],
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
        if sum(1 for _ in self.projects) >= MAX_PROJECTS:
            raise UsageError(f"the folder has {MAX_PROJECTS} projects; start pose-studio with another folder")
        if self._uploads.locked():
            raise web.HTTPTooManyRequests(text=f"{MAX_UPLOADS} videos arrive at the moment; try again later")
        query = request.query
        try:
            height = float(query["height"]) if query.get("height") else None
        except ValueError as error:
            raise UsageError(f"height: expected metres, got {shown(query['height'], 40)!r}") from error
        async with self._uploads:
            project = self.projects.create(query.get("name", ""), query.get("preset", "standard"), height)
            try:
                await self._receive(request, project.clip)
                await asyncio.to_thread(_check_video, project)
            except BaseException:
                project.clip.unlink(missing_ok=True)
                (project.folder / "thumbnail.jpg").unlink(missing_ok=True)
                with suppress(OSError):
                    project.folder.rmdir()
                raise
        self.projects.add(project)
        self._jobs.add(project)
        return web.json_response(self._shown(project), status=201)

    async def _receive(self, request: web.Request, target: Path) -> None:
        left = int(1e9 * self.options.max_gigabytes)
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
                    limit = self.options.max_gigabytes
                    raise UsageError(f"the video is larger than {limit:g} GB; --max-gigabytes sets this limit")
                await asyncio.to_thread(file.write, chunk)

    async def _rerun(self, request: web.Request) -> web.Response:
        project = self._project(request)
        preset = (await _read_object(request)).get("preset", project.preset)
        if preset not in PRESETS:
            raise UsageError(f"preset: unknown value {shown(preset, 40)!r}; known: {', '.join(PRESETS)}")
        if project.state in ("queued", "running"):
            raise UsageError("the clip is in the queue already")
        project.preset = preset
        project.trim_results()  # those of the other networks
        self._jobs.add(project)
        return web.json_response(self._shown(project))

    async def _cancel(self, request: web.Request) -> web.Response:
        self._jobs.cancel(self._project(request))
        return web.Response(status=204)

    async def _video(self, request: web.Request) -> web.FileResponse:
        return web.FileResponse(self._project(request).clip)

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
        name = result_name(edits)
        target, problems, seconds = project.result(name), list[str](), 0.0
        if not target.is_file():
            done = await self._jobs.solver.ask(self._jobs.request(project, to_json(edits), str(target)))
            problems, seconds = done["problems"], done["seconds"]
            project.trim_results(name)
        return web.json_response({"result": name, "problems": problems, "seconds": seconds})

    def _table(self, request: web.Request) -> Any:
        path = self._project(request).result(request.match_info["result"])
        if not path.is_file():
            raise web.HTTPNotFound(text="no such result; solve its edits first")
        return data.opened(path, path.stat().st_mtime_ns)

    async def _result(self, request: web.Request) -> web.Response:
        content = await asyncio.to_thread(lambda: json.dumps(data.metadata(self._table(request)), allow_nan=False))
        return web.Response(text=content, content_type="application/json")

    async def _frames(self, request: web.Request) -> web.Response:
        table = self._table(request)
        first, count = _whole(request, "first", 0), _whole(request, "count", data.MAX_FRAMES)
        content = await asyncio.to_thread(lambda: json.dumps(data.portion(table, first, count), allow_nan=False))
        return web.Response(text=content, content_type="application/json")

    async def _events(self, request: web.Request) -> web.Response:
        self._table(request)  # refuses an unknown result
        poses = self._project(request).result(request.match_info["result"])
        try:
            found = await self._exporter.ask({"do": "events", "poses": str(poses)})
        except PoseError:  # a movement that cannot be analysed has none
            found = {"events": []}
        return web.json_response(found)

    async def _export(self, request: web.Request) -> web.StreamResponse:
        """Write a result in a format, and send the file, or an archive of several files."""
        project, name = self._project(request), request.match_info["format"]
        poses = project.result(request.match_info["result"])
        if name not in EXPORTS:
            raise UsageError(f"format: unknown value {shown(name, 40)!r}; known: {', '.join(EXPORTS)}")
        if not poses.is_file():
            raise web.HTTPNotFound(text="no such result; solve its edits first")
        stem = project.id.rpartition("-")[0]
        with tempfile.TemporaryDirectory(prefix="pose-studio-") as folder:
            written = await self._written(project, name, poses, Path(folder), stem, request.query)
            if len(written) == 1:
                target = written[0]
            else:
                target = Path(folder) / f"{stem}-{name}.zip"
                await asyncio.to_thread(_zip, written, target)
            response = web.FileResponse(
                target, headers={"Content-Disposition": f'attachment; filename="{target.name}"'}
            )
            await response.prepare(request)
            return response

    async def _written(
        self, project: Project, name: str, poses: Path, folder: Path, stem: str, query: Mapping[str, str]
    ) -> list[Path]:
        if name == "npz":
            shutil.copy(poses, folder / f"{stem}.npz")
        elif name == OVERLAY:
            edits = to_json(project.edits() if poses.stem != FIRST else [])
            if result_name(parse_edits(edits)) != poses.stem:
                raise UsageError("overlay: only of the first result and of the one with the edits that are kept")
            target = folder / f"{stem}-overlay.mp4"
            await self._exporter.ask(self._jobs.request(project, edits, str(poses)) | {"overlay": str(target)})
        else:
            request: dict[str, Any] = {
                "do": "export", "format": name, "folder": str(folder), "poses": str(poses), "video": str(project.clip),
                "stem": stem, "other": str(poses), "people": [],
            }  # fmt: skip
            if name == "compare":
                other = self.projects.find(query.get("other", "")) or project
                request["other"] = str(other.result(result_name(other.edits()) if other is not project else poses.stem))
                request["people"] = [int(word) for word in re.findall(r"\d{1,15}", query.get("people", ""))][:2]
                if len(request["people"]) == 1 or not Path(request["other"]).is_file():
                    raise UsageError("compare: give two people, and clips that are processed")
            await self._exporter.ask(request)
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Content-Security-Policy"] = POLICY
    await add_headers(request, response)


async def _read_object(request: web.Request) -> dict[str, Any]:
    try:
        value = strict_json(await request.read())
    except ValueError as error:
        raise UsageError(in_brief(error)) from error
    if not isinstance(value, dict):
        raise UsageError("expected a JSON object")
    return value


def _whole(request: web.Request, key: str, default: int) -> int:
    given = request.query.get(key, str(default))
    if not re.fullmatch(r"\d{1,9}", given):
        raise UsageError(f"{key}: expected a whole number, got {shown(given, 40)!r}")
    return int(given)


def _check_video(project: Project) -> None:
    """Open the video, and write its first image as thumbnail."""
    import cv2

    from pose.video import open_source

    try:
        with open_source(str(project.clip)) as source:
            frame = next(iter(source), None)
    except PoseError as error:
        raise UsageError(f"{project.name}: {in_brief(error).replace(str(project.clip), 'this file')}") from error
    if frame is None:
        raise UsageError(f"{project.name}: no frame could be read")
    scale = 160 / max(frame.image.shape[:2])
    small = cv2.resize(frame.image, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(project.folder / "thumbnail.jpg"), small[:, :, ::-1])


def _zip(written: list[Path], target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in written:
            archive.write(path, path.name)
