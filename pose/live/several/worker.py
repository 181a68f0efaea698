"""Worker thread for long computations, so that the display does not stall."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from pose.errors import PoseError

Result = TypeVar("Result")


class ThreadWorker(Generic[Result]):
    """Runner of one task at a time in a separate thread."""

    def __init__(self, name: str) -> None:
        self.busy = False  # whether a task is running, or its result has not been taken yet
        self._name = name
        self._done: Result | PoseError | None = None
        self._failed: BaseException | None = None
        self._ended = threading.Event()

    def start(self, work: Callable[[], Result]) -> None:
        """Start a task: run the function `work` in a separate thread."""
        self.busy = True
        self._done = self._failed = None
        self._ended.clear()
        threading.Thread(target=self._run, args=(work,), name=self._name, daemon=True).start()

    def take(self) -> Result | PoseError | None:
        """Return the result, or the `PoseError`, of the finished task, once; otherwise None. Raise its other errors."""
        if not self.busy or not self._ended.is_set():
            return None
        self.busy = False
        if self._failed is not None:
            raise self._failed
        return self._done

    def _run(self, work: Callable[[], Result]) -> None:
        """Run the task, and store its result or error."""
        try:
            self._done = work()
        except PoseError as error:
            self._done = error
        except BaseException as error:
            self._failed = error
        finally:
            self._ended.set()
