"""What a person sees of a fetch: a line and a bar on a terminal, nothing elsewhere or where it is hidden."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_hidden: ContextVar[bool] = ContextVar("hidden", default=False)


@contextmanager
def hidden_progress(hide: bool = True) -> Iterator[None]:
    """Within it, this thread's fetches show nothing: what `--quiet` asks of whatever a command calls."""
    token = _hidden.set(hide)
    try:
        yield
    finally:
        _hidden.reset(token)


def is_shown() -> bool:
    """Whether a fetch shows itself here and now."""
    return sys.stderr.isatty() and not _hidden.get()


def say(line: str) -> None:
    """Print a line about a fetch, for a person who looks on."""
    if is_shown():
        from tqdm import tqdm

        tqdm.write(line, file=sys.stderr)  # above whatever bar a command shows meanwhile
