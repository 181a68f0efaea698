"""What the tests of `pose-batch` share: short clips of the real ones."""

from collections import deque
from collections.abc import Iterator

import pytest
from pose_apps.batch.schedule import WorkerEvent
from pose_apps.batch.work import BatchTask, Job, Worker


class OneWorkerHere:
    """An engine whose only worker runs in this process, since each new process loads the libraries again."""

    workers = 1

    def __init__(self, job: Job) -> None:
        self._worker = Worker(job)
        self._events = deque([WorkerEvent(0, "ready", None)])

    def assign(self, worker: int, task: BatchTask) -> None:
        def tell(*frames: int) -> None:
            self._events.append(WorkerEvent(worker, "frames", frames))

        self._events.append(WorkerEvent(worker, "done", self._worker.process(task, tell)))

    def events(self, timeout: float) -> Iterator[WorkerEvent]:
        while self._events:
            yield self._events.popleft()

    def kill(self, worker: int) -> None:
        raise AssertionError("a worker in this process cannot be killed")

    def close(self) -> None:
        pass


@pytest.fixture
def in_this_process(monkeypatch) -> None:
    monkeypatch.setattr("pose_apps.batch.command._engine", lambda config, job, max_workers: OneWorkerHere(job))
