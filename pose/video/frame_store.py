"""Temporary storage of the frames of a live source."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import av
import numpy as np

from pose.structures.types import Frame
from pose.video.encode import VideoWriter
from pose.video.source import VideoInfo


class FrameStore:
    """A temporary H.264 file of frames, which keep their indices; times are rounded to the file's unit."""

    def __init__(self, info: VideoInfo) -> None:
        """Create the file for a live source."""
        self._info = info
        self._folder = Path(tempfile.mkdtemp(prefix="pose-recording-"))
        self._path = self._folder / "live.mp4"
        self._writer = VideoWriter(self._path, info.size, fps=info.fps, time_base=info.time_base)
        self._start: float | None = None

    def write(self, frame: Frame) -> None:
        """Append a frame."""
        if self._start is None:
            self._start = frame.time
        self._writer.write(frame.image, frame.time)

    def finish(self) -> None:
        """Complete the file; the frames can then be read."""
        if self._start is not None:
            self._writer.close()

    def frames(self) -> Iterator[Frame]:
        """Yield the stored frames."""
        if self._start is None:
            return
        width, height = self._info.size
        with av.open(str(self._path)) as container:
            for index, picture in enumerate(container.decode(video=0)):
                image = np.asarray(picture.to_ndarray(format="rgb24"), np.uint8)
                image = np.ascontiguousarray(image[:height, :width])  # without the padding to even sizes
                yield Frame(image, index, self._start + picture.time)

    def close(self) -> None:
        """Delete the file."""
        self._writer.abort()
        shutil.rmtree(self._folder, ignore_errors=True)
