"""Recordings of poses: the files of `pose-run`, written while the loop goes on, fetched by the browser that asked."""

import secrets
import shutil
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pose.errors import PoseError
from pose.export import WRITERS, RunInfo
from pose.live import LiveLoop, LiveResult

LONGEST_SECONDS = 600.0
BACKLOG = 300  # results that may wait for the disk
KEPT = 8  # finished recordings; older ones are deleted


@dataclass(slots=True)
class Recorded:
    """A finished recording. files: name -> path in `folder`. problem: why it is not what was wanted, or empty."""

    key: str
    folder: Path
    files: dict[str, Path]
    frames: int = 0
    seconds: float = 0.0
    problem: str = ""


class Recording:
    """Writes every result of a loop from now on, in a thread of its own."""

    def __init__(self, loop: LiveLoop, folder: Path, longest: float = LONGEST_SECONDS) -> None:
        """folder: where to write. longest: s after which it ends by itself."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        files = {f"poses-{stamp}.{name}": folder / f"poses.{name}" for name in WRITERS}
        self.recorded = Recorded(secrets.token_urlsafe(16), folder, files)
        self._loop = loop
        self._longest = longest
        self._mailbox = loop.subscribe(BACKLOG)
        self._thread = threading.Thread(target=self._write, name="recording", daemon=True)
        self._thread.start()

    @property
    def finished(self) -> bool:
        return not self._thread.is_alive()

    def stop(self) -> Recorded:
        """End it, and wait until the files are whole."""
        self._loop.unsubscribe(self._mailbox)
        self._thread.join()
        return self.recorded

    def _write(self) -> None:
        recorded = self.recorded
        try:
            first = self._mailbox.get()
            if first is None:
                recorded.files.clear()
                recorded.problem = "nothing was recorded"
                return
            info = self._info(first)
            with ExitStack() as stack:
                writers = [
                    stack.enter_context(WRITERS[path.suffix[1:]](path, info)) for path in recorded.files.values()
                ]
                live: LiveResult | None = first
                while live is not None:
                    if live.size != first.size:
                        recorded.problem = "the size of the picture changed"
                        break
                    for writer in writers:
                        writer.write(live.result)
                    recorded.frames += 1
                    recorded.seconds = live.result.time - first.result.time
                    if recorded.seconds >= self._longest:
                        recorded.problem = f"the longest recording is {self._longest:g} s"
                        break
                    live = self._mailbox.get()
            if self._mailbox.dropped:
                recorded.problem = f"{self._mailbox.dropped} frames are missing, the disk was too slow"
        except PoseError as error:
            recorded.files.clear()
            recorded.problem = str(error)
        finally:
            self._loop.unsubscribe(self._mailbox)

    def _info(self, first: LiveResult) -> RunInfo:
        pipeline, source = self._loop.pipeline, self._loop.source
        return RunInfo(
            source=source.name,
            image_size=first.size,
            fps=source.fps,
            camera=pipeline.camera(first.size),
            skeleton=first.skeleton,
            models=pipeline.models,
            settings=asdict(pipeline.config),
        )


@dataclass(slots=True)
class Recordings:
    """The recordings of one run of a server, in a temporary folder that goes with it."""

    _folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="pose-webcam-")))
    _finished: dict[str, Recorded] = field(default_factory=dict)

    def start(self, loop: LiveLoop) -> Recording:
        return Recording(loop, Path(tempfile.mkdtemp(dir=self._folder)))

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
        shutil.rmtree(self._folder, ignore_errors=True)
