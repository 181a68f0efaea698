"""Conversion of decoded frames of any format to upright RGB arrays, or YUV planes, of one size.

The two fields of an interlaced frame are recorded at different times, so the edges of fast limbs look like combs.
FFmpeg's `bwdif` filter interpolates the rows of the second field. Progressive frames are unchanged.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Generic, Self, TypeVar

import av
import numpy as np

from pose.structures.types import U8
from pose.video.planes import BT470BG, BT709, SMPTE170M, UNSPECIFIED, Colours, Planes

if TYPE_CHECKING:
    from av.video.plane import VideoPlane

# Colour matrices supported by swscale, numbered as in ITU-T H.273; others (YCgCo, ICtCp, ...) are rare or reserved.
KNOWN_MATRICES = frozenset({0, 1, 2, 4, 5, 6, 7, 9})
FULL_RANGE = 2  # FFmpeg's number for samples in 0 to 255
DIRECT = frozenset({"yuv420p", "yuvj420p"})  # formats whose planes are used directly

Orientation = tuple[bool, bool, bool]  # transpose, then mirror left-right, then mirror top-bottom


def orientation_of(matrix: bytes | None) -> Orientation:
    """Return the nearest of eight orientations for a display matrix; None is upright."""
    # The nine int32 [a b u; c d v; x y w] map pixel (p, q) to (a p + c q, b p + d q), y down (ISO/IEC 14496-12, track
    # header).
    if matrix is None:
        return False, False, False
    a, b, _, c, d, *_ = np.frombuffer(matrix, np.int32).tolist()
    if abs(a) >= abs(b):
        return False, a < 0, d < 0
    return True, c < 0, b < 0


def oriented(image: U8, orientation: Orientation) -> U8:
    """Return an image after the rotation and flip `orientation`, as a contiguous array."""
    if orientation == (False, False, False):
        return np.ascontiguousarray(image)
    import cv2  # several times faster than NumPy for transposing

    transpose, mirror_x, mirror_y = orientation
    result = image
    if transpose:
        result = np.asarray(cv2.transpose(result), np.uint8)
    if mirror_x or mirror_y:
        axis = {(True, False): 1, (False, True): 0, (True, True): -1}[mirror_x, mirror_y]
        result = np.asarray(cv2.flip(result, axis), np.uint8)
    return result


@dataclass(frozen=True, slots=True)
class StreamLayout:
    """Size and orientation of the frames of a stream, from its first frame."""

    coded: tuple[int, int]  # (width, height) in px as decoded
    square: tuple[int, int]  # (width, height) in px after scaling to square pixels; images are enlarged, never reduced
    orientation: Orientation  # rotation and flip to upright

    @classmethod
    def of(cls, first: "av.VideoFrame", aspect: Fraction | None) -> Self:
        """Determine the layout from the first frame and the aspect ratio of a pixel (width / height), if known."""
        from av.buffer import Buffer

        matrix = first.side_data.get("DISPLAYMATRIX")
        orientation = orientation_of(bytes(matrix) if isinstance(matrix, Buffer) else None)
        return cls((first.width, first.height), _square_pixels(first.width, first.height, aspect), orientation)

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in px of upright images."""
        width, height = self.square
        return (height, width) if self.orientation[0] else (width, height)


UprightImage = TypeVar("UprightImage", U8, Planes, "LateImage")


class UprightConverter(ABC, Generic[UprightImage]):
    """Converter of frames, with their colour matrix and range, to upright images of the first frame's size."""

    def __init__(self, layout: StreamLayout) -> None:
        """Start before the first frame."""
        from av.video.reformatter import VideoReformatter

        self.resized = 0  # number of frames of another size
        self._layout = layout
        self._reformatter = VideoReformatter()  # shared by all frames, since it caches tables

    def fits(self, frame: "av.VideoFrame") -> bool:
        """Return whether a frame has the size of the first frame."""
        return (frame.width, frame.height) == self._layout.coded

    @abstractmethod
    def __call__(self, frame: "av.VideoFrame") -> UprightImage:
        """Return the upright image of a frame. It stays valid while further frames are decoded."""


class UprightRGB(UprightConverter[U8]):
    """Converter to contiguous (H, W, 3) uint8 RGB images."""

    def __call__(self, frame: "av.VideoFrame") -> U8:
        self.resized += not self.fits(frame)
        width, height = self._layout.square
        matrix = None if frame.colorspace in KNOWN_MATRICES else BT709  # for other matrices colours are approximate
        # One thread: below 4K, more threads cost more than they save, and the decoder uses the other cores.
        rgb = self._reformatter.reformat(
            frame, width, height, "rgb24", src_colorspace=matrix, dst_colorspace=matrix, threads=1
        )
        return oriented(np.asarray(rgb.to_ndarray(), np.uint8), self._layout.orientation)


