"""Handling of Ctrl-C during a run, so that finished results are kept."""

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self


def call_interrupt_handler() -> None:
    """Call the current handler of Ctrl-C (SIGINT); if Ctrl-C is ignored, as in the background, raise its exception."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        raise KeyboardInterrupt
    handler(signal.SIGINT, None)


@contextmanager
def signals_as_interrupt() -> Iterator[None]:
    """Make SIGTERM and SIGHUP act like Ctrl-C within the context, unless ignored since the program's start."""
    if threading.current_thread() is not threading.main_thread():  # only the main thread can handle signals
        yield
        return
    handled = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
    before = {number: signal.getsignal(number) for number in handled}
    if before[signal.SIGTERM] is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, frame: call_interrupt_handler())
    interrupt_on_hangup(call_interrupt_handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt() -> None:
    raise KeyboardInterrupt


def interrupt_on_hangup(interrupt: Callable[[], None] = _interrupt) -> None:
    """Make the closing of the terminal (SIGHUP) call `interrupt` from now on, except under `nohup`."""
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is None or signal.getsignal(hang_up) is not signal.SIG_DFL:
        return
    terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(hang_up, signal.SIG_IGN)  # the shell may send it again
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in terminals:
            os.dup2(nowhere, descriptor)
        os.close(nowhere)
        interrupt()

    signal.signal(hang_up, end)


class Interrupts:
    """Context in which Ctrl-C, if enabled, sets `stop` instead of raising, except within `raised_after`."""

    def __init__(self, enabled: bool = True) -> None:
        self.stop = threading.Event()  # event that Ctrl-C sets. It may also be set by other code
        self._enabled = enabled
        self._ignored_left = math.inf

    def __enter__(self) -> Self:
        if self._enabled:
            self._previous = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._enabled:
            signal.signal(signal.SIGINT, self._previous)

    @contextmanager
    def raised_after(self, max_ignored: int) -> Iterator[None]:
        """Raise KeyboardInterrupt, once, after more than `max_ignored` presses of Ctrl-C in this context."""
        self._ignored_left = max_ignored
        try:
            yield
        finally:
            self._ignored_left = math.inf

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        self.stop.set()
        self._ignored_left -= 1
        if self._ignored_left < 0:
            self._ignored_left = math.inf
            raise KeyboardInterrupt
