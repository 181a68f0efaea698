"""Recording a live loop: the pictures as a video and the poses as `pose-run` writes them."""

from pathlib import Path

from pose.errors import PoseError
from pose.files import RunInfo
from pose.live.loop import LiveLoop, Wanted
from pose.live.recording import Recording
from pose.live.result import LiveResult
from pose.live.subscriber import Subscriber
from pose.pipeline import Pipeline

WAITING_SECONDS = 2.0  # of pictures that may wait for a slow disk,
LEAST_WAITING = 16  # and so many at any frame rate: at the end several frames become final at once


class Recorder:
    """Records from now on: `video.mp4`, `poses.json` and `poses.npz`, in a folder of their own.

    Poses are the refined ones where the lifter refines. Frames of the last moments before `close` have no refined pose
    yet and are written with their newest estimate.

    The files get their names when they are whole: at `close`, when the loop ends, when the disk is full, or when the
    pictures change their size or the networks are others. done: the recordings that are finished.
    """

    def __init__(self, loop: LiveLoop, parent: Path, *, video: bool = True, anew: bool = False) -> None:
        """parent: the folder in which the recording's own is made. video: record the pictures, too. anew: where
        pictures of another size, or other networks, would end it, go on in another folder.

        Raises PoseError when nothing can be recorded there.
        """
        self._loop, self._parent, self._with_video, self._anew = loop, parent, video, anew
        self._now = self._begin()
        self.done: list[Recording] = []
        waiting = max(LEAST_WAITING, round(WAITING_SECONDS * loop.source.fps))
        # Predicted poses are recorded as they were shown: refined ones are never predicted.
        wanted: Wanted = "final" if loop.ahead is None else "newest"
        self._subscriber = Subscriber(loop, self._write, maxlen=waiting, after=self._finish, whole=True, wanted=wanted)

    def _begin(self) -> Recording:
        return Recording(self._parent, self._info_of, video=self._with_video)

    @property
    def folder(self) -> Path:
        """Of the recording that runs, or ran last."""
        return self._now.folder

    @property
    def files(self) -> dict[str, Path | None]:
        """Once it is closed: the files in `folder` by name, None where one could not be finished."""
        return self._now.files

    @property
    def frames(self) -> int:
        """How many were written."""
        return self._now.frames + sum(recording.frames for recording in self.done if recording is not self._now)

    @property
    def seconds(self) -> float:
        """From the first to the last frame, in `folder`."""
        return self._now.seconds

    @property
    def problem(self) -> str | None:
        """Why it ended early."""
        return self._subscriber.problem

    @property
    def dropped(self) -> int:
        """Frames that are missing because the disk was too slow."""
        return self._subscriber.dropped

    def close(self) -> None:
        """Finish the files, which takes a while where hours were recorded. Without any frame there are none, and no
        folder. May be called twice.
        """
        self._subscriber.close()

    def _write(self, live: LiveResult) -> None:
        if self._now.stream not in (None, live.stream):
            if not self._anew:
                raise PoseError("the size of the pictures or the networks changed")
            self.done.append(self._now)
            self._now.finish()
            self._now = self._begin()
        try:
            self._now.write(live)
        except PoseError:
            self._now.cut_short = True
            raise

    def _finish(self) -> None:
        if self._now not in self.done:
            self.done.append(self._now)
            self._now.finish()

    def _info_of(self, live: LiveResult) -> RunInfo:
        assert live.stream is not None, "a loop says what its results belong to"
        return _run_info(self._loop, live.stream.pipeline, live.size)


def _run_info(loop: LiveLoop, pipeline: Pipeline, size: tuple[int, int]) -> RunInfo:
    return pipeline.run_info(loop.source.name, loop.source.fps, size)
