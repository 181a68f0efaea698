"""`manifest.jsonl`: what became of every clip, a line each, and so what a further call need not do again.

A line is added when a clip's files are in their place. After a call that was killed the file may end in half a line,
and hold two for a clip; the last one counts, and the next call puts it in order.
"""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

from pose.errors import PoseError
from pose.system.json_types import conform, read_text_file
from pose.system.json_values import strict_json
from pose.system.whole_file import WholeFile, file_errors, write_whole
from pose.system.work_folder import alone_in
from pose.system.written_files import WrittenFiles

NAME = "manifest"
ENDING = ".jsonl"
MOST_BYTES = 256 << 20  # of a file: a million clips


class VideoFacts(TypedDict):
    """width, height: px. fps: average frame rate. duration: s, of the frames that were processed."""

    width: int
    height: int
    fps: float
    duration: float


class QualityFacts(TypedDict):
    """What the results of a clip are worth.

    frames_without_people: number of frames. doubtful: ids of tracks that may show nobody. confidence: mean 2D score of
    all joints; None without people. low_confidence: share of the joints with a score below 0.3. sigma_mm: mean
    uncertainty of the 3D joints; None without people. camera_motion: kind of motion; None where it was not measured.
    """

    frames_without_people: int
    doubtful: list[int]
    confidence: float | None
    low_confidence: float | None
    sigma_mm: float | None
    camera_motion: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One clip.

    Attributes:
        key: SHA-256 of content, settings and weights; None where the clip was not read to the end.
        seconds: processing time of the last attempt.
        people: number of different people; of single images, number of people in all of them.
        outputs: files, relative to the manifest's folder.
        cached: what the cache held.
        job: SHA-256 of settings and weights.
        signature: see `Clip`.
        video: facts about the video (`VideoFacts`); None where the clip failed.
        quality: facts about the results (`QualityFacts`); None where the clip failed.
        version: of pose-run.
        date: end of processing, ISO 8601, UTC.
    """

    path: str
    name: str
    key: str | None
    status: Literal["ok", "failed"]
    error: str | None = None
    seconds: float = 0.0
    frames: int = 0
    people: int = 0
    outputs: list[str] = field(default_factory=list)
    attempts: int = 1
    cached: str = "nothing"
    warnings: list[str] = field(default_factory=list)
    job: str = ""
    signature: list[int] | None = None
    video: VideoFacts | None = None
    quality: QualityFacts | None = None
    version: str = ""
    date: str = ""


class _Fields(TypedDict):
    path: str
    name: str
    key: str | None
    status: Literal["ok", "failed"]
    error: NotRequired[str | None]
    seconds: NotRequired[float]
    frames: NotRequired[int]
    people: NotRequired[int]
    outputs: NotRequired[list[str]]
    attempts: NotRequired[int]
    cached: NotRequired[str]
    warnings: NotRequired[list[str]]
    job: NotRequired[str]
    signature: NotRequired[list[int] | None]
    video: NotRequired[VideoFacts | None]
    quality: NotRequired[QualityFacts | None]
    version: NotRequired[str]
    date: NotRequired[str]


class Manifest:
    """The lines of a folder of results. All shards' lines are known; what is added goes to this shard's own file."""

    def __init__(self, folder: Path, shard: tuple[int, int] | None) -> None:
        self.folder = folder
        self.path = folder / (f"{NAME}{ENDING}" if shard is None else f"{NAME}-{shard[0]}-of-{shard[1]}{ENDING}")
        self.lines: dict[str, Line] = {}
        self._own: dict[str, Line] = {}  # of this shard's file, while it is written
        for path in sorted(folder.glob(f"{NAME}*{ENDING}"), key=lambda path: path == self.path):  # its own count last
            if path == self.path or path.is_file():
                self.lines |= _read(path)[0]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Put the file in order now and at the end. Raises PoseError where another process writes this very file."""
        lock = self.folder / f".lock{self.path.stem.removeprefix(NAME)}"
        with file_errors(lock):
            lock.mkdir(exist_ok=True)
        with alone_in(lock) as alone:
            if alone is False:
                raise PoseError(
                    f"{self.folder}: another pose-batch is writing to it; wait until it ends, or use --shard"
                )
            WholeFile.remove_leftovers(self.folder, self.path.name.__eq__)
            self._own, whole = _read(self.path)
            if not whole:  # lines of somebody else are kept, in a file of their own
                WrittenFiles(self.folder).make_way(self.path)
                write_whole(self.path, "")
            self._order()
            try:
                yield
            finally:
                self._order()

    def add(self, line: Line) -> None:
        """A clip is finished, and its line on the disk when this returns, or `writing` ends: Ctrl-C may come here."""
        self.lines[line.name] = self._own[line.name] = line
        with file_errors(self.path), self.path.open("ab") as file:
            file.write(f"{json.dumps(asdict(line))}\n".encode())

    def _order(self) -> None:
        if self.path.is_file():
            write_whole(self.path, "".join(f"{json.dumps(asdict(line))}\n" for line in self._own.values()))


def _read(path: Path) -> tuple[dict[str, Line], bool]:
    """Name -> the last line of it, and whether that is all there is.

    A last line that was cut off, as a killed call leaves it, is none, and nothing is lost without it.
    """
    lines: dict[str, Line] = {}
    if not os.path.lexists(path):
        return lines, True
    known, whole = {entry.name for entry in fields(Line)}, True
    texts = read_text_file(path, MOST_BYTES).decode("utf-8", "replace").splitlines(keepends=True)
    for text in texts:
        try:
            values = strict_json(text)
            conform(values, _Fields)
            assert isinstance(values, dict)
            line = Line(**{name: value for name, value in values.items() if name in known})
        except (ValueError, TypeError):
            whole = whole and text is texts[-1] and not text.endswith("\n")
            continue
        lines[line.name] = line
    return lines, whole
