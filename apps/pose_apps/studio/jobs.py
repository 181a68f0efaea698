"""Worker processes of the studio: a queue of runs, each in its own process, and one warm process for edits."""

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pose.errors import PoseError
from pose_apps.studio.projects import CANCELLED, DONE, FAILED, FIRST, QUEUED, RUNNING, Project

MAX_LINE_BYTES = 1 << 20
Progress = Callable[[dict[str, Any]], None]


class WorkerProcess:
    """One worker process, which is started when it is needed; it answers one request at a time."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._lock = asyncio.Lock()

    async def ask(self, request: Mapping[str, Any], progress: Progress = lambda content: None) -> dict[str, Any]:
        """Send a request and return the answer; PoseError if the request fails, or the process ends."""
        async with self._lock:
            if self._process is None or self._process.returncode is not None:
                self._process = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "pose_apps.studio.worker", stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, limit=MAX_LINE_BYTES,
                )  # fmt: skip
            process = self._process
            assert process.stdin is not None
            assert process.stdout is not None
            try:
                process.stdin.write(json.dumps(request).encode() + b"\n")
                await process.stdin.drain()
                while line := await process.stdout.readline():
                    answer = json.loads(line)
                    if "error" in answer:
                        raise PoseError(answer["error"])
                    if "done" in answer:
                        done: dict[str, Any] = answer["done"]
                        return done
                    progress(answer["progress"])
            except asyncio.CancelledError:
                await self.stop()  # half an answer would be taken for that of the next request
                raise
            except OSError as error:
                raise PoseError("the worker ended") from error
        raise PoseError("the worker ended unexpectedly; out of memory?")

    async def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


class Jobs:
    """The queue of runs, and the process that solves edits."""

    def __init__(self, cache: str) -> None:
        self._cache = cache
        self._wake = asyncio.Event()
        self._waiting: list[Project] = []
        self._current: Project | None = None
        self._task: asyncio.Task[dict[str, Any]] | None = None
        self.progress: dict[str, dict[str, Any]] = {}  # by id of the project
        self.solver, self._runner = WorkerProcess(), WorkerProcess()
        self._copier, self._copies = WorkerProcess(), False
        self._uncopied: list[Project] = []  # projects whose videos may need copies, the next one last
        self._copied: set[str] = set()  # ids of projects that need no further copy
        self._background: set[asyncio.Task[None]] = set()

    def warm(self, worker: WorkerProcess, preset: str = "") -> None:
        """Start a worker, and load what its first request needs; for corrections also the lifter of a preset."""

        async def ask() -> None:
            with suppress(PoseError):  # the request reports it
                await worker.ask({"do": "warm", "preset": preset})

        self._in_background(ask())

    def prepare(self, project: Project) -> None:
        """Get ready for the page of a project: load what corrections need, and copy its videos."""
        self.warm(self.solver, project.preset)
        if project.id not in self._copied:
            self._uncopied = [one for one in self._uncopied if one is not project] + [project]
            if not self._copies:
                self._copies = True
                self._in_background(self._copy())

    async def _copy(self) -> None:
        """Copy videos that need it (`pose_apps.studio.preview`), those of the project that was opened last first."""
        while self._uncopied:
            project = self._uncopied.pop()
            self._copied.add(project.id)
            for number, clip in enumerate(project.clips, 1):
                if not (target := project.preview(number)).is_file():
                    with suppress(PoseError):  # the page plays the video as it is
                        await self._copier.ask({"do": "preview", "video": str(clip), "target": str(target)})
            if not self._uncopied:
                await self._copier.stop()
        self._copies = False

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        self._background.add(task := asyncio.create_task(work))
        task.add_done_callback(self._background.discard)

    def add(self, project: Project) -> None:
        """Put a project at the end of the queue."""
        project.state, project.problem = QUEUED, ""
        project.save()
        if project not in self._waiting and project is not self._current:
            self._waiting.append(project)
        self._wake.set()

    def cancel(self, project: Project) -> None:
        """Take a project out of the queue, or end its run."""
        if project in self._waiting:
            self._waiting.remove(project)
            self._settle(project, CANCELLED)
        elif project is self._current and self._task is not None:
            self._task.cancel()

    def request(self, project: Project, edits: Mapping[str, Any], target: str) -> dict[str, Any]:
        """Return the request of a run."""
        height = None if project.height is None else f"{project.height:g}"
        return {
            "do": "run", "videos": [str(path) for path in project.clips], "preset": project.preset, "height": height,
            "edits": edits, "target": target, "cache": self._cache, "journal": str(project.journal),
        }  # fmt: skip

    async def solve(self, project: Project, edits: Mapping[str, Any], target: Path) -> dict[str, Any]:
        """Compute the result of edits in the warm process; its progress is that of the project."""
        try:
            request = self.request(project, edits, str(target))
            return await self.solver.ask(request, lambda content: self.progress.__setitem__(project.id, content))
        finally:
            self.progress.pop(project.id, None)

    async def run(self) -> None:
        """Run the projects of the queue, one after another, until cancelled."""
        self.warm(self._runner)
        try:
            while True:
                while self._waiting:
                    await self._run_one(self._waiting.pop(0))
                self._wake.clear()
                await self._wake.wait()
        finally:
            for task in list(self._background):
                task.cancel()
            await self._runner.stop()
            await self._copier.stop()

    async def _run_one(self, project: Project) -> None:
        self._current = project
        project.state = RUNNING
        project.save()
        request = self.request(project, _NO_EDITS, str(project.result(FIRST)))
        self._task = asyncio.create_task(
            self._runner.ask(request, lambda content: self.progress.__setitem__(project.id, content))
        )
        try:
            done = await self._task
            self._settle(project, DONE, "; ".join(done["problems"]))
            self.prepare(project)
        except asyncio.CancelledError:
            this = asyncio.current_task()
            if this is not None and this.cancelling():
                raise  # the studio ends; the project stays RUNNING on disk and is queued by the next one
            self._settle(project, CANCELLED)
        except PoseError as error:
            self._settle(project, FAILED, str(error))
        finally:
            self._current = self._task = None
            self.progress.pop(project.id, None)

    @staticmethod
    def _settle(project: Project, state: str, problem: str = "") -> None:
        project.state, project.problem = state, problem
        project.save()


_NO_EDITS = {"format": "pose-edits", "version": 1, "edits": []}
