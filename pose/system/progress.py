"""What a person sees of long work: a bar or a line on a terminal, nothing elsewhere or where it is hidden."""

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
    """Within it, this thread shows no progress: what `--quiet` asks of whatever a command calls."""
    token = _hidden.set(hide)
    try:
        yield
    finally:
        _hidden.reset(token)


def is_shown() -> bool:
    """Whether progress shows itself here and now."""
    return sys.stderr.isatty() and not _hidden.get()


def say(line: str) -> None:
    """Print a line about work in progress, for a person who looks on."""
    if is_shown():
        from tqdm import tqdm

        tqdm.write(line, file=sys.stderr)  # above whatever bar a command shows meanwhile


def progress_bar(
    what: str,
    total: int | None,
    unit: str,
    *,
    done: int = 0,
    scaled: bool = False,
    kept: bool = True,
    hidden: bool = False,
    form: str | None = None,
) -> "tqdm[NoReturn]":
    """A bar to be used with `with`, and moved on with `update(n)`.

    total: None where nobody knows it. done: of it before. scaled: write k and M for thousands and millions. kept: it
    stays on the terminal when the work is done. hidden: show nothing. form: of the line, in place of tqdm's usual one.
    """
    from tqdm import tqdm  # here, so that a command without long work does not load it

    columns, rows = shutil.get_terminal_size()  # tqdm's own is 0 where the terminal does not know
    return tqdm(
        desc=what, total=total, initial=done, unit=unit, unit_scale=scaled, leave=kept, bar_format=form,
        disable=hidden or not is_shown(), ncols=columns, nrows=rows,
    )  # fmt: skip
