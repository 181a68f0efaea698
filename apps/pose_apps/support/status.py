"""Status line on the terminal with the current work of a command, such as loading, and its duration.

The line is removed when the work is done. A command shows the line before its slow imports.
"""

import threading
from typing import TYPE_CHECKING, NoReturn, Self

from pose.utils.progress import is_shown, progress_bar
from pose.utils.shown import shown

if TYPE_CHECKING:
    from tqdm import tqdm

TICK_SECONDS = 0.5


class StatusLine:
    """A status line on the terminal, in its context or until `end`, to be called before other output."""

    def __init__(self, text: str, *, hidden: bool = False) -> None:
        self._text = text
        self._hidden = hidden
        self._bar: tqdm[NoReturn] | None = None
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        if is_shown() and not self._hidden:
            self._bar = progress_bar("", None, "", kept=False, bar_format=f"{self._text} {{elapsed}}")
            self._ticking = threading.Thread(target=self._tick, name="status", daemon=True)
            self._ticking.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.end()

    def print(self, line: str) -> None:
        """Print a line of text above the status line."""
        line = shown(line, 2000)
        if self._bar is None:
            print(line, flush=True)
        else:
            self._bar.write(line)

    def end(self) -> None:
        """Remove the status line. Further calls have no effect."""
        if self._bar is not None:
            self._ended.set()
            self._ticking.join()
            self._bar.close()
            self._bar = None

    def _tick(self) -> None:
        while not self._ended.wait(TICK_SECONDS):
            if (bar := self._bar) is not None:
                bar.refresh()
