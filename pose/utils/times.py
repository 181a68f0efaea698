"""Time spent in the stages of a run."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class StageTimes:
    """Seconds spent in each stage of a run. Time in a nested stage counts for the inner stage only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}  # wall-clock time in s by stage
        # CPU time in s by stage, of the thread that ran the stage. `rest` measures the time of other threads, such as
        # those of networks and codecs.
        self.processor: dict[str, float] = {}
        self._thread = threading.local()  # each thread has its own nesting

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Return a context manager that measures the time of a stage."""
        outer, self._thread.inner = getattr(self._thread, "inner", (0.0, 0.0)), (0.0, 0.0)
        start, cpu_s = time.perf_counter(), time.thread_time()
        try:
            yield
        finally:
            spent, cpu_s = time.perf_counter() - start, time.thread_time() - cpu_s
            inner = self._thread.inner
            self.add(stage, spent - inner[0], cpu_s - inner[1])
            self._thread.inner = outer[0] + spent, outer[1] + cpu_s

    @contextmanager
    def rest(self, name: str) -> Iterator[None]:
        """Return a context manager that adds the CPU time that no stage inside has measured to a further stage."""
        cpu_s, known = time.process_time(), sum(list(self.processor.values()))
        try:
            yield
        finally:
            cpu_s, known = time.process_time() - cpu_s, sum(list(self.processor.values())) - known
            self.add(name, 0.0, max(0.0, cpu_s - known))

    def add(self, stage: str, seconds: float, processor: float) -> None:
        """Add wall-clock time `seconds` and CPU time `processor`, both in s, to a stage."""
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        self.processor[stage] = self.processor.get(stage, 0.0) + processor
