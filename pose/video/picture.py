"""Decoded pictures of any format -> upright RGB arrays of one size."""

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pose.types import U8

if TYPE_CHECKING:
    import av

Turn = tuple[bool, bool, bool]  # transpose, then mirror left-right, then mirror top-bottom


def turn_of(matrix: bytes | None) -> Turn:
    """What a display matrix asks for, to the nearest of the eight ways a picture can lie.

    matrix: nine int32 [a b u; c d v; x y w], which show pixel (p, q) at (a p + c q, b p + d q), y down
    (ISO/IEC 14496-12, track header).
    """
    if matrix is None:
        return False, False, False
    a, b, _, c, d, *_ = np.frombuffer(matrix, np.int32).tolist()
    if abs(a) >= abs(b):
        return False, a < 0, d < 0
    return True, c < 0, b < 0


def turned(image: U8, turn: Turn) -> U8:
    """The picture as it should be seen, as a contiguous array."""
    if turn == (False, False, False):
        return np.ascontiguousarray(image)
    import cv2  # several times faster than NumPy at transposing pixels

    transpose, mirror_x, mirror_y = turn
    picture: Any = image
    if transpose:
        picture = cv2.transpose(picture)
    if mirror_x or mirror_y:
        picture = cv2.flip(picture, {(True, False): 1, (False, True): 0, (True, True): -1}[mirror_x, mirror_y])
    return picture


class UprightRGB:
    """Converts the frames of one stream; the first one decides size and orientation.

    Colour matrix and range are the frame's own. Pixels that are not square are stretched, never shrunk. A later frame
    of another size (a stream that adapts to its network) is scaled to the first one's and counted in `resized`.
    """

    def __init__(self, first: "av.VideoFrame", aspect: Fraction | None) -> None:
        from av.video.reformatter import VideoReformatter

        self._reformatter = VideoReformatter()  # one for all frames: it keeps its tables
        self._coded = (first.width, first.height)
        matrix: Any = first.side_data.get("DISPLAYMATRIX")
        self._turn = turn_of(None if matrix is None else bytes(matrix))
        self._scaled = _square_pixels(first.width, first.height, aspect)
        self.resized = 0

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels of what comes out."""
        width, height = self._scaled
        return (height, width) if self._turn[0] else (width, height)

    def __call__(self, frame: "av.VideoFrame") -> U8:
        """(H, W, 3) uint8 RGB, upright, contiguous."""
        self.resized += (frame.width, frame.height) != self._coded
        width, height = self._scaled
        # One thread: below 4K the slices cost more than they save, and the decoder uses the other cores.
        image: Any = self._reformatter.reformat(frame, width, height, "rgb24", threads=1).to_ndarray()
        return turned(image, self._turn)


def _square_pixels(width: int, height: int, aspect: Fraction | None) -> tuple[int, int]:
    if not aspect or not Fraction(1, 4) <= aspect <= 4:  # 0: unknown; further out: a broken header
        return width, height
    if aspect > 1:
        return round(width * aspect), height
    return width, round(height / aspect)
