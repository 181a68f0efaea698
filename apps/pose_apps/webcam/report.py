"""Measurements and problems of a live run: the summary on the terminal and the file of `--report`."""

import json
import math
import os
import platform
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypedDict

from pose.errors import PoseError, UsageError
from pose.live import LiveResult, Loop
from pose.live.result import Stream
from pose.live.subscriber import Subscriber
from pose.utils.json_values import Json
from pose.utils.resources import resident_megabytes
from pose.utils.whole_file import WholeFile, file_errors, write_whole
from pose.utils.written_files import check_not_input, writing
from pose_apps.webcam.live_outputs import LiveOutputs
from pose_apps.webcam.options import WebcamConfig

FORMAT, VERSION = "pose-webcam-report", 1
TYPICAL_REPORT_BYTES = 4096
MEASURE_INTERVAL_SECONDS = 0.5
SETTLED_SECONDS = 60.0  # time after which memory should not grow


class Latency(TypedDict):
    """Statistics of the latency from capture to 3D pose, ms. Values are None if no frame was processed."""

    median: float | None  # median over all frames
    p95: float | None  # 95th percentile over all frames
    p99: float | None  # 99th percentile over all frames
    max: float | None  # maximum over all frames


class PeopleCounts(TypedDict):
    """Statistics of the people in a live run."""

    ids: int  # number of different people
    most_at_a_time: int  # maximum number of people in view at the same time


class MemoryUse(TypedDict):
    """Resident memory of this process, MiB. Values are None if the memory cannot be measured."""

    settled: float | None  # memory 60 s after the start, when all buffers are allocated; for shorter runs, at the end
    highest_after: float | None  # maximum after that time
    end: float | None  # memory at the end of the run


class LiveReport(TypedDict):
    """Content of the `--report` file. The fields are defined in docs/reference/live-messages.md."""

    format: str
    version: int
    source: str
    seconds: float
    frames_in: int
    processed: int
    dropped: int
    left_out: int
    fps: float
    latency_ms: Latency
    people: PeopleCounts
    memory_mib: MemoryUse
    cpu_seconds: float
    cpus: int | None
    device: str
    lifter_delay_ms: float
    ahead_ms: float
    cameras: list[Mapping[str, Json]]
    messages: list[str]
    lost: dict[str, int]
    settings: dict[str, Json]
    python: str


@contextmanager
def watched(loop: Loop) -> Iterator["Watch"]:
    """Monitor a live loop in the background within the context, and yield the monitor."""
    watch, ended = Watch(loop), threading.Event()

    def measure() -> None:
        while not ended.wait(MEASURE_INTERVAL_SECONDS):
            watch.measure()

    thread = threading.Thread(target=measure, name="watch", daemon=True)
    with closing(Subscriber(loop, watch.add_frame, maxlen=64)):
        thread.start()
        try:
            yield watch
        finally:
            ended.set()
            thread.join()


