"""What Ctrl-C does to a run, so that nothing finished is lost."""

import math
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Self


def as_ctrl_c() -> None:
    """Do what Ctrl-C does now. Raises KeyboardInterrupt where that is what it does."""
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, None)


@contextmanager
def signals_as_ctrl_c() -> Iterator[None]:
    """Within, SIGTERM and SIGHUP do what Ctrl-C does at that moment, so that what is finished is kept.

    A signal that the program was started to ignore stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():  # others cannot handle signals
        yield
        return
    handled = [number for name in ("SIGTERM", "SIGHUP") if (number := getattr(signal, name, None)) is not None]
    before = {number: signal.getsignal(number) for number in handled}
    if before[signal.SIGTERM] is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, frame: as_ctrl_c())
    end_with_the_terminal(as_ctrl_c)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt() -> None:
    raise KeyboardInterrupt


def end_with_the_terminal(then: Callable[[], None] = _interrupt) -> None:
    """From now on a terminal that is closed (SIGHUP) ends the program as Ctrl-C does, in good order.

    then: what ends it. What is said after that to the terminal is lost, rather than an error. A program that was
    started with `nohup` goes on.
    """
    hang_up = getattr(signal, "SIGHUP", None)
    if hang_up is None or signal.getsignal(hang_up) is not signal.SIG_DFL:
        return
    terminals = [descriptor for descriptor in (1, 2) if os.isatty(descriptor)]

    def end(number: int, frame: FrameType | None) -> None:
        signal.signal(hang_up, signal.SIG_IGN)  # the shell may say it again
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for descriptor in terminals:
            os.dup2(nowhere, descriptor)
        os.close(nowhere)
        then()

    signal.signal(hang_up, end)


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
