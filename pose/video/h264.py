"""H.264 encoding of images with time stamps into an open container."""

from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

import av
import numpy as np
from av.video.reformatter import ColorRange

from pose.structures.types import U8
from pose.video.planes import BT709, Colours, Planes

if TYPE_CHECKING:
    from av.container import OutputContainer

DEFAULT_TIME_BASE = Fraction(1, 90000)
MIN_TICKS, MAX_TICKS = 10_000, 1_000_000  # ticks per second: corrected stamps stay in order, long frames fit 32 bits
MAX_KEY_INTERVAL_S = 2  # maximum s between key frames, for fast seeking
# The preset `ultrafast` with the cheap ones of the features that it disables: B-frames, deblocking, and finer
# partitions. It takes half the time of `superfast` at the same fidelity.
FEATURE_PARAMS = "no-deblock=0:8x8dct=1:partitions=i8x8,i4x4"
OPTIONS = {"preset": "ultrafast", "crf": "23", "x264-params": f"bframes=3:b-adapt=0:{FEATURE_PARAMS}"}
LOW_LATENCY = {"tune": "zerolatency", "x264-params": FEATURE_PARAMS}  # the encoder delays no image


class ImageEncoder:
    """Encoder of images of one size, padded by repetition to even sizes, as 4:2:0 needs."""

    # Without libx264 in PyAV, MPEG-4 Part 2 is written instead of H.264.

    def __init__(
        self,
        output: "OutputContainer",
        size: tuple[int, int],
        fps: float,
        time_base: Fraction,
        colours: Colours | None = None,
        *,
        low_latency: bool = False,
        key_interval_s: float = MAX_KEY_INTERVAL_S,
    ) -> None:
        """Add a video stream to the container; without `colours` in BT.709, limited range."""
        self.is_h264 = "libx264" in av.codecs_available  # whether H.264 is written
        self._output = output
        self._size, self._fps = size, fps
        self._tick = _encoder_time_base(time_base)
        self._first: float | None = None
        self._last = -1
        self._colours = colours or Colours()
        rate = Fraction(fps).limit_denominator(1001)
        if self.is_h264:
            options = OPTIONS | LOW_LATENCY if low_latency else OPTIONS
            self._stream = output.add_stream("libx264", rate=rate, options=options)
        else:
            self._stream = output.add_stream("mpeg4", rate=rate, bit_rate=4_000_000)
        width, height = size
        context = self._stream.codec_context
        context.width, context.height = width + width % 2, height + height % 2
        context.pix_fmt = "yuv420p"
        context.time_base = self._tick
        context.gop_size = max(1, round(key_interval_s * fps))
        context.color_range = ColorRange.JPEG if self._colours.full_range else ColorRange.MPEG
        context.color_primaries = context.color_trc = BT709
        context.colorspace = self._colours.matrix
        context.thread_type = "SLICE" if low_latency else "AUTO"

    @property
    def started(self) -> bool:
        """Whether any image has been written."""
        return self._first is not None

    @property
    def end(self) -> float:
        """Time in s from the first image to the end of the last one."""
        return self._last * float(self._tick) + 1 / self._fps

    def write(self, image: U8 | Planes, time: float) -> float:
        """Append an image shown from `time` (s), RGB or planes; return its time in s from the first image."""
        frame = _frame(
            self._planes(image), shared=self.is_h264
        )  # x264 copies images, the other encoder keeps references
        if self._first is None:
            self._first = time
        self._last = max(round((time - self._first) / self._tick), self._last + 1)
        frame.pts = self._last
        frame.time_base = self._tick
        frame.duration = max(1, round(1 / (self._fps * self._tick)))
        self._output.mux(self._stream.encode(frame))
        return time - self._first

    def finish(self) -> None:
        """Encode and write the images that the encoder still holds."""
        self._output.mux(self._stream.encode(None))

    def _planes(self, image: U8 | Planes) -> Planes:
        if not isinstance(image, Planes):
            return Planes.of_rgb(image, self._colours)
        context = self._stream.codec_context
        if image.size != (context.width, context.height) or image.colours != self._colours:
            raise ValueError(f"expected an image of {context.width, context.height} in {self._colours}")
        return image


def _frame(planes: Planes, *, shared: bool) -> av.VideoFrame:
    """Make a frame of packed planes, in shared memory if PyAV supports this."""
    # PyAV's `from_numpy_buffer` takes an array of H rows for an image of H // 6 * 4 rows. It therefore misplaces the
    # planes if the height is not a multiple of 4.
    assert planes.packed is not None, "an encoder requires packed planes"
    width, height = planes.size
    if shared and height % 4 == 0:
        return av.VideoFrame.from_numpy_buffer(planes.packed, format="yuv420p")
    frame = av.VideoFrame(width, height, "yuv420p")
    for plane, samples in zip(frame.planes, (planes.y, planes.u, planes.v), strict=True):
        rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
        rows[: plane.height, : plane.width] = samples
    return frame


def check_size(image: U8, size: tuple[int, int]) -> None:
    """Check that an image (H, W, 3) has the size (width, height) px."""
    if (image.shape[1], image.shape[0]) != size:
        raise ValueError(f"expected an image of {size}, got {image.shape[1], image.shape[0]}")


def _encoder_time_base(time_base: Fraction) -> Fraction:
    tick = time_base / ceil(MIN_TICKS * time_base)
    return tick if tick * MAX_TICKS >= 1 else DEFAULT_TIME_BASE
