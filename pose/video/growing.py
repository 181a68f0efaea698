"""Crash-safe video: an MP4 file of self-contained fragments.

A killed program or a full disk costs at most the last fragment of `FRAGMENT_SECONDS`.
"""

import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import av

from pose.errors import PoseError
from pose.structures.types import U8
from pose.utils.whole_file import whole_file
from pose.video.h264 import DEFAULT_TIME_BASE, ImageEncoder, check_size

if TYPE_CHECKING:
    from av.container import OutputContainer

FRAGMENT_SECONDS = 0.5
OPTIONS = {
    "movflags": "empty_moov+default_base_moof",
    "frag_duration": str(round(1e6 * FRAGMENT_SECONDS)),
    "flush_packets": "1",
}


class GrowingVideo:
    """Writer of a video file that can be played at any time.

    Until `close`, the video has a temporary name, `part` of the constructor. It can be played at any time, even after
    disk errors.

    Attributes:
        path: Final path.
    """

    def __init__(self, path: Path, part: Path, size: tuple[int, int], *, fps: float) -> None:
        """Create the file; PoseError if the file cannot be created."""
        self.path, self._part, self._size = path, part, size
        self._container: OutputContainer | None = None
        self._failed = False
        try:
            self._container = av.open(f"file:{part}", "w", format="mp4", options=OPTIONS)
            self._encoder = ImageEncoder(self._container, size, fps, DEFAULT_TIME_BASE, low_latency=True)
            self._container.start_encoding()
        except (av.FFmpegError, OSError) as error:
            self.abort()
            raise self._error(error) from error

    def write(self, image: U8, time: float) -> None:
        """Append an image (H, W, 3) uint8 RGB, shown from `time` (s), increasing.

        Raises:
            PoseError: If writing fails, for example if the disk is full; `close` keeps the earlier images.
            ValueError: If the image has another size.
        """
        check_size(image, self._size)
        try:
            self._encoder.write(image, time)
        except (av.FFmpegError, OSError) as error:
            self._failed = True
            raise self._error(error) from error

    def close(self) -> None:
        """Complete and rename the file, with an index at the front if disk space allows.

        If no image was written, no file is made.

        Raises:
            PoseError: If the last images could not be written; the others are kept.
        """
        if self._container is None:
            return
        error = None
        try:
            if not self._failed:
                self._encoder.finish()
            self._container.close()
        except (av.FFmpegError, OSError) as problem:
            error = None if self._failed else problem
        self._container = None
        finish_video(self._part, self.path)
        if error is not None:
            raise self._error(error) from error

    def abort(self) -> None:
        """Delete the file. No effect after `close`."""
        if self._container is None:
            return
        with suppress(av.FFmpegError, OSError):
            self._container.close()
        self._container = None
        self._part.unlink(missing_ok=True)

    def _error(self, error: av.FFmpegError | OSError) -> PoseError:
        return PoseError(f"cannot write {self.path}: {(error.strerror or str(error)).lower()}")


def finish_video(part: Path, path: Path) -> None:
    """Write the complete fragments of an incomplete video to its final path, and delete it; PoseError if it fails."""
    try:
        end = _whole_fragments(part)
        if end == 0:
            part.unlink(missing_ok=True)
            return
        with part.open("r+b") as file:
            file.truncate(end)
        # Without space for a second copy, keep the fragments, which can be played too.
        with suppress(PoseError, av.FFmpegError):
            with whole_file(path) as hidden:
                _remux(part, hidden)
            part.unlink()
            return
        part.replace(path)
    except OSError as error:
        raise PoseError(f"cannot write {path}: {(error.strerror or str(error)).lower()}") from error


def _whole_fragments(path: Path) -> int:
    """Return the byte offset of the end of the last complete fragment; 0 if there is no fragment."""
    # Source: ISO/IEC 14496-12, 4.2 and 8.8, which specifies the boxes.
    size, place, end = path.stat().st_size, 0, 0
    with path.open("rb") as file:
        while place + 8 <= size:
            file.seek(place)
            length, kind = struct.unpack(">I4s", file.read(8))
            if length == 1:
                (length,) = struct.unpack(">Q", file.read(8).ljust(8, b"\0"))
            if length < 8 or place + length > size:
                break
            place += length
            end = place if kind == b"mdat" else end
    return end


def _remux(source: Path, target: Path) -> None:
    """Write the same video with one index at the front, which many players require."""
    with (
        av.open(f"file:{source}") as container,
        av.open(f"file:{target}", "w", format="mp4", options={"movflags": "faststart"}) as output,
    ):
        stream = container.streams.video[0]
        copy = output.add_stream_from_template(stream)
        copy.time_base = stream.time_base
        for packet in container.demux(stream):
            if packet.dts is not None:
                packet.stream = copy
                output.mux(packet)
