"""Progress display for long operations, and the time spent in the stages of a run."""

import shutil
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from tqdm import tqdm

_hidden: ContextVar[bool] = ContextVar("hidden", default=False)


@contextmanager
def hidden_progress(hide: bool = True) -> Iterator[None]:
    """Return a context manager in which the current thread shows no progress, for `--quiet`."""
    token = _hidden.set(hide or _hidden.get())
    try:
        yield
    finally:
        _hidden.reset(token)


def is_shown() -> bool:
    """Return whether progress is shown: stderr is a terminal, and progress is not hidden."""
    return sys.stderr.isatty() and not _hidden.get()


def print_progress(line: str) -> None:
    """Print a line about the progress of an operation, if progress is shown."""
    if is_shown():
        from tqdm import tqdm

        tqdm.write(line, file=sys.stderr)  # keeps the line above a progress bar


def progress_bar(
    what: str,
    total: int | None,
    unit: str,
    *,
    done: int = 0,
    scaled: bool = False,
    kept: bool = True,
    hidden: bool = False,
    bar_format: str | None = None,
) -> "tqdm[NoReturn]":
    """Return a progress bar, which is used in a `with` statement and advanced by `update(n)`."""
    from tqdm import tqdm  # imported here, since commands without long work do not need it

    columns, rows = shutil.get_terminal_size()  # tqdm's own is 0 on terminals of unknown size
    return tqdm(
        desc=what, total=total, initial=done, unit=unit, unit_scale=scaled, leave=kept, bar_format=bar_format,
        disable=hidden or not is_shown(), ncols=columns, nrows=rows,
    )  # fmt: skip


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
