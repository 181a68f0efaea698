"""Scheduling of tasks to free workers with time limits and retries, and workers as local processes."""

import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import Any, Literal, Protocol

from pose_apps.batch.manifest import Line
from pose_apps.batch.work import BatchTask, Job, TaskResult, Worker

TICK_SECONDS = 0.5
MAX_START_FAILURES = 10  # consecutive deaths of workers without a result, after which the run is aborted


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """Event reported by a worker: its number, kind and details (`value`)."""

    # `ready`: the worker can take a task. `frames`: the numbers of newly finished frames and of all frames, or None.
    # `done`: a `TaskResult`. `died`: the reason; the engine restarts the worker.

    worker: int
    kind: Literal["ready", "frames", "done", "died"]  # kind of the event
    value: Any = None  # details


class Engine(Protocol):
    """Protocol of a set of workers that process clips in parallel. Workers have numbers from 0."""

    @property
    def workers(self) -> int:
        """Number of workers."""
        ...

    def assign(self, worker: int, task: BatchTask) -> None:
        """Send a task to a worker that is ready."""
        ...

    def events(self, timeout: float) -> Iterator[WorkerEvent]:
        """Yield new events of the workers. Wait at most `timeout` s for the first event."""
        ...

    def kill(self, worker: int) -> None:
        """Kill a worker. The engine restarts it."""
        ...

    def close(self) -> None:
        """End all workers."""
        ...


@dataclass(slots=True)
class _Work:
    task: BatchTask
    started: float
    overdue: bool = False


class StartError(Exception):
    """Exception for workers that repeatedly die before they are ready."""


