"""Implementations of the `pose-*` commands. Each command parses its options, runs the task and prints a report.

On import, closed standard streams (`2>&-`) are redirected to the null device. Otherwise the next opened file, for
example a result file, would reuse the closed descriptor and receive text that libraries print.
"""

import os
import signal
import sys
import threading
from types import TracebackType


def _open_standard_streams() -> None:
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - as long as the process


_open_standard_streams()


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print one line instead of a traceback for Ctrl-C during import, as the running commands do."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        _usual(kind, error, trace)


def _repeat(ignored: "sys.UnraisableHookArgs") -> None:
    """Repeat Ctrl-C that arrived in a callback of Python, such as that of an import lock, which ignores exceptions."""
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        wake = os.name == "posix"  # a signal of the process also ends waiting of the main thread
        call, words = (os.kill, [os.getpid(), signal.SIGINT]) if wake else (signal.raise_signal, [signal.SIGINT])
        threading.Timer(0.05, call, words).start()
    else:
        _usual_ignored(ignored)


_usual, sys.excepthook = sys.excepthook, _show
_usual_ignored, sys.unraisablehook = sys.unraisablehook, _repeat
