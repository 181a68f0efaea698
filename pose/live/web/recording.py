"""Recordings of the web demo: folders with the video and the poses of a live loop, which are deleted after a time.

A recording belongs to the server, not to a connection, so it survives a reload of the page. Its files also survive the
end of the server. Only files that this server wrote are deleted, by name, when they expire.
"""

import asyncio
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pose.errors import PoseError
from pose.live import Loop
from pose.live.recorder import Recorder

MAX_DURATION_S = 600.0  # maximum duration of a recording
MAX_RECORDINGS = 32  # maximum number of recordings; a further one replaces a downloaded one or is refused
ALL_BROWSERS = ""  # owner of recordings of the server's own source, which all browsers may list


@dataclass(slots=True, eq=False)
class FinishedRecording:
    """A finished recording."""

    owner: str  # secret id of the browser that may list the recording, or `ALL_BROWSERS` if all browsers may list it
    folder: Path  # folder that contains only this recording
    files: Mapping[str, Path]  # paths in `folder` by download name
    frames: int  # number of recorded frames
    seconds: float  # time from the first to the last frame, s
    problem: str  # reason why the recording is incomplete; empty if it is complete
    expires: float  # time at which the recording is deleted, in s on the clock of `time.monotonic`
    downloaded: set[str] = field(default_factory=set)  # names of the files that were sent completely
    key: str = field(default_factory=lambda: secrets.token_urlsafe(16))  # secret part of the download URLs
    _written: Mapping[Path, tuple[int, ...] | None] = field(init=False)

    def __post_init__(self) -> None:
        self._written = {path: _state(path) for path in self.files.values()}

    @property
    def is_downloaded(self) -> bool:
        """Whether all files were sent completely."""
        return self.downloaded == set(self.files)

    def delete(self) -> None:
        """Delete the files that have not been changed since they were written, and the folder if it is then empty."""
        for path in self.files.values():
            with suppress(OSError):
                if _state(path) == self._written[path]:
                    path.unlink(missing_ok=True)
        with suppress(OSError):  # the folder contains other files
            self.folder.rmdir()


def _state(path: Path) -> tuple[int, ...] | None:
    """Return the inode, size and modification time of a file, which change with the file; None if there is no file."""
    try:
        state = path.lstat()
    except OSError:
        return None
    return state.st_ino, state.st_size, state.st_mtime_ns


class RunningRecording:
    """A recording of a live loop, from construction until `close`."""

    def __init__(self, loop: Loop, owner: str, parent: Path, max_seconds: float) -> None:
        self.owner = owner
        self._recorder = Recorder(loop, parent)
        self._max_seconds = max_seconds

    @property
    def name(self) -> str:
        """Name of the folder, and prefix of the file names."""
        return self._recorder.folder.name

    @property
    def frames(self) -> int:
        """Number of recorded frames."""
        return self._recorder.frames

    @property
    def seconds(self) -> float:
        """Duration so far in s."""
        return self._recorder.seconds

    @property
    def is_over(self) -> bool:
        """Whether the recording has reached its maximum duration, or cannot be continued because of an error."""
        return self._recorder.problem is not None or self._recorder.seconds >= self._max_seconds

    def close(self, keep_seconds: float) -> FinishedRecording:
        """Finish the files, blocking, and return the recording, which expires in `keep_seconds`; thread-safe."""
        recorder = self._recorder
        recorder.close()
        files = {f"{self.name}-{name}": path for name, path in recorder.files.items() if path is not None}
        expires = time.monotonic() + keep_seconds
        return FinishedRecording(
            self.owner, recorder.folder, files, recorder.frames, recorder.seconds, self._problem(), expires
        )

    def _problem(self) -> str:
        recorder = self._recorder
        if recorder.problem is not None:
            return recorder.problem
        if recorder.frames == 0:
            return "nothing was recorded"
        if recorder.dropped:
            return f"{recorder.dropped} frames are missing: the disk was too slow"
        return f"stopped at the maximum length of {self._max_seconds:g} s" if self.is_over else ""


class RecordingStore:
    """The recordings of one server, whose files are written in threads. Call it in one asyncio event loop."""

    def __init__(self, folder: Path, keep_seconds: float, finished: Callable[[FinishedRecording], None]) -> None:
        """Create a store; `finished` is called with each recording with files, deleted after `keep_seconds`."""
        self.keep_seconds = keep_seconds
        self._folder = folder
        self._on_finished = finished
        self._running: set[RunningRecording] = set()
        self._finished_by_key: dict[str, FinishedRecording] = {}
        self._version = 0
        self._changed = asyncio.Event()

    async def start(self, loop: Loop, owner: str) -> RunningRecording:
        """Start a recording that the browser `owner` (secret id), or `ALL_BROWSERS`, may list."""
        self._make_room()
        recording = await asyncio.to_thread(RunningRecording, loop, owner, self._folder, MAX_DURATION_S)
        self._running.add(recording)
        return recording

    def _make_room(self) -> None:
        self.delete_expired()
        if len(self._finished_by_key) + len(self._running) < MAX_RECORDINGS:
            return
        oldest = next((recording for recording in self._finished_by_key.values() if recording.is_downloaded), None)
        if oldest is None:
            raise PoseError(f"the server keeps at most {MAX_RECORDINGS} recordings: download one first")
        self._delete(oldest)

    async def finish(self, recording: RunningRecording) -> FinishedRecording:
        """End a recording, wait until its files are complete, and add it to the finished recordings."""
        finished = await asyncio.to_thread(recording.close, self.keep_seconds)
        if recording in self._running:
            self._running.discard(recording)
            if finished.files:
                self._finished_by_key[finished.key] = finished
                self._notify()
                self._on_finished(finished)
        return finished

    def listed(self, owner: str) -> list[FinishedRecording]:
        """Return recordings that a browser, or all, may list and has not downloaded completely, oldest first."""
        self.delete_expired()
        return [
            recording
            for recording in self._finished_by_key.values()
            if recording.owner in (owner, ALL_BROWSERS) and not recording.is_downloaded
        ]

    async def newer_version(self, version: int) -> int:
        """Wait until the list of recordings changed since `version` (from 0), and return its new version."""
        while self._version <= version:
            await self._changed.wait()
        return self._version

    def find(self, key: str, name: str) -> tuple[FinishedRecording, Path] | None:
        """Look up the recording and file of a download URL, no part of which is used as a path; None if unknown."""
        recording = self.find_recording(key)
        path = None if recording is None else recording.files.get(name)
        return None if recording is None or path is None else (recording, path)

    def find_recording(self, key: str) -> FinishedRecording | None:
        """Look up the recording of a download URL; None if it is unknown or was deleted."""
        self.delete_expired()
        return self._finished_by_key.get(key)

    def finished_recordings(self) -> list[FinishedRecording]:
        """Return all finished recordings that have not been deleted."""
        return list(self._finished_by_key.values())

    def delete_expired(self) -> None:
        """Delete the recordings whose time has expired."""
        now = time.monotonic()
        for recording in [recording for recording in self._finished_by_key.values() if recording.expires <= now]:
            self._delete(recording)

    def _delete(self, recording: FinishedRecording) -> None:
        del self._finished_by_key[recording.key]
        recording.delete()
        self._notify()

    def _notify(self) -> None:
        self._version += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def close(self) -> None:
        """Finish all running recordings. No files are deleted."""
        await asyncio.gather(*(self.finish(recording) for recording in list(self._running)))
