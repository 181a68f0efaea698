"""Where a run's time goes."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


class StageTimes:
    """Seconds spent in each stage, by name. Time spent in a stage inside another counts for the inner one only."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._thread = threading.local()  # stages run in several threads, and each has its own nesting

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        outer, self._thread.inner = getattr(self._thread, "inner", 0.0), 0.0
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.add(stage, spent - self._thread.inner)
            self._thread.inner = outer + spent

    def add(self, stage: str, seconds: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
