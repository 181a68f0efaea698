"""Progress bar for many clips, and the final table."""

import time
from collections import deque
from pathlib import Path
from typing import Self

from pose.utils.progress import print_progress, progress_bar
from pose.utils.shown import shown
from pose_apps.batch.manifest import Line
from pose_apps.support.summary import counted

RATE_SECONDS = 10.0  # window for the rate
MAX_ROWS = 30  # maximum rows of the table; for more clips only failed ones are listed
NAME_COLUMNS = 40
MAX_NAMED_CLIPS = 2  # maximum clips in progress that are named


class BatchProgress:
    """Progress bar of all workers. It is hidden if stderr is not a terminal. Failures are printed immediately."""

    def __init__(self, clips: int, workers: int, *, hidden: bool) -> None:
        self._workers, self._hidden = workers, hidden
        self._failed, self._finished = 0, 0
        self._in_progress: dict[str, tuple[int, int | None]] = {}  # clip in progress -> finished frames, all frames
        self._frames: deque[tuple[float, int]] = deque()
        self._bar = progress_bar("clips", clips, " clips", hidden=hidden)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()

    def frames(self, clip: str, count: int, total: int | None) -> None:
        """Show newly finished frames of a clip of `total` frames, if known."""
        self._in_progress[clip] = self._in_progress.get(clip, (0, total))[0] + count, total
        now = time.monotonic()
        self._frames.append((now, count))
        while self._frames[0][0] < now - RATE_SECONDS:
            self._frames.popleft()
        rate = sum(count for _, count in self._frames) / max(1.0, now - self._frames[0][0])
        failed = f", {self._failed} failed" if self._failed else ""
        workers = counted(self._workers, "worker")
        self._update_bar()
        self._bar.set_postfix_str(f"{workers}, {rate:.0f} frames/s{failed}{self._clips_in_progress()}")

    def finished(self, line: Line) -> None:
        """Count a clip as finished, and print its error if it failed. `line` is its entry in the manifest."""
        self._in_progress.pop(line.name, None)
        self._finished += 1
        if line.status != "ok":
            self._failed += 1
            if not self._hidden:
                print_progress(shown(f"{line.name}: {line.error}"))
        self._update_bar()

    def _update_bar(self) -> None:
        """Update the bar. Clips in progress count with their fraction of finished frames."""
        shares = (min(1.0, done / total) for done, total in self._in_progress.values() if total)
        self._bar.n = self._finished + round(sum(shares), 2)
        self._bar.refresh()

    def _clips_in_progress(self) -> str:
        """Return text such as `, walk-by 45%, dance 12%` for at most `MAX_NAMED_CLIPS` clips in progress."""
        named = list(self._in_progress.items())[:MAX_NAMED_CLIPS]
        parts = [
            f"{shown(clip, 16)} {min(1.0, done / total):.0%}" if total else shown(clip, 16)
            for clip, (done, total) in named
        ]
        return "".join(f", {part}" for part in parts)


def table(lines: list[Line], *, finished_before: int, manifest: Path) -> str:
    """Return a text table of results, with one row per clip and a line with totals."""
    failed = [line for line in lines if line.status != "ok"]
    rows = sorted(lines if len(lines) <= MAX_ROWS else failed, key=lambda line: (line.status == "ok", line.name))
    wide = min(max([4, *(len(line.name) for line in rows)]), NAME_COLUMNS)
    text = [f"{'clip':<{wide}}  {'frames':>7}{'people':>7}{'seconds':>9}"] if rows else []
    for line in rows:
        label = shown(line.name, 1000)
        name = label if len(label) <= wide else f"...{label[3 - wide :]}"
        result = f"{line.frames:>7}{line.people:>7}{line.seconds:>9.1f}"
        text.append(f"{name:<{wide}}  {result}" + (f"  failed: {shown(line.error)}" if line.error else ""))
    frames = counted(sum(line.frames for line in lines), "frame")
    parts = [counted(len(lines), "clip"), frames]
    parts += [f"{finished_before} of them already done"] if finished_before else []
    parts += [f"{len(failed)} failed"] if failed else []
    return "\n".join([*text, f"{', '.join(parts)}; {shown(manifest, 1000)}"])
