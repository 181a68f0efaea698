"""What Ctrl-C does to a run, so that nothing finished is lost."""

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self


class Interrupts:
    """While it lasts, Ctrl-C sets `stop` and disturbs nothing, but for what is done within `raised_after`.

    heard: False leaves Ctrl-C to others, and only `stop` can be set.
    """

    def __init__(self, heard: bool = True) -> None:
        self.stop = threading.Event()
        self._heard = heard
        self._borne = math.inf

    def __enter__(self) -> Self:
        if self._heard:
            self._previous = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._heard:
            signal.signal(signal.SIGINT, self._previous)

    @contextmanager
    def raised_after(self, borne: int) -> Iterator[None]:
        """Within, the first interrupt after `borne` others raises KeyboardInterrupt. The ones after it do not: they
        would only keep the work from being left in good order.
        """
        self._borne = borne
        try:
            yield
        finally:
            self._borne = math.inf

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self.stop.set()
        self._borne -= 1
        if self._borne < 0:
            self._borne = math.inf
            raise KeyboardInterrupt
