"""What a person sees of many clips: one bar for all, and a table at the end."""

import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

from pose.system.progress import progress_bar, say
from pose.system.shown import shown
from pose_apps.batch.manifest import Line
from pose_apps.support.summary import counted

RATE_SECONDS = 10.0  # over which the rate is taken
MOST_ROWS = 30  # of the table; of more clips only those that failed are listed
NAME_COLUMNS = 40


class Progress:
    """The bar of all workers; nothing where stderr is no terminal. What fails is told at once."""

    def __init__(self, clips: int, workers: int, *, hidden: bool) -> None:
        self._workers, self._hidden = workers, hidden
        self._failed = 0
        self._frames: deque[tuple[float, int]] = deque()
        self._bar = progress_bar("clips", clips, " clips", hidden=hidden)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()

    def frames(self, count: int) -> None:
        """So many more frames are done."""
        now = time.monotonic()
        self._frames.append((now, count))
        while self._frames[0][0] < now - RATE_SECONDS:
            self._frames.popleft()
        rate = sum(count for _, count in self._frames) / max(1.0, now - self._frames[0][0])
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.set_postfix_str(f"{counted(self._workers, 'worker')}, {rate:.0f} frames/s{failed}")

    def finished(self, line: Line) -> None:
        """One more clip has its line."""
        if line.status != "ok":
            self._failed += 1
            if not self._hidden:
                say(shown(f"{line.name}: {line.error}"))
        self._bar.update()


def table(lines: list[Line], *, already: int, manifest: Path) -> str:
    """What became of the clips: a row each or, of very many, of those that failed, and the sum."""
    failed = [line for line in lines if line.status != "ok"]
    rows = sorted(lines if len(lines) <= MOST_ROWS else failed, key=lambda line: (line.status == "ok", line.name))
    wide = min(max([4, *(len(line.name) for line in rows)]), NAME_COLUMNS)
    text = [f"{'clip':<{wide}}  {'frames':>7}{'people':>7}{'s':>9}"] if rows else []
    for line in rows:
        said = shown(line.name, 1000)
        name = said if len(said) <= wide else f"...{said[3 - wide :]}"
        result = f"{line.frames:>7}{line.people:>7}{line.seconds:>9.1f}"
        text.append(f"{name:<{wide}}  {result}" + (f"  failed: {shown(line.error)}" if line.error else ""))
    frames = counted(sum(line.frames for line in lines), "frame")
    parts = [counted(len(lines), "clip"), frames]
    parts += [f"{already} of them already done"] if already else []
    parts += [f"{len(failed)} failed"] if failed else []
    return "\n".join([*text, f"{', '.join(parts)}; {shown(manifest, 1000)}"])