@dataclass(frozen=True, slots=True)
class LateImage:
    """An image that is converted to RGB when it is needed."""

    size: tuple[int, int]  # (width, height) in px
    read: Callable[[], U8]  # function that returns the upright (H, W, 3) uint8 RGB image


class LateRGB(UprightConverter[LateImage]):
    """Converter that leaves the conversion to RGB to the reader, for frames of which many are dropped."""

    def __init__(self, layout: StreamLayout) -> None:
        super().__init__(layout)
        self._rgb = UprightRGB(layout)

    def __call__(self, frame: "av.VideoFrame") -> LateImage:
        self.resized += not self.fits(frame)
        return LateImage(self._layout.size, partial(self._rgb, frame))


class UprightPlanes(UprightConverter[Planes]):
    """Converter to YUV planes, all in the colour encoding of the first frame."""

    # 8-bit 4:2:0 frames with the matrix of BT.601 or BT.709, as in most files, pass unchanged. Others become BT.709.

    _colours: Colours | None = None

    def __call__(self, frame: "av.VideoFrame") -> Planes:
        own = _colours_of(frame)
        self._colours = self._colours or own or Colours()
        self.resized += not self.fits(frame)
        if own != self._colours or (frame.width, frame.height) != self._layout.square:
            frame = self._converted(frame, self._colours)
        y, u, v = (_samples(plane, self._layout.orientation) for plane in frame.planes)
        return Planes(y, u, v, self._colours)

    def _converted(self, frame: "av.VideoFrame", colours: Colours) -> "av.VideoFrame":
        width, height = self._layout.square
        return self._reformatter.reformat(
            frame,
            width,
            height,
            "yuv420p",
            src_colorspace=None if frame.colorspace in KNOWN_MATRICES else BT709,
            dst_colorspace=colours.matrix,
            dst_color_range=FULL_RANGE if colours.full_range else 1,
            threads=1,
        )


def _samples(plane: "VideoPlane", orientation: Orientation) -> U8:
    """Return one plane as an upright array. The array may share the memory of the frame, and then keeps it alive."""
    rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
    samples = rows[: plane.height, : plane.width]
    return oriented(samples, orientation) if any(orientation) else samples


def _colours_of(frame: "av.VideoFrame") -> Colours | None:
    """Return the colour encoding of a frame's planes; None if the planes cannot be used directly."""
    matrix = SMPTE170M if frame.colorspace == UNSPECIFIED else int(frame.colorspace)  # swscale assumes this matrix too
    if frame.format.name not in DIRECT or matrix not in (BT709, BT470BG, SMPTE170M):
        return None
    return Colours(matrix, frame.format.name == "yuvj420p" or frame.color_range == FULL_RANGE)


def _square_pixels(width: int, height: int, aspect: Fraction | None) -> tuple[int, int]:
    if not aspect or not Fraction(1, 4) <= aspect <= 4:  # 0: unknown; other values: broken header
        return width, height
    if aspect > 1:
        return round(width * aspect), height
    return width, round(height / aspect)


FILTER = "mode=send_frame:deint=interlaced"  # one output frame per input frame; changes only interlaced frames


def deinterlaced(frames: Iterator[av.VideoFrame], time_base: Fraction) -> Iterator[av.VideoFrame]:
    """Yield all frames, interlaced ones deinterlaced, with their time stamps."""
    graph: av.filter.Graph | None = None
    shape: tuple[object, ...] = ()
    for frame in frames:
        seen = (frame.width, frame.height, frame.format.name)
        if graph is not None and shape != seen:
            yield from _filtered(graph, None, time_base)
            graph = None
        if graph is None and frame.interlaced_frame:
            graph, shape = _graph(frame, time_base), seen
        if graph is None:
            yield frame
        else:
            yield from _filtered(graph, frame, time_base)
    if graph is not None:
        yield from _filtered(graph, None, time_base)


def _graph(frame: av.VideoFrame, time_base: Fraction) -> av.filter.Graph:
    graph = av.filter.Graph()
    source = graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=time_base)
    graph.link_nodes(source, graph.add("bwdif", FILTER), graph.add("buffersink")).configure()
    return graph


def _filtered(graph: av.filter.Graph, frame: av.VideoFrame | None, time_base: Fraction) -> Iterator[av.VideoFrame]:
    """Send a frame to the filter, and yield the frames that are ready. A frame of None ends the stream."""
    graph.vpush(frame)
    while True:
        try:
            picture = graph.vpull()
        except (av.BlockingIOError, av.EOFError):
            return
        if picture.pts is not None and picture.time_base is not None:
            picture.pts = round(picture.pts * picture.time_base / time_base)
        yield picture
