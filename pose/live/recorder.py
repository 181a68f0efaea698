"""Recording a live loop: the pictures as a video and the poses as `pose-run` writes them."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

from pose.errors import PoseError
from pose.files import JsonWriter, NpzWriter, ResultWriter, RunInfo
from pose.live.loop import LiveLoop
from pose.live.result import LiveResult, Stream
from pose.live.subscriber import Subscriber
from pose.pipeline import Pipeline
from pose.types import FrameResult
from pose.video import VideoWriter

VIDEO = "video.mp4"
# What a recording holds beside the pictures; `pose-run` can write more.
POSES: dict[str, Callable[[Path, RunInfo], ResultWriter]] = {"poses.json": JsonWriter, "poses.npz": NpzWriter}
WAITING_SECONDS = 2.0  # of pictures that may wait for a slow disk


class Recorder:
    """Records from now on: `video.mp4`, `poses.json` and `poses.npz`, in a folder of their own.

    The files get their names when they are whole: at `close`, when the loop ends, or when the pictures change their
    size or the networks are others. Frames are numbered from 0 and begin at second 0. frames, seconds: how much was
    written; `files` says what of it is there in the end.
    """

    def __init__(self, loop: LiveLoop, parent: Path, *, video: bool = True) -> None:
        """parent: the folder in which the recording's own is made. video: record the pictures, too.

        Raises PoseError when the folder cannot be made.
        """
        self.folder = new_folder(parent)
        self.frames, self.seconds = 0, 0.0
        self._with_video = video
        self._loop = loop
        self._stream: Stream | None = None
        self._video: VideoWriter | None = None
        self._writers: list[ResultWriter] = []
        self._begun = 0.0
        waiting = max(4, round(WAITING_SECONDS * loop.source.fps))
        self._subscriber = Subscriber(loop, self._write, maxlen=waiting, after=self._finish)

    @property
    def problem(self) -> str | None:
        """Why it ended early."""
        return self._subscriber.problem

    @property
    def dropped(self) -> int:
        """Frames that are missing because the disk was too slow."""
        return self._subscriber.dropped

    def close(self) -> None:
        """Finish the files. Without any frame there are none, and no folder. May be called twice."""
        self._subscriber.close()

    def _write(self, live: LiveResult) -> None:
        if not self._writers:
            self._open(live)
        if live.stream is not self._stream:
            raise PoseError("the size of the pictures or the networks changed")
        when = live.result.time - self._begun
        if self._video is not None:
            self._video.write(live.image, when)
        people = replace(live.result.people, index=self.frames, time=when)
        for writer in self._writers:
            writer.write(FrameResult(people, live.result.poses))
        self.frames, self.seconds = self.frames + 1, when

    def _open(self, live: LiveResult) -> None:
        assert live.stream is not None, "a loop says what its results belong to"
        self._begun, self._stream = live.result.time, live.stream
        info = _run_info(self._loop, live.stream.pipeline, live.size)
        if self._with_video:
            self._video = VideoWriter(self.folder / VIDEO, live.size, fps=info.fps)
        for name, writer in POSES.items():
            self._writers.append(writer(self.folder / name, info))

    @property
    def files(self) -> dict[str, Path | None]:
        """Once it is closed: the files by name, None where one could not be finished."""
        names = [*([VIDEO] if self._with_video else []), *POSES]
        return {name: path if (path := self.folder / name).is_file() else None for name in names}

    def _finish(self) -> None:
        """Finish each file by itself: where one cannot be, the others are kept. Raises the first error."""
        problems = []
        files: list[VideoWriter | ResultWriter] = [*self._writers]
        if self._video is not None:
            files.append(self._video)
        for file in files:
            try:
                file.close() if self.frames else file.abort()
            except PoseError as error:
                file.abort()
                problems.append(error)
        with suppress(OSError):  # not empty
            self.folder.rmdir()
        if problems:
            raise problems[0]


def new_folder(parent: Path) -> Path:
    """A new folder named after the time. Raises PoseError when it cannot be made."""
    name = time.strftime("live-%Y%m%d-%H%M%S")
    try:
        for suffix in ("", *(f"-{number}" for number in range(2, 100))):
            folder = parent / f"{name}{suffix}"
            if not folder.exists():
                folder.mkdir(parents=True)
                return folder
    except OSError as error:
        raise PoseError(f"cannot record into {parent}: {(error.strerror or str(error)).lower()}") from error
    raise PoseError(f"cannot record into {parent}: too many recordings at a time")


def _run_info(loop: LiveLoop, pipeline: Pipeline, size: tuple[int, int]) -> RunInfo:
    return RunInfo(
        source=loop.source.name,
        fps=loop.source.fps,
        camera=pipeline.camera(size),
        skeleton=pipeline.skeleton,
        models=pipeline.models,
        settings=asdict(pipeline.config),
    )
