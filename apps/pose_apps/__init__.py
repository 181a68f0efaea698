"""One thin file a command: parse, build, run, report.

Importing it makes the process ready for people: standard streams that are closed (`2>&-`) become ones that lead
nowhere. Without them what is opened next, a result or the video, would get their number, and what libraries print.
"""

import os
import sys
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
    """Ctrl-C while a command is still being loaded is one line, as it is later on."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
    else:
        _usual(kind, error, trace)


_usual, sys.excepthook = sys.excepthook, _show
