"""What the studio writes and sends of a result: files for the browser and for Blender, and live playback."""

import asyncio
import re
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from pose.errors import PoseError, UsageError
from pose.live.links.table import parse_links
from pose.results.edits import parse_edits, to_json
from pose_apps.studio.jobs import Jobs, WorkerProcess
from pose_apps.studio.projects import FIRST, Project, Projects, result_name

SHOWN_POLICY = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data: blob:; media-src data: blob:"
)


@dataclass
class ResultExporter:
    """Writes results in other formats, in a process of its own."""

    projects: Projects
    jobs: Jobs
    worker: WorkerProcess = field(default_factory=WorkerProcess)

    async def file(self, project: Project, name: str, poses: Path, query: Mapping[str, str]) -> web.FileResponse:
        """Return the file of a result in a format, or an archive of several files; `written` lists the errors."""
        folder = tempfile.TemporaryDirectory(prefix="pose-studio-")
        try:
            files = await self.written(project, name, poses, Path(folder.name), query)
            if len(files) == 1:
                target = files[0]
            else:
                target = Path(folder.name) / f"{_stem(project)}-{name}.zip"
                await asyncio.to_thread(_zip, files, target)
        except BaseException:
            folder.cleanup()
            raise
        headers = {"Content-Disposition": f'attachment; filename="{target.name}"'}
        if "show" in query and target.suffix == ".html":  # a page without access to this server
            headers = {"Content-Disposition": "inline", "Content-Security-Policy": SHOWN_POLICY}
        return _TemporaryFile(target, folder, headers)

    async def written(
        self, project: Project, name: str, poses: Path, folder: Path, query: Mapping[str, str]
    ) -> list[Path]:
        """Write a result into an empty folder, and return the files.

        Raises:
            UsageError: If the format does not go with the result or the query.
            PoseError: If the result cannot be written.
        """
        stem = _stem(project)
        if name == "npz":
            shutil.copy(poses, folder / f"{stem}.npz")
        elif name == "overlay":
            edits = to_json(project.edits() if poses.stem != FIRST else [])
            if result_name(parse_edits(edits)) != poses.stem:
                raise UsageError("overlay: only of the first result and of the one with the edits that are kept")
            target = folder / f"{stem}-overlay.mp4"
            await self.worker.ask(self.jobs.request(project, edits, str(poses)) | {"overlay": str(target)})
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
            await self.worker.ask(request)
        return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


class LivePlayer:
    """Plays one result at a time to other programs, in a process of its own."""

    def __init__(self) -> None:
        self._worker = WorkerProcess()
        self._playing: asyncio.Task[dict[str, Any]] | None = None

    async def play(self, poses: Path, send: str) -> None:
        """Play a result in real time, in place of what is sent at the moment.

        Raises:
            UsageError: If the link or its address is invalid.
            PoseError: If playing cannot begin.
        """
        await self._worker.stop()
        await asyncio.to_thread(parse_links, send)
        request = {"do": "send", "poses": str(poses), "send": send}
        started = asyncio.get_running_loop().create_future()
        self._playing = asyncio.create_task(self._worker.ask(request, lambda content: _settle(started, content)))
        await asyncio.wait([self._playing, started], return_when=asyncio.FIRST_COMPLETED)
        if self._playing.done():
            self._playing.result()  # raises its error

    async def pause(self) -> None:
        """End what is sent at the moment."""
        if self._playing is not None:
            self._playing.cancel()
            with suppress(asyncio.CancelledError, PoseError):
                await self._playing

    async def stop(self) -> None:
        """End the process."""
        await self._worker.stop()


class _TemporaryFile(web.FileResponse):
    """A file whose folder is deleted when the file is sent."""

    def __init__(self, path: Path, folder: "tempfile.TemporaryDirectory[str]", headers: Mapping[str, str]) -> None:
        super().__init__(path, headers=headers)
        self._folder = folder

    async def prepare(self, request: web.BaseRequest) -> Any:
        try:
            return await super().prepare(request)
        finally:
            await asyncio.to_thread(self._folder.cleanup)


def _stem(project: Project) -> str:
    return project.id.rpartition("-")[0]


def _settle(future: "asyncio.Future[dict[str, Any]]", content: dict[str, Any]) -> None:
    if not future.done():
        future.set_result(content)


def _zip(written: list[Path], target: Path) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in written:
            archive.write(path, path.name)
