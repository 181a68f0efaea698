"""Scheduling of tasks to free workers, with time limits and retries. It is independent of how workers are run."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from pose_apps.batch.manifest import Line
from pose_apps.batch.work import BatchTask, TaskResult

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
