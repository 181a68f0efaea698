"""Writing H.264 video that a browser plays."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fractions import Fraction
from math import ceil
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import av
import numpy as np
from av.video.reformatter import ColorRange, Colorspace, VideoReformatter

from pose.errors import PoseError
from pose.system.whole_file import WholeFile
from pose.types import U8
from pose.video.sound import SoundTrack
from pose.video.source import Sound

if TYPE_CHECKING:
    from av.container import OutputContainer
    from av.video.stream import VideoStream

CLOCK = Fraction(1, 90000)
MIN_TICKS, MAX_TICKS = 10_000, 1_000_000  # a second: repaired stamps keep their order; long frames fit in MP4's 32 bits
KEY_SECONDS = 2  # between key frames at most: seeking in a player stays quick
OPTIONS = {"preset": "superfast", "crf": "21"}
BT709 = 1  # FFmpeg's number for primaries, transfer and matrix alike


class VideoWriter:
    """An MP4 file (H.264, yuv420p, index in front) made of RGB pictures with time stamps.

    The file appears under its name only at `close()`; after `abort()`, or an error inside `with`, nothing is left.

    path: of the file; an existing one is replaced. size: (width, height) px of the pictures; odd ones are padded by
    repeating the last column or row, because 4:2:0 needs even ones. fps: average, a hint for players. time_base: s, the
    source's tick: with it the time stamps of the source are kept exactly. sound: copied along, shifted so that it fits.
    problems: one line for each thing that could not be done as asked.
    """

    def __init__(
        self,
        path: Path,
        size: tuple[int, int],
        *,
        fps: float,
        time_base: Fraction = CLOCK,
        sound: Sound | None = None,
    ) -> None:
        self.path = path
        self.problems: list[str] = []
        self._whole = WholeFile(path)
        self._size = size
        self._fps = fps
        self._tick = _written_tick(time_base)
        self._first: float | None = None
        self._last = -1
        self._reformatter = VideoReformatter()
        self._sound: SoundTrack | None = None
        self._container: OutputContainer | None = None
        with self._guarded():
            self._container = output = av.open(
                str(self._whole.path), "w", format="mp4", options={"movflags": "faststart"}
            )
            self._stream = self._add_video(output)
            if sound is not None:
                self._add_sound(sound, output)
            output.start_encoding()

    def _add_video(self, output: "OutputContainer") -> "VideoStream":
        rate = Fraction(self._fps).limit_denominator(1001)
        if "libx264" in av.codecs_available:
            stream = output.add_stream("libx264", rate=rate, options=OPTIONS)
        else:
            stream = output.add_stream("mpeg4", rate=rate, bit_rate=4_000_000)
            self.problems.append(f"{self.path}: PyAV has no libx264 here; MPEG-4 Part 2 was written instead of H.264")
        width, height = self._size
        context = stream.codec_context
        context.width, context.height = width + width % 2, height + height % 2
        context.pix_fmt = "yuv420p"
        context.time_base = self._tick
        context.gop_size = max(1, round(KEY_SECONDS * self._fps))
        context.color_range = ColorRange.MPEG
        context.color_primaries = context.color_trc = context.colorspace = BT709
        context.thread_type = "AUTO"
        return stream

    def _add_sound(self, sound: Sound, output: "OutputContainer") -> None:
        try:
            self._sound = SoundTrack(sound, output)
        except (PoseError, av.FFmpegError) as error:
            self.problems.append(f"{self.path}: without the sound of {sound.target.shown}: {error}")

    def write(self, image: U8, time: float) -> None:
        """Append a picture, (H, W, 3) uint8 RGB, shown from `time` on, in seconds of the source; times must increase.

        The first picture becomes second 0 of the file.
        """
        if (image.shape[1], image.shape[0]) != self._size:
            raise ValueError(f"expected a picture of {self._size}, got {image.shape[1], image.shape[0]}")
        assert self._container is not None, "closed"
        with self._guarded():
            if self._first is None:
                self._first = time
                if self._sound is not None:
                    self._sound.begin(time)
            frame = self._yuv(image)
            self._last = max(round((time - self._first) / self._tick), self._last + 1)
            frame.pts = self._last
            frame.time_base = self._tick
            frame.duration = max(1, round(1 / (self._fps * self._tick)))
            self._container.mux(self._stream.encode(frame))
            if self._sound is not None:
                self._sound.feed(time - self._first)

    def _yuv(self, image: U8) -> av.VideoFrame:
        odd_height, odd_width = image.shape[0] % 2, image.shape[1] % 2
        if odd_height or odd_width:
            image = np.pad(image, ((0, odd_height), (0, odd_width), (0, 0)), mode="edge")
        frame = av.VideoFrame.from_ndarray(image, format="rgb24")
        return self._reformatter.reformat(
            frame,
            format="yuv420p",
            dst_colorspace=Colorspace.ITU709,
            dst_color_range=ColorRange.MPEG,
            threads=1,
        )

    def close(self) -> None:
        """Finish the file and give it its name. Without any picture there is no file."""
        if self._container is None:
            return
        if self._first is None:
            self.abort()
            return
        with self._guarded():
            self._container.mux(self._stream.encode(None))
            if self._sound is not None:
                self._sound.finish(self._last * float(self._tick) + 1 / self._fps)
                self.problems += [self._sound.problem] if self._sound.problem else []
            self._container.close()
            self._container = None
            self._whole.commit()

    def abort(self) -> None:
        """Leave nothing behind. Does nothing after `close()`."""
        if self._sound is not None:
            self._sound.close()
        if self._container is not None:
            with suppress(av.FFmpegError):
                self._container.close()
            self._container = None
        self._whole.discard()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Removes the unfinished file on any error, and says a failure to write in one line."""
        try:
            yield
        except (av.FFmpegError, OSError) as error:
            self.abort()
            raise PoseError(f"cannot write {self.path}: {(error.strerror or str(error)).lower()}") from error
        except BaseException:
            self.abort()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def _written_tick(time_base: Fraction) -> Fraction:
    tick = time_base / ceil(MIN_TICKS * time_base)
    return tick if tick * MAX_TICKS >= 1 else CLOCK
