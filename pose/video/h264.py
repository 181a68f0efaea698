"""Pictures with times -> a stream of H.264 in a container that is being written."""

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import av
import numpy as np
from av.video.reformatter import ColorRange

from pose.types import U8
from pose.video.planes import BT709, Colours, Planes

if TYPE_CHECKING:
    from av.container import OutputContainer

CLOCK = Fraction(1, 90000)
MIN_TICKS, MAX_TICKS = 10_000, 1_000_000  # a second: repaired stamps keep their order; long frames fit in MP4's 32 bits
KEY_SECONDS = 2  # between key frames at most: seeking in a player stays quick
# Half the time of the preset `superfast` at the same likeness to what was drawn: of what `ultrafast` leaves out, the
# cheap part is given back: frames between frames, smoothed edges of blocks, and their finer division.
FINER = "no-deblock=0:8x8dct=1:partitions=i8x8,i4x4"
OPTIONS = {"preset": "ultrafast", "crf": "23", "x264-params": f"bframes=3:b-adapt=0:{FINER}"}
AT_ONCE = {"tune": "zerolatency", "x264-params": FINER}  # the encoder holds no picture back


class PictureStream:
    """Takes pictures of one size. Odd sides are padded by repeating the last column or row: 4:2:0 needs even ones.

    started: whether there was any picture. is_h264: False where PyAV has no libx264, and MPEG-4 Part 2 is written.
    """

    def __init__(
        self,
        output: "OutputContainer",
        size: tuple[int, int],
        fps: float,
        time_base: Fraction,
        colours: Colours | None = None,
        *,
        at_once: bool = False,
    ) -> None:
        """colours: of the planes in the file. at_once: every picture is written when it comes; the file gets larger."""
        self.is_h264 = "libx264" in av.codecs_available
        self._output = output
        self._size, self._fps = size, fps
        self._tick = _written_tick(time_base)
        self._first: float | None = None
        self._last = -1
        self._colours = colours or Colours()
        rate = Fraction(fps).limit_denominator(1001)
        if self.is_h264:
            options = OPTIONS | AT_ONCE if at_once else OPTIONS
            self._stream = output.add_stream("libx264", rate=rate, options=options)
        else:
            self._stream = output.add_stream("mpeg4", rate=rate, bit_rate=4_000_000)
        width, height = size
        context = self._stream.codec_context
        context.width, context.height = width + width % 2, height + height % 2
        context.pix_fmt = "yuv420p"
        context.time_base = self._tick
        context.gop_size = max(1, round(KEY_SECONDS * fps))
        context.color_range = ColorRange.JPEG if self._colours.full else ColorRange.MPEG
        context.color_primaries = context.color_trc = BT709
        context.colorspace = self._colours.matrix
        context.thread_type = "SLICE" if at_once else "AUTO"

    @property
    def started(self) -> bool:
        """Whether a frame was written."""
        return self._first is not None

    @property
    def end(self) -> float:
        """s from the first picture to the end of the last one."""
        return self._last * float(self._tick) + 1 / self._fps

    def write(self, image: U8 | Planes, time: float) -> float:
        """Append a picture, (H, W, 3) uint8 RGB, shown from `time` on, in s; s since the first one.

        Or its planes: packed, of the even size, and in the colours of the file. Raises ValueError for others.
        """
        frame = _frame(self._planes(image), shared=self.is_h264)  # x264 copies pictures, the other encoder keeps them
        if self._first is None:
            self._first = time
        self._last = max(round((time - self._first) / self._tick), self._last + 1)
        frame.pts = self._last
        frame.time_base = self._tick
        frame.duration = max(1, round(1 / (self._fps * self._tick)))
        self._output.mux(self._stream.encode(frame))
        return time - self._first

    def finish(self) -> None:
        """Write what the encoder holds."""
        self._output.mux(self._stream.encode(None))

    def _planes(self, image: U8 | Planes) -> Planes:
        if not isinstance(image, Planes):
            return Planes.of_rgb(image, self._colours)
        context = self._stream.codec_context
        if image.size != (context.width, context.height) or image.colours != self._colours:
            raise ValueError(f"expected an image of {context.width, context.height} in {self._colours}")
        return image


def _frame(planes: Planes, *, shared: bool) -> av.VideoFrame:
    """The frame of packed planes. shared: in their memory where PyAV can, else always a copy.

    PyAV's `from_numpy_buffer` takes an array of H rows for a picture of H // 6 * 4 rows, so it misplaces the planes of
    every height that is no multiple of 4.
    """
    assert planes.packed is not None, "an encoder takes packed pictures"
    width, height = planes.size
    if shared and height % 4 == 0:
        return av.VideoFrame.from_numpy_buffer(planes.packed, format="yuv420p")
    frame = av.VideoFrame(width, height, "yuv420p")
    for plane, samples in zip(frame.planes, (planes.y, planes.u, planes.v), strict=True):
        rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
        rows[: plane.height, : plane.width] = samples
    return frame


def check_size(image: U8, size: tuple[int, int]) -> None:
    """Raises ValueError for a picture of another (width, height)."""
    if (image.shape[1], image.shape[0]) != size:
        raise ValueError(f"expected an image of {size}, got {image.shape[1], image.shape[0]}")


def _written_tick(time_base: Fraction) -> Fraction:
    tick = time_base / ceil(MIN_TICKS * time_base)
    return tick if tick * MAX_TICKS >= 1 else CLOCK
