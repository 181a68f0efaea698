"""Engine for one machine, with one process per worker. A worker that dies is restarted."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from pose_apps.batch.schedule import WorkerEvent
from pose_apps.batch.work import BatchTask, Job, Worker

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
