"""Files of a recording, and recovery of recordings whose program was killed.

A folder `live-DATE-TIME` is locked during recording. Incomplete files are named `unfinished-NAME`; the video and the
JSON text are readable even then. `finish_interrupted` completes the files that a killed program left.
"""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from pose.errors import PoseError
from pose.live.result import LiveResult, Stream
from pose.results import JsonWriter, NpzWriter, RunInfo, WorldInfo
from pose.results.cameras import write_cameras
from pose.results.json import read_head, repair_json
from pose.structures.defaults import CAMERAS_FILE, RESULT_JSON, RESULT_NPZ
from pose.structures.types import FrameResult, Placed
from pose.utils.json_values import Json
from pose.utils.resources import Reserve
from pose.utils.whole_file import file_errors
from pose.utils.work_folder import folder_lock
from pose.utils.written_files import WrittenFiles
from pose.video.growing import GrowingVideo, finish_video

VIDEO, JSON, NPZ = "video.mp4", RESULT_JSON, RESULT_NPZ
FOLDER_PREFIX = "live-"
_FOLDER = re.compile(r"live-\d{8}-\d{6}(-\d{1,2})?")
UNFINISHED_PREFIX = "unfinished-"
RESERVE_NAME = ".reserve"
DAY = 86_400.0
WORLD_INTERVAL_S = 5.0  # interval of writes of the world; a killed program loses at most these seconds of it
MAX_HEIGHTS = 64  # maximum number of heights that are kept, those of the latest people
MAX_WORLD_BYTES = 6_000  # maximum size of the world and the heights in poses.json


class RecordingFolder:
    """A folder with the recording of one `Stream`: images of one size, processed by one pipeline."""

    # Disk space is reserved, so that the files can be finished on a full disk. The caller sets `cut_short` before
    # `finish`.

    def __init__(self, parent: Path, info_of: Callable[[LiveResult], RunInfo], *, video: bool) -> None:
        """Create the folder in `parent`; `info_of` returns the metadata, once, for the first frame."""
        self.folder = _new_folder(parent)  # path of the folder
        self.frames, self.seconds, self.cut_short = 0, 0.0, False
        self.stream: Stream | None = None  # stream of the recorded frames; None before the first frame
        self._info_of, self._with_video = info_of, video
        self._start_time = 0.0
        self._info: RunInfo | None = None
        self._heights: dict[int, tuple[float, float]] = {}
        self._world_due = 0.0  # time of the next write of the world, s
        self._world_ended = False  # whether the world coordinates have ended, because the camera moved
        self._json: JsonWriter | None = None
        self._npz: NpzWriter | None = None
        self._video: GrowingVideo | None = None
        self._lock = ExitStack()
        try:
            self._lock.enter_context(folder_lock(self.folder))
            self._reserve = Reserve(self.folder / RESERVE_NAME)
        except OSError as error:
            self._lock.close()
            self.folder.rmdir()
            raise _folder_error(parent, error) from error

    @property
    def files(self) -> dict[str, Path | None]:
        """Paths of the files after `finish`, by file name; None for a file that could not be finished."""
        names = [*([VIDEO] if self._with_video else []), JSON, NPZ, *([CAMERAS_FILE] if self._cameras else [])]
        return {name: path if (path := self.folder / name).is_file() else None for name in names}

    @property
    def _cameras(self) -> Sequence[Mapping[str, Json]]:
        """Descriptions of several calibrated cameras; empty otherwise."""
        return () if self._info is None else self._info.cameras

    def write(self, live: LiveResult) -> None:
        """Append a frame. Frame indices and times in the files start at 0."""
        if self.stream is None:
            self._open(live)
        assert self._json is not None
        assert self._npz is not None
        when = live.result.time - self._start_time
        people = replace(live.result.people, index=self.frames, time=when)
        assert self._info is not None
        placed = live.result.placed
        if self._info.world is None:
            placed = None
        elif live.world is None or self._world_ended:  # a later world has other axes
            self._world_ended, placed = True, Placed.unknown(len(people))
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
            self._reserve.grow_to(self._npz.bytes)
        self._keep_world(live.world)

    def _keep_world(self, world: WorldInfo | None) -> None:
        """Store the world and the heights of people, and write them every `WORLD_INTERVAL_S`."""
        if world is None or self._info is None or self._info.world is None or self._world_ended:
            return
        for person, height in world.heights.items():
            self._heights.pop(person, None)
            self._heights[person] = height
        while len(self._heights) > MAX_HEIGHTS:
            del self._heights[next(iter(self._heights))]
        self._info = replace(self._info, world=WorldInfo(world.world, dict(self._heights)))
        if self.seconds >= self._world_due:
            self._world_due = self.seconds + WORLD_INTERVAL_S
            self._write_world()

    def _write_world(self) -> None:
        """Write the current world to poses.json and poses.npz."""
        if self._info is None or self._info.world is None:
            return
        assert self._json is not None
        assert self._npz is not None
        self._npz.set_world(self._info.world)
        self._json.write_head(self._info)

    def _open(self, live: LiveResult) -> None:
        """Open the files for the first frame."""
        assert live.stream is not None, "results of a loop have a stream"
        self._info = info = replace(self._info_of(live), world=live.world)
        self._npz = NpzWriter(self.folder / NPZ, info, self.folder / f"{UNFINISHED_PREFIX}{NPZ}")
        spare = 0 if info.world is None else MAX_WORLD_BYTES
        self._json = JsonWriter(self.folder / JSON, info, self.folder / f"{UNFINISHED_PREFIX}{JSON}", spare)
        if self._with_video:
            part = self.folder / f"{UNFINISHED_PREFIX}{VIDEO}"
            self._video = GrowingVideo(self.folder / VIDEO, part, live.size, fps=info.fps)
        self._start_time, self.stream = live.result.time, live.stream

    def finish(self) -> None:
        """Finish the files independently of each other; remove the folder if no frame was recorded."""
        self._reserve.release()
        problems = []
        try:
            self._write_world()
        except PoseError as error:
            problems.append(error)
        for writer in (self._json, self._npz, self._video):  # in increasing order of the disk space they need
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
        if self.frames and self._cameras:
            try:
                write_cameras(self.folder / CAMERAS_FILE, self._cameras)
            except PoseError as error:
                problems.append(error)
        self._lock.close()
        with suppress(OSError):  # not empty
            self.folder.rmdir()
        if problems:
            raise problems[0]