class Schedule:
    """Scheduler that sends clips in order to free workers, until each is finished or has failed finally."""

    # `time_limit` is the maximum time per clip, s. `retries` counts further attempts after a worker died, or after an
    # error that does not depend on the clip.

    def __init__(
        self,
        engine: Engine,
        tasks: list[BatchTask],
        *,
        time_limit: float,
        retries: int,
        on_frames: Callable[[str, int, int | None], None] = lambda clip, count, total: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine, self._waiting = engine, deque(tasks)
        self._time_limit, self._retries, self._on_frames, self._clock = time_limit, retries, on_frames, clock
        self._working: dict[int, _Work] = {}
        self._free: set[int] = set()
        self._deaths = 0

    def lines(self) -> Iterator[Line]:
        """Yield the manifest entry of every clip as soon as the clip is finished or has failed finally."""
        while self._waiting or self._working:
            for event in self._engine.events(TICK_SECONDS):
                line = self._handle(event)
                if line is not None:
                    yield line
            self._end_overdue()

    def _handle(self, event: WorkerEvent) -> Line | None:
        """Process an event, and return the manifest line if a task is finished."""
        line = None
        if event.kind == "frames":
            if (task := self._working.get(event.worker)) is not None:
                self._on_frames(task.task.clip.name, *event.value)
        elif event.kind == "ready":
            self._deaths = 0
            self._free.add(event.worker)
        elif event.kind == "died":
            self._free.discard(event.worker)
            line = self._handle_death(event)
        elif (work := self._working.pop(event.worker, None)) is not None:
            if not work.overdue:  # otherwise it is being killed, and reports when it is ready again
                self._free.add(event.worker)
            line = self._handle_result(work, event.value)
        self._hand_out()
        return line

    def _handle_result(self, work: _Work, result: TaskResult) -> Line | None:
        """Return the manifest line of an answer; None if the task is tried again."""
        if result.retry and work.task.attempts <= self._retries:
            self._retry(work.task)
            return None
        return result.line

    def _handle_death(self, event: WorkerEvent) -> Line | None:
        work = self._working.pop(event.worker, None)
        if work is None:
            self._deaths += 1
            if self._deaths == MAX_START_FAILURES:
                raise StartError(event.value)
            return None
        if work.overdue:
            return self._failed_line(work, f"exceeded the time limit of {self._time_limit:g} s")
        if work.task.attempts <= self._retries:
            self._retry(work.task)
            return None
        return self._failed_line(work, event.value)

    def _failed_line(self, work: _Work, error: str) -> Line:
        clip, task = work.task.clip, work.task
        seconds = round(self._clock() - work.started, 3)
        line = Line(path=clip.path, name=clip.name, key=None, status="failed", error=error, seconds=seconds)
        return replace(line, attempts=task.attempts, signature=clip.signature())

    def _retry(self, task: BatchTask) -> None:
        """Append a task to the end of the queue for another attempt."""
        # At this position, a task that kills its worker does not kill the next worker immediately.
        self._waiting.append(replace(task, attempts=task.attempts + 1))

    def _hand_out(self) -> None:
        while self._waiting and self._free:
            worker, task = min(self._free), self._waiting.popleft()
            self._free.remove(worker)
            self._working[worker] = _Work(task, self._clock())
            self._engine.assign(worker, task)

    def _end_overdue(self) -> None:
        for worker, work in self._working.items():
            if not work.overdue and self._clock() - work.started > self._time_limit:
                work.overdue = True
                self._engine.kill(worker)


STOP_TIMEOUT_S = 5.0  # s, timeout for a worker to end


@dataclass(slots=True)
class _WorkerProcess:
    process: Any
    pipe: Connection


class Processes:
    """Engine with one local process per worker, spawned, not forked (implements `Engine`)."""

    def __init__(self, count: int, job: Job) -> None:
        self._context = multiprocessing.get_context("spawn")
        self._job = job
        self._members = [self._start_process() for _ in range(count)]

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self._members)

    def assign(self, worker: int, task: BatchTask) -> None:
        """Send a task to a worker that is ready."""
        with suppress(OSError):  # it has just died; the next event reports that
            self._members[worker].pipe.send(task)

    def events(self, timeout: float) -> Iterator[WorkerEvent]:
        """Yield the events of the workers. Wait at most `timeout` s for the first event."""
        places = {member.pipe: number for number, member in enumerate(self._members)}
        for pipe in wait(list(places), timeout):
            assert isinstance(pipe, Connection)
            worker = places[pipe]
            try:
                kind, value = pipe.recv()
            except (EOFError, OSError):
                process = self._members[worker].process
                process.join()
                yield WorkerEvent(worker, "died", _death_reason(process.exitcode))
                self._replace(worker)
            else:
                yield WorkerEvent(worker, kind, value)

    def kill(self, worker: int) -> None:
        """Kill a worker. An event of kind `died` reports this, and a new worker is started."""
        self._members[worker].process.kill()

    def close(self) -> None:
        """End all workers."""
        for member in self._members:
            member.process.kill()
        for member in self._members:
            member.process.join(STOP_TIMEOUT_S)
            member.pipe.close()

    def _replace(self, worker: int) -> None:
        self._members[worker].pipe.close()
        self._members[worker] = self._start_process()

    def _start_process(self) -> _WorkerProcess:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=serve, args=(theirs, self._job), name="pose-batch worker", daemon=True)
        process.start()
        theirs.close()
        return _WorkerProcess(process, ours)


def serve(pipe: Connection, job: Job, make: Callable[[Job], Worker] = Worker) -> None:
    """Run the main loop of a worker, which processes tasks until its parent process ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process of a terminal; the parent handles it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    worker = make(job)
    pipe.send(("ready", None))
    while True:
        try:
            task = pipe.recv()
            pipe.send(("done", worker.process(task, lambda *frames: pipe.send(("frames", frames)))))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # the result is not needed any more


def _death_reason(status: int | None) -> str:
    if status is not None and status < 0:
        name = signal.Signals(-status).name if -status in signal.valid_signals() else str(-status)
        hint = " (out of memory? use fewer --workers)" if -status == signal.SIGKILL else ""
        return f"worker killed ({name}){hint}"
    return f"worker ended with exit status {status}"