class Watch:
    """Monitor of a live loop, which reports problems and summarises the run at the end."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._start_time, self._cpu = time.monotonic(), time.process_time()
        self._seconds, self._most_people = 0.0, 0
        self._settled = 0.0  # memory at SETTLED_SECONDS, MiB
        self._highest = 0.0  # maximum memory since then, MiB
        self._stream: Stream | None = None
        self._ids: set[int] = set()  # ids of the people in the current stream
        self._people_before = 0  # number of people in earlier streams
        self._problem_log = ProblemLog()
        self.outputs: LiveOutputs | None = None  # sinks and recording; None before they are started

    def measure(self) -> None:
        """Measure the memory, and print new problems of the sources, sinks and recording."""
        self._seconds = time.monotonic() - self._start_time
        try:
            memory = memory_mib()
        except OSError:  # no file descriptor left
            memory = self._highest
        if self._seconds < SETTLED_SECONDS or not self._settled:
            self._settled = self._highest = memory
        self._highest = max(self._highest, memory)
        self._problem_log.update(self._loop.source.name, self._loop.source.message)
        if self.outputs is not None:
            lost = self.outputs.lost()
            for option, trouble in self.outputs.problems().items():
                self._problem_log.update(option, trouble, lost.get(option))

    def add_frame(self, live: LiveResult) -> None:
        """Add the people in a frame to the statistics."""
        if live.stream is not self._stream:
            self._stream, self._people_before, self._ids = live.stream, self._people_before + len(self._ids), set()
        self._ids.update(live.result.people.ids.tolist())
        seen = int(live.result.people.scores.any(axis=1).sum())  # predicted people have only scores of 0
        self._most_people = max(self._most_people, seen)

    def report(self) -> LiveReport:
        """Return the report after the end of the loop. Its fields are defined in docs/reference/live-messages.md."""
        self.measure()
        loop, status, meter = self._loop, self._loop.status(), self._loop.meter
        return {
            "format": FORMAT,
            "version": VERSION,
            "source": loop.source.name,
            "seconds": round(self._seconds, 3),
            "frames_in": status.frames_in,
            "processed": status.processed,
            "dropped": status.dropped,
            "left_out": loop.left_out,
            "fps": round(status.processed / self._seconds, 2),
            "latency_ms": {
                "median": _rounded(meter.percentile(50)),
                "p95": _rounded(meter.percentile(95)),
                "p99": _rounded(meter.percentile(99)),
                "max": _rounded(meter.max_ms),
            },
            "people": {"ids": self._people_before + len(self._ids), "most_at_a_time": self._most_people},
            "memory_mib": {
                "settled": _rounded(self._settled),
                "highest_after": _rounded(self._highest),
                "end": _rounded(memory_mib()),
            },
            "cpu_seconds": round(time.process_time() - self._cpu, 2),
            "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
            "device": status.device,
            "lifter_delay_ms": round(status.lifter_delay_ms, 1),
            "ahead_ms": round(status.ahead_ms, 1),
            "cameras": list(loop.cameras),
            "messages": self._problem_log.latest,
            "lost": {} if self.outputs is None else self.outputs.lost(),
            "settings": asdict(loop.pipeline.config),
            "python": platform.python_version(),
        }


def check_report(config: WebcamConfig) -> None:
    """Check at the start that the file of `--report` can be written."""
    if config.report is None:
        return
    path = Path(config.report)
    if path.is_dir():
        raise UsageError(f"--report: {path} is a folder; name a file")
    if not path.parent.is_dir():
        raise UsageError(f"--report: no such folder: {path.parent}")
    check_not_input([path], [*config.source, *filter(None, [config.cameras])])
    trial = WholeFile(path)
    try:
        with _as_report(), file_errors(path):
            trial.path.write_bytes(bytes(TYPICAL_REPORT_BYTES))
    finally:
        trial.discard()


def write_report(path: Path, report: LiveReport) -> None:
    """Write the report of a live run as JSON; if that fails, print it and raise a PoseError."""
    text = json.dumps(report, indent=2, allow_nan=False) + "\n"
    try:
        with _as_report(), writing([path]):
            write_whole(path, text)
    except PoseError:
        print(text)
        raise


@contextmanager
def _as_report() -> Iterator[None]:
    try:
        yield
    except PoseError as error:
        raise PoseError(f"--report: {error}") from error


def summary(report: LiveReport) -> str:
    """Summarise a live run in lines: frames, latency, memory, and each of several cameras; one line without frames."""
    latency, memory = report["latency_ms"], report["memory_mib"]
    if not report["processed"]:
        return f"{report['source']}: no frame in {report['seconds']:.1f} s"
    return (
        f"{report['source']}: {report['frames_in']} frames in {report['seconds']:.1f} s, "
        f"{report['processed']} processed ({report['fps']:.1f} frames/s), {report['dropped']} dropped\n"
        f"latency from capture to 3D: median {latency['median']:.0f} ms, 95th percentile {latency['p95']:.0f} ms, "
        f"longest {latency['max']:.0f} ms"
        + ("" if memory["end"] is None else f"; memory {memory['end']:.0f} MiB")
        + "".join(f"\n{camera_line(camera)}" for camera in report["cameras"])
    )


def camera_line(camera: Mapping[str, Any]) -> str:
    """Return a line about the accuracy of the calibration of one of several cameras."""
    if camera["residual_px"] is None:
        return f"{camera['name']}: calibration given"
    sigma = camera["sigma"]
    return (
        f"{camera['name']}: rotation +- {sigma['rotation']:.1f} degrees, position +- {sigma['position']:.2f} m, offset "
        f"{1000 * camera['offset']:.0f} ms (+- {1000 * sigma['offset']:.0f} ms), reprojection error "
        f"{camera['residual_px']:.1f} px"
    )


def memory_mib() -> float:
    """Return the resident, or only known peak, memory of this process in MiB; NaN if unknown."""
    now = resident_megabytes()
    if now is not None:
        return now
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 1)


MAX_LATEST = 100


class ProblemLog:
    """Log of the problems of a live run, with the latest 100."""

    def __init__(self) -> None:
        self.latest: list[str] = []  # printed problems, oldest first; at most the latest 100
        self._current: dict[str, str] = {}
        self._is_away: dict[str, bool] = {}

    def update(self, what: str, problem: str, lost: int | None = None) -> None:
        """Print the problem of a source or sink if it is new, or that its previous one is resolved."""
        problem, is_away, _ = problem.partition(", reconnecting")
        before, self._current[what] = self._current.get(what, ""), problem
        was_away, self._is_away[what] = self._is_away.get(what, lost is not None), bool(is_away) or lost is not None
        if problem and problem != before:
            line = problem if what in problem else f"{what}: {problem}"
            self.latest = [*self.latest[1 - MAX_LATEST :], line]
            print(f"warning: {line}", file=sys.stderr, flush=True)
        elif before and not problem and was_away:  # other messages of a source, such as a changed size, simply end
            words = "is back" if lost is None else f"continues; {lost} lost"
            print(f"note: {what} {words}", file=sys.stderr, flush=True)
