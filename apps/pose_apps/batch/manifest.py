"""Manifest of a batch, `manifest.jsonl`, with the state of one clip per line. Later calls skip finished clips.

A line is added after the result files of the clip are complete. A clip may have several lines, of which the last is
valid. A killed call may leave an incomplete last line. The next call cleans the file.
"""

import json
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Literal, NotRequired, Self, TypedDict

from pose.errors import PoseError
from pose.utils.json_values import check_type, read_text_file, strict_json
from pose.utils.progress import print_progress, progress_bar
from pose.utils.shown import shown
from pose.utils.whole_file import WholeFile, file_errors, write_whole
from pose.utils.work_folder import folder_lock
from pose.utils.written_files import WrittenFiles
from pose_apps.support.summary import counted

NAME = "manifest"
ENDING = ".jsonl"
MAX_BYTES = 256 << 20  # maximum size of a file: a million clips


class VideoFacts(TypedDict):
    """Properties of a video."""

    width: int  # width, px
    height: int  # height, px
    fps: float  # average frame rate, frames/s
    duration: float  # duration of the processed frames, s


class MotionFacts(TypedDict):
    """Measured camera motion of a clip. A value is None if it was not measured."""

    rotation_degrees: float | None  # largest of the ranges of pan, tilt and roll, degrees
    zoom_percent: float | None  # percentage by which the longest focal length exceeds the shortest
    known: float | None  # fraction of the frames with people in which the orientation of the camera is known
    focal_ratio: float | None  # focal length estimated from the rotation, divided by the focal length of the intrinsics


class QualityFacts(TypedDict):
    """Quality of a clip's results."""

    frames_without_people: int  # number of frames without people
    doubtful: list[int]  # ids of tracks that may not be people
    confidence: float | None  # mean 2D score of all joints; None without people
    low_confidence: float | None  # fraction of the joints with a score below 0.3
    sigma_mm: float | None  # mean uncertainty of the 3D joints, mm; None without people
    camera_motion: str | None  # kind of camera motion; None if it was not measured
    motion: NotRequired[MotionFacts | None]  # measured values of the camera motion; None if it was not measured


class CameraFacts(TypedDict):
    """Properties of one camera in a group of several cameras."""

    name: str  # name of the camera
    video: str  # path of the video
    offset: float  # start time of the video on the common time line, s
    position_sigma: float  # standard deviation of the camera position, m
    residual_px: float | None  # median reprojection error, px; None if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Entry of the manifest for one clip, or for one group of videos of the same scene."""

    path: str  # path or URL of the input
    name: str  # name of the results folder, relative to the folder of the manifest
    key: str | None  # SHA-256 of content, settings and weights; None if the clip was not read to the end
    status: Literal["ok", "failed"]  # outcome of the last attempt, "ok" or "failed"
    error: str | None = None  # error message; None without an error
    seconds: float = 0.0  # processing time of the last attempt, s
    frames: int = 0  # number of processed frames
    people: int = 0  # number of different people. For single images, the sum of the numbers of people in each image
    outputs: list[str] = field(default_factory=list)  # paths of the result files
    attempts: int = 1
    cached: str = "nothing"  # results found in the cache: "nothing", "people" (2D only) or "everything"
    warnings: list[str] = field(default_factory=list)  # warnings about the clip
    job: str = ""  # SHA-256 of settings and weights
    signature: list[int] | None = None  # sizes and modification times of the input files (`BatchClip.signature`)
    video: VideoFacts | None = None  # properties of the video; None if the clip failed
    quality: QualityFacts | None = None  # quality of the results; None if the clip failed
    cameras: list[CameraFacts] = field(default_factory=list)  # cameras of a group
    version: str = ""  # version of pose-run
    date: str = ""  # time at the end of processing, ISO 8601, UTC


class Manifest:
    """Manifest of a folder of results: one JSON line per clip, read from the files of all shards, written to one."""

    def __init__(self, folder: Path, shard: tuple[int, int] | None) -> None:
        self.folder = folder  # folder of all results
        self.path = folder / (f"{NAME}{ENDING}" if shard is None else f"{NAME}-{shard[0]}-of-{shard[1]}{ENDING}")
        self.lines: dict[str, Line] = {}  # latest line of each clip by name, from all shards
        self._shard_lines: dict[str, Line] = {}  # lines of this shard's file, while it is open
        # This shard's file is read last, because its lines have precedence.
        for path in sorted(folder.glob(f"{NAME}*{ENDING}"), key=lambda path: path == self.path):
            if path == self.path or path.is_file():
                self.lines |= _read(path)[0]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Lock this shard's file within the context for `add`, and rewrite it with one line per clip."""
        lock = self.folder / f".lock{self.path.stem.removeprefix(NAME)}"
        with file_errors(lock):
            lock.mkdir(exist_ok=True)
        with folder_lock(lock) as alone:
            if alone is False:
                raise PoseError(
                    f"{self.folder}: another pose-batch is writing to it; wait until it ends, or use --shard"
                )
            WholeFile.remove_leftovers(self.folder, self.path.name.__eq__)
            self._shard_lines, is_valid = _read(self.path)
            if not is_valid:  # unknown lines are kept in a separate file
                WrittenFiles(self.folder).move_user_file(self.path)
                write_whole(self.path, "")
            self._rewrite()
            try:
                yield
            finally:
                self._rewrite()

    def add(self, line: Line) -> None:
        """Append the entry of a finished clip to the file of this shard. Call this within `writing`."""
        self.lines[line.name] = self._shard_lines[line.name] = line
        with file_errors(self.path), self.path.open("ab") as file:
            file.write(f"{json.dumps(asdict(line))}\n".encode())

    def _rewrite(self) -> None:
        """Write the file again, with one line per clip."""
        if self.path.is_file():
            write_whole(self.path, "".join(f"{json.dumps(asdict(line))}\n" for line in self._shard_lines.values()))


def _read(path: Path) -> tuple[dict[str, Line], bool]:
    """Return the last line of each clip by name, and whether all are valid, without an incomplete last line."""
    # A killed call may leave an incomplete last line. Its clip is processed again.
    lines: dict[str, Line] = {}
    if not os.path.lexists(path):
        return lines, True
    known, is_valid = {entry.name for entry in fields(Line)}, True
    texts = read_text_file(path, MAX_BYTES).decode("utf-8", "replace").splitlines(keepends=True)
    for text in texts:
        try:
            values = strict_json(text)
            check_type(values, Line)
            assert isinstance(values, dict)
            line = Line(**{name: value for name, value in values.items() if name in known})
        except (ValueError, TypeError):
            is_valid = is_valid and text is texts[-1] and not text.endswith("\n")
            continue
        lines[line.name] = line
    return lines, is_valid


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