def finish_interrupted(parent: Path) -> list[str]:
    """Finish the recordings that a killed program left in the folder `parent`.

    Returns:
        One line of text for each recording, which states what was finished or why that failed.
    """
    lines = []
    for folder in sorted(parent.glob(f"{FOLDER_PREFIX}*")):
        if _FOLDER.fullmatch(folder.name) is None or folder.is_symlink() or not folder.is_dir():
            continue
        if not any(os.path.lexists(folder / f"{UNFINISHED_PREFIX}{name}") for name in (VIDEO, JSON, NPZ)):
            continue
        with folder_lock(folder) as alone, suppress(OSError):
            if alone or folder.stat().st_mtime < time.time() - DAY:
                lines.append(_finish(folder))
    return lines


def _finish(folder: Path) -> str:
    """Finish a recording, and return a line of text about it."""
    (folder / RESERVE_NAME).unlink(missing_ok=True)
    record = WrittenFiles(folder)
    problems, frames = [], 0
    try:
        for name in (VIDEO, JSON, NPZ):
            if os.path.lexists(folder / f"{UNFINISHED_PREFIX}{name}"):
                record.move_user_file(folder / name)
    except PoseError as error:
        return f"the recording {folder} was cut short; {error}"
    try:
        frames = _finish_poses(folder)
    except PoseError as error:
        problems.append(str(error))
    except (OSError, KeyError, TypeError, ValueError) as error:
        problems.append(f"{JSON}: {error}")
    if (unfinished := folder / f"{UNFINISHED_PREFIX}{VIDEO}").is_file():
        try:
            finish_video(unfinished, folder / VIDEO)
        except PoseError as error:
            problems.append(str(error))
    finished = [name for name in (VIDEO, JSON, NPZ, CAMERAS_FILE) if (folder / name).is_file()]
    with suppress(OSError):  # not empty
        folder.rmdir()
    what = f"finished with {frames} frames: {', '.join(finished)}" if finished else "there was nothing in it"
    return f"the recording {folder} was cut short; {'; '.join([what, *problems])}"


def _finish_poses(folder: Path) -> int:
    """Rename poses.json, create poses.npz from its complete frames, and return their number."""
    text, part = folder / JSON, folder / f"{UNFINISHED_PREFIX}{JSON}"
    frames = repair_json(part if part.exists() else text)
    npz = folder / f"{UNFINISHED_PREFIX}{NPZ}"
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
    if frames and (cameras := read_head(text).cameras):
        WrittenFiles(folder).move_user_file(folder / CAMERAS_FILE)
        write_cameras(folder / CAMERAS_FILE, cameras)
    return frames


def _new_folder(parent: Path) -> Path:
    """Create a new folder named after the current time."""
    name = time.strftime(f"{FOLDER_PREFIX}%Y%m%d-%H%M%S")
    try:
        for suffix in ("", *(f"-{number}" for number in range(2, 100))):
            folder = parent / f"{name}{suffix}"
            try:
                folder.mkdir(parents=True)
            except FileExistsError:  # two recordings of the same second do not share a folder
                continue
            return folder
    except OSError as error:
        raise _folder_error(parent, error) from error
    raise PoseError(f"cannot record into {parent}: all names of recordings of this second exist; try again")


def _folder_error(parent: Path, error: OSError) -> PoseError:
    """Return an error for a folder that cannot be written."""
    return PoseError(f"cannot record into {parent}: {(error.strerror or str(error)).lower()}")
