"""The files of a recording, from its first frame to its names; and what becomes of those whose program was killed.

A folder `live-DATE-TIME` is locked while somebody records into it. Until a file is whole it is called
`unfinished-NAME`: the video and the text can be opened even so. `finish_interrupted` finishes what a killed one left.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from pose.errors import PoseError
from pose.files import JsonWriter, NpzWriter, RunInfo, WorldInfo
from pose.files.json import mend_json, read_head
from pose.live.result import LiveResult, Stream
from pose.system.reserve import Reserve
from pose.system.whole_file import file_errors
from pose.system.work_folder import alone_in
from pose.types import FrameResult, Placed
from pose.video.growing import GrowingVideo, finish_video

VIDEO, JSON, NPZ = "video.mp4", "poses.json", "poses.npz"
FOLDERS = "live-"
UNFINISHED = "unfinished-"
RESERVE = ".reserve"
DAY = 86_400.0
WORLD_SECONDS = 5.0  # between two times that the world is written down: who kills the program loses no more of it
HEIGHTS = 64  # people whose heights are kept, the latest
HEAD_BYTES = 6_000  # that these and the world need, at most


class Recording:
    """One folder with what is recorded of one stream: pictures of one size, through the same networks.

    It keeps enough of the disk free to be finished on a full one. frames, seconds: how much was written. cut_short: set
    it where frames are missing at the end.
    """

    def __init__(self, parent: Path, info_of: Callable[[LiveResult], RunInfo], *, video: bool) -> None:
        """Raises PoseError when nothing can be recorded there."""
        self.folder = _new_folder(parent)
        self.frames, self.seconds, self.cut_short = 0, 0.0, False
        self.stream: Stream | None = None
        self._info_of, self._with_video = info_of, video
        self._begun = 0.0
        self._info: RunInfo | None = None
        self._heights: dict[int, tuple[float, float]] = {}
        self._world_due = 0.0  # s
        self._ended = False  # the world, because the camera was carried
        self._json: JsonWriter | None = None
        self._npz: NpzWriter | None = None
        self._video: GrowingVideo | None = None
        self._lock = ExitStack()
        try:
            self._lock.enter_context(alone_in(self.folder))
            self._reserve = Reserve(self.folder / RESERVE)
        except OSError as error:
            self._lock.close()
            self.folder.rmdir()
            raise _cannot(parent, error) from error

    @property
    def files(self) -> dict[str, Path | None]:
        """Once it is finished: the files by name, None where one could not be."""
        names = [*([VIDEO] if self._with_video else []), JSON, NPZ]
        return {name: path if (path := self.folder / name).is_file() else None for name in names}

    def write(self, live: LiveResult) -> None:
        """Add a frame, numbered from 0 and timed from second 0. Raises PoseError when the disk cannot take it."""
        if self.stream is None:
            self._open(live)
        assert self._json is not None
        assert self._npz is not None
        when = live.result.time - self._begun
        people = replace(live.result.people, index=self.frames, time=when)
        assert self._info is not None
        placed = live.result.placed
        if self._info.world is None:
            placed = None
        elif live.world is None or self._ended:  # a world that begins later has other axes
            self._ended, placed = True, Placed.nowhere(len(people))
        result = FrameResult(people, live.result.poses, placed)
        self._npz.write(result)
        try:
            self._json.write(result)
        except PoseError:
            self._npz.keep_first(self.frames)
            raise
        self.frames, self.seconds = self.frames + 1, when
        if self._video is not None:
            self._video.write(live.image, when)
        with file_errors(self.folder):
            self._reserve.hold(self._npz.bytes)
        self._keep_world(live.world)

    def _keep_world(self, world: WorldInfo | None) -> None:
        """Remember it, with the heights of those who were seen last; from time to time write it down."""
        if world is None or self._info is None or self._info.world is None or self._ended:
            return
        for person, height in world.heights.items():
            self._heights.pop(person, None)
            self._heights[person] = height
        while len(self._heights) > HEIGHTS:
            del self._heights[next(iter(self._heights))]
        self._info = replace(self._info, world=WorldInfo(world.world, dict(self._heights)))
        if self.seconds >= self._world_due:
            self._world_due = self.seconds + WORLD_SECONDS
            self._write_world()

    def _write_world(self) -> None:
        """The world as it is known now, in both files."""
        if self._info is None or self._info.world is None:
            return
        assert self._json is not None
        assert self._npz is not None
        self._npz.set_world(self._info.world)
        self._json.write_head(self._info)

    def _open(self, live: LiveResult) -> None:
        assert live.stream is not None, "a loop says what its results belong to"
        self._info = info = replace(self._info_of(live), world=live.world)
        self._npz = NpzWriter(self.folder / NPZ, info, self.folder / f"{UNFINISHED}{NPZ}")
        spare = 0 if info.world is None else HEAD_BYTES
        self._json = JsonWriter(self.folder / JSON, info, self.folder / f"{UNFINISHED}{JSON}", spare)
        if self._with_video:
            part = self.folder / f"{UNFINISHED}{VIDEO}"
            self._video = GrowingVideo(self.folder / VIDEO, part, live.size, fps=info.fps)
        self._begun, self.stream = live.result.time, live.stream

    def finish(self) -> None:
        """Finish each file by itself: where one cannot be, the others are kept. Without any frame there is no folder.

        Raises the first error.
        """
        self._reserve.release()
        problems = []
        try:
            self._write_world()
        except PoseError as error:
            problems.append(error)
        for writer in (self._json, self._npz, self._video):  # what needs no room first, what takes any room last
            if writer is None:
                continue
            try:
                if not self.frames:
                    writer.abort()
                elif isinstance(writer, GrowingVideo):
                    writer.close()
                else:
                    writer.close(complete=not self.cut_short)
            except PoseError as error:
                problems.append(error)
        self._lock.close()
        with suppress(OSError):  # not empty
            self.folder.rmdir()
        if problems:
            raise problems[0]


def finish_interrupted(parent: Path) -> list[str]:
    """Finish the recordings in `parent` that a killed program left; a line about each of them."""
    lines = []
    for folder in sorted(parent.glob(f"{FOLDERS}*")):
        if folder.is_symlink() or not folder.is_dir() or not any(folder.glob(f"{UNFINISHED}*")):
            continue
        with alone_in(folder) as alone, suppress(OSError):
            if alone or folder.stat().st_mtime < time.time() - DAY:
                lines.append(_finish(folder))
    return lines


def _finish(folder: Path) -> str:
    (folder / RESERVE).unlink(missing_ok=True)
    problems, frames = [], 0
    try:
        frames = _finish_poses(folder)
    except PoseError as error:
        problems.append(str(error))
    except (OSError, KeyError, TypeError, ValueError) as error:
        problems.append(f"{JSON}: {error}")
    if (part := folder / f"{UNFINISHED}{VIDEO}").is_file():
        try:
            finish_video(part, folder / VIDEO)
        except PoseError as error:
            problems.append(str(error))
    there = [name for name in (VIDEO, JSON, NPZ) if (folder / name).is_file()]
    with suppress(OSError):  # not empty
        folder.rmdir()
    what = f"finished with {frames} frames: {', '.join(there)}" if there else "there was nothing in it"
    return f"the recording {folder} was cut short; {'; '.join([what, *problems])}"


def _finish_poses(folder: Path) -> int:
    """Name the text, and make the arrays of what was written of them; the number of frames."""
    text, part = folder / JSON, folder / f"{UNFINISHED}{JSON}"
    frames = mend_json(part if part.exists() else text)
    npz = folder / f"{UNFINISHED}{NPZ}"
    if npz.is_dir():
        writer = NpzWriter(folder / NPZ, read_head(part if part.exists() else text), npz)
        writer.keep_first(min(frames, writer.frames))
        if frames:
            writer.close(complete=False)
        else:
            writer.abort()
    if frames and part.exists():
        part.replace(text)
    part.unlink(missing_ok=True)
    return frames


def _new_folder(parent: Path) -> Path:
    """A new folder named after the time. Raises PoseError when it cannot be made."""
    name = time.strftime(f"{FOLDERS}%Y%m%d-%H%M%S")
    try:
        for suffix in ("", *(f"-{number}" for number in range(2, 100))):
            folder = parent / f"{name}{suffix}"
            try:
                folder.mkdir(parents=True)
            except FileExistsError:  # nobody shares one, however many begin in the same second
                continue
            return folder
    except OSError as error:
        raise _cannot(parent, error) from error
    raise PoseError(f"cannot record into {parent}: too many recordings at a time")


def _cannot(parent: Path, error: OSError) -> PoseError:
    return PoseError(f"cannot record into {parent}: {(error.strerror or str(error)).lower()}")
