"""Engine for a Ray cluster. Each worker is an actor with its own networks, and each clip is one call of an actor.

Ray restarts dead actors on any node. As with other engines, `pose_apps.batch.schedule` decides on further attempts, and
the manifest records the progress. Clips and results must have the same paths on every node.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pose.errors import PoseError, UsageError
from pose.utils.shown import in_brief, shown
from pose_apps.batch.schedule import WorkerEvent
from pose_apps.batch.work import BatchTask, Job, TaskResult, Worker

CONNECT_SECONDS = 10.0
_SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])  # empty SETTINGS frame (RFC 9113, 6.5)
ENVIRONMENT = ("POSE_WEIGHTS_DIR", "PYTHONPATH")  # environment variables that workers on other nodes need


class RayWorkers:
    """Engine whose workers are actors of a Ray cluster. Implements `pose_apps.batch.schedule.Engine`."""

    def __init__(self, count: int | None, job: Job, address: str | None, megabytes: int, max_workers: int) -> None:
        """Start the actors; `count` None is as many as the cluster allows, `megabytes` only places them."""
        self._ray = _start_ray(address)
        cpus, gpus = float(job.pipeline.threads), float(_on_gpu(job))
        if count is None:
            count = _fitting_workers(self._ray.cluster_resources(), cpus, gpus, megabytes)
        options = {"num_cpus": cpus, "num_gpus": gpus, "memory": megabytes << 20, "max_restarts": -1}
        actor = self._ray.remote(_actor(self._ray)).options(**options)
        self._actors = [actor.remote(job, str(Path.cwd())) for _ in range(min(count, max_workers))]
        self._calls: dict[Any, int] = {}  # pending call -> worker
        for worker in range(len(self._actors)):
            self._request_ready(worker)

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self._actors)

    def assign(self, worker: int, task: BatchTask) -> None:
        """Send a task to a worker that is ready."""
        self._calls[self._actors[worker].process.remote(task)] = worker

    def events(self, timeout: float) -> Iterator[WorkerEvent]:
        """Yield the events of the workers. Wait at most `timeout` s for the first event."""
        finished, _ = self._ray.wait(list(self._calls), num_returns=1, timeout=timeout)
        for call in finished:
            worker = self._calls.pop(call)
            try:
                answer = self._ray.get(call)
            except self._ray.exceptions.RayError as error:  # the actor, its node, or Ray's object store died
                yield WorkerEvent(worker, "died", f"worker lost ({_in_one_line(error)})")
                self._request_ready(worker)
                continue
            if isinstance(answer, TaskResult):
                yield WorkerEvent(worker, "frames", (answer.line.frames, answer.line.frames))
                yield WorkerEvent(worker, "done", answer)
            else:
                yield WorkerEvent(worker, "ready")

    def kill(self, worker: int) -> None:
        """End a worker; Ray restarts it."""
        self._ray.kill(self._actors[worker], no_restart=False)

    def close(self) -> None:
        """End all workers."""
        for actor in self._actors:
            with suppress(self._ray.exceptions.RayError):
                self._ray.kill(actor)
        self._ray.shutdown()

    def _request_ready(self, worker: int) -> None:
        """Request a `ready` event of a worker. It is sent after Ray has started the actor."""
        self._calls[self._actors[worker].ready.remote()] = worker


def _start_ray(address: str | None) -> Any:
    """Import and start Ray, or connect to a cluster; return the Ray module."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # disable usage statistics
    try:
        import ray
    except ImportError as error:
        raise PoseError('--engine ray needs ray: pip install "pose-run[ray]"') from error
    known = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    if address is not None:
        _check_answers(address)
    settings: dict[str, Any] = {"include_dashboard": False} if address is None else {}
    try:
        ray.init(
            address=address or "local",
            log_to_driver=False,
            logging_level="error",
            runtime_env={"env_vars": known},
            **settings,
        )
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise PoseError(f"--address: no Ray cluster answers at {address} ({_in_one_line(error)})") from error
    return ray


def _check_answers(address: str) -> None:
    """Check that a Ray server listens at HOST:PORT. Ray itself would retry for minutes."""
    if address in ("auto", "local"):
        return
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise UsageError(f"--address: expected HOST:PORT or auto, got {shown(address, 80)}")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_SECONDS) as connection:
            if not os.environ.get("RAY_USE_TLS"):
                _check_is_grpc(connection)
    except (OSError, UnicodeError) as error:
        raise PoseError(f"--address: no Ray cluster answers at {shown(address, 80)} ({in_brief(error)})") from error


def _check_is_grpc(connection: socket.socket) -> None:
    """Check that the server first sends an HTTP/2 SETTINGS frame (RFC 9113, 3.4), as Ray's gRPC servers do."""
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS)
    answer = b""
    while len(answer) < len(_SETTINGS) and (part := connection.recv(len(_SETTINGS) - len(answer))):
        answer += part
    if len(answer) < len(_SETTINGS) or answer[3] != _SETTINGS[3]:
        raise OSError("the port is in use by another program")


def _actor(ray: Any) -> type:
    class ClipActor:
        """Actor that runs a `Worker` on a node chosen by Ray."""

        def __init__(self, job: Job, folder: str) -> None:
            os.chdir(folder)  # base of the call's relative paths
            self._worker = Worker(job)

        @ray.method(max_task_retries=-1)  # type: ignore[untyped-decorator]
        def ready(self) -> None:
            """Return as soon as the actor runs. Ray repeats this call after it restarts the actor."""

        # Ray must not retry: `Schedule` counts the attempts.
        @ray.method(max_task_retries=0)  # type: ignore[untyped-decorator]
        def process(self, task: BatchTask) -> TaskResult:
            return self._worker.process(task)

    return ClipActor


def _fitting_workers(resources: dict[str, float], cpus: float, gpus: float, megabytes: int) -> int:
    """Return the number of workers for which the cluster has resources, at least 1, which may have to wait."""
    room = [resources.get("CPU", 0) / cpus, resources.get("memory", 0) / (megabytes << 20)]
    room += [resources.get("GPU", 0) / gpus] if gpus else []
    return max(1, int(min(room)))


def _on_gpu(job: Job) -> bool:
    from pose.utils.device import resolve_device

    return job.pipeline.device != "cpu" and resolve_device(job.pipeline.device) != "cpu"


def _in_one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {in_brief(error)}"
