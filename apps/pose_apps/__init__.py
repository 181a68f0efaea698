"""One thin file a command: parse, build, run, report."""

import sys
from types import TracebackType


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Ctrl-C while a command is still being loaded is one line, as it is later on."""
    if issubclass(kind, KeyboardInterrupt):
        print("error: interrupted", file=sys.stderr)
    else:
        _usual(kind, error, trace)


_usual, sys.excepthook = sys.excepthook, _show
