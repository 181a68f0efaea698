"""Recordings of poses: the files of `pose-run`, which the browser that asked for them fetches."""

import secrets
import shutil
import tempfile
import threading
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from pose.errors import PoseError
from pose.live import LiveLoop
from pose.live.recorder import Recorder
from pose.system.work_folder import alone_in, own_folder

PREFIX = "pose-webcam-"
LONGEST_SECONDS = 600.0
KEPT = 8  # finished recordings; older ones are deleted


@dataclass(frozen=True, slots=True)
class Recorded:
    """A finished recording. folder: nobody else's. files: name -> path in it. problem: why it ended early, or empty."""

    folder: Path
    files: dict[str, Path]
    frames: int
    seconds: float
    problem: str
    key: str = field(default_factory=lambda: secrets.token_urlsafe(16))


class Recording:
    """The poses of a loop from now on."""

    def __init__(self, loop: LiveLoop, folder: Path, longest: float) -> None:
        """folder: an empty one, which goes with the recording. longest: s after which it is `finished`."""
        self._folder = folder
        self._recorder = Recorder(loop, folder, video=False)
        self._longest = longest

    @property
    def finished(self) -> bool:
        """Nothing more should be, or can be, recorded."""
        return self._recorder.problem is not None or self._recorder.seconds >= self._longest

    def stop(self) -> Recorded:
        """End it, and wait until the files are whole."""
        recorder = self._recorder
        recorder.close()
        files = {f"{recorder.folder.name}-{name}": path for name, path in recorder.files.items() if path is not None}
        return Recorded(self._folder, files, recorder.frames, recorder.seconds, self._problem())

    def _problem(self) -> str:
        recorder = self._recorder
        if recorder.problem is not None:
            return recorder.problem
        if recorder.frames == 0:
            return "nothing was recorded"
        if recorder.dropped:
            return f"{recorder.dropped} frames are missing: the disk was too slow"
        return f"no recording is longer than {self._longest:g} s" if self.finished else ""


class Recordings:
    """The recordings of one run of a server, in a temporary folder that goes with it.

    What a server left that was killed goes when the next one records.
    """

    def __init__(self) -> None:
        self._place = ExitStack()
        self._folder: Path | None = None
        self._making = threading.Lock()
        self._finished: dict[str, Recorded] = {}

    def start(self, loop: LiveLoop) -> Recording:
        """Raises PoseError when nothing can be recorded."""
        try:
            with self._making:
                if self._folder is None:
                    _remove_leftovers()
                    self._folder = self._place.enter_context(own_folder(_new_folder))
            # A folder for each: one without frames removes its `live-...`, and the next may get that very name.
            folder = Path(tempfile.mkdtemp(dir=self._folder))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise PoseError(f"cannot record into {tempfile.gettempdir()}: {why}") from error
        return Recording(loop, folder, LONGEST_SECONDS)

    def keep(self, recorded: Recorded) -> None:
        """Make a finished recording one that can be fetched, and forget the oldest."""
        self._finished[recorded.key] = recorded
        while len(self._finished) > KEPT:
            oldest = self._finished.pop(next(iter(self._finished)))
            shutil.rmtree(oldest.folder, ignore_errors=True)

    def file(self, key: str, name: str) -> Path | None:
        """What was recorded under that key and name. Nothing of either becomes part of a path."""
        found = self._finished.get(key)
        return None if found is None else found.files.get(name)

    def close(self) -> None:
        self._place.close()
        self._folder = None


def _new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix=PREFIX))


def _remove_leftovers() -> None:
    """Remove the folders of servers that are no more; nobody can fetch from those."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if folder.is_dir() and not folder.is_symlink():
            with alone_in(folder) as alone:
                if alone:
                    shutil.rmtree(folder, ignore_errors=True)
