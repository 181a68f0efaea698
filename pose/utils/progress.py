"""Progress display for long operations: a bar or a line on a terminal. Without a terminal nothing is shown."""

import shutil
import sys
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
