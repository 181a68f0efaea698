"""Recording of a live loop: the images as a video, and the poses as `pose-run` writes them."""

from dataclasses import replace
from pathlib import Path

from pose.errors import PoseError
from pose.live.base import Loop, Wanted
from pose.live.recording import RecordingFolder
from pose.live.result import LiveResult, Stream
from pose.live.subscriber import Subscriber
from pose.pipeline import Pipeline
from pose.results import RunInfo

MAX_BACKLOG_S = 2.0  # capacity of the queue of frames that wait for a slow disk
MAX_BACKLOG_BYTES = 1 << 27  # of the images in that queue, which are 100 MB each at 8K
MIN_BACKLOG_FRAMES = 16  # minimum capacity; when the loop ends, several frames become final at once


class Recorder:
    """Recorder of a live loop, which writes `video.mp4`, `poses.json` and `poses.npz` to a new folder.

    Several calibrated cameras are written to `cameras.json`. If the loop predicts poses, the predicted poses are
    written. Otherwise, if the lifter refines poses, the refined poses are written; the last frames before `close` may
    be unrefined.

    Recording ends at `close`, when the loop ends, and when the disk is full. Without
    `restart_on_change`, it also ends when the image size, the networks or the calibration of several cameras change.
    Files get their final names then.
    """

    def __init__(self, loop: Loop, parent: Path, *, video: bool = True, restart_on_change: bool = False) -> None:
        """Create the folder and start recording.

        Args:
            parent: Folder in which the folder of the recording is created.
            restart_on_change: Whether to continue in a new folder when the image size, the networks or the calibration
                change. Otherwise, recording ends.

        Raises:
            PoseError: If the folder cannot be written.
        """
        self._loop, self._parent, self._with_video, self._restart_on_change = loop, parent, video, restart_on_change
        self._current = self._begin()
        self.finished: list[RecordingFolder] = []  # finished recordings, oldest first
        capacity = max(MIN_BACKLOG_FRAMES, round(MAX_BACKLOG_S * loop.source.fps))
        # With prediction, poses are recorded as displayed. Refined poses are never predicted.
        wanted: Wanted = "final" if loop.ahead is None else "newest"
        self._subscriber = Subscriber(
            loop, self._write, maxlen=capacity, after=self._finish, drain=True, wanted=wanted,
            room=lambda live: MAX_BACKLOG_BYTES // live.image.nbytes,
        )  # fmt: skip

    def _begin(self) -> RecordingFolder:
        return RecordingFolder(self._parent, self._info_of, video=self._with_video)

    @property
    def folder(self) -> Path:
        """Folder of the current or last recording."""
        return self._current.folder

    @property
    def files(self) -> dict[str, Path | None]:
        """Paths of the files in `folder` after `close`, by file name as in `RecordingFolder.files`.

        The value is None for a file that could not be finished.
        """
        return self._current.files

    @property
    def frames(self) -> int:
        """Number of frames written to all folders since the start."""
        return self._current.frames + sum(
            recording.frames for recording in self.finished if recording is not self._current
        )

    @property
    def seconds(self) -> float:
        """Duration of the recording in `folder`, s."""
        return self._current.seconds

    @property
    def problem(self) -> str | None:
        """Reason why recording ended early; None without a problem."""
        return self._subscriber.problem

    @property
    def dropped(self) -> int:
        """Number of frames lost because the disk was too slow."""
        return self._subscriber.dropped

    def close(self) -> None:
        """Finish the files, which can take seconds after hours of recording. May be called twice.

        If no frame was recorded, the folder is removed.
        """
        self._subscriber.close()

    def _write(self, live: LiveResult) -> None:
        if self._current.stream not in (None, live.stream):
            if not self._restart_on_change:
                raise PoseError(_what_changed(self._current.stream, live.stream))
            self.finished.append(self._current)
            self._current.finish()
            self._current = self._begin()
        try:
            self._current.write(live)
        except PoseError:
            self._current.cut_short = True
            raise

    def _finish(self) -> None:
        if self._current not in self.finished:
            self.finished.append(self._current)
            self._current.finish()

    def _info_of(self, live: LiveResult) -> RunInfo:
        stream = live.stream
        assert stream is not None, "a loop says what its results belong to"
        info = _run_info(self._loop, stream.pipeline, live.size)
        if stream.world is not None and stream.world.has_depth:
            info = replace(info, settings={**info.settings, "sensors": ["camera", "depth"]})
        return info if stream.camera is None else replace(info, camera=stream.camera, cameras=stream.cameras)


def _what_changed(before: Stream | None, now: Stream | None) -> str:
    cameras = [() if stream is None else stream.cameras for stream in (before, now)]
    return "the image size or the networks changed" if cameras[0] == cameras[1] else "the cameras were calibrated"


def _run_info(loop: Loop, pipeline: Pipeline, size: tuple[int, int]) -> RunInfo:
    return pipeline.run_info(loop.source.name, loop.source.fps, size)
