"""The line below a picture's people: the time, and which colour is whose left and right."""

import cv2
import numpy as np

from pose.types import U8
from pose.view import draw
from pose.view.colours import INK, PAPER, SIDE_COLOURS

_HEIGHT = 10.0  # px of its capitals where the unit is 1
_LEAST = 7.0  # px; smaller ones cannot be read
_OPACITY = 0.62  # of the ground they stand on
_LONGEST = "00:00.00"


class Legend:
    """Lies in the lower left corner of pictures of one size. width, height: px that it takes there; 0 where it has
    no room.
    """

    def __init__(self, size: tuple[int, int], unit: float) -> None:
        """size: (width, height) px. unit: 1 for a picture of 1280 x 720, what everything on it is scaled with."""
        letters = max(_LEAST, _HEIGHT * unit)
        gap = round(0.9 * letters)
        clock = draw.text_width(_LONGEST, letters) + 2 * gap
        words = [draw.text_width(side, letters) for side in ("left", "right")]
        swatch = round(1.6 * letters)
        width = clock + sum(words) + 2 * swatch + 4 * gap
        height = round(2.4 * letters)
        fits = width < size[0] and height < size[1] / 3
        self.width, self.height = (width, height) if fits else (0, 0)
        self._letters, self._gap = letters, gap
        self._ink = np.zeros((height, width, 3), np.uint8)
        self._ink[:] = INK
        x = clock
        for side, word in zip(("left", "right"), words, strict=True):
            top, low = round(0.5 * (height - 0.6 * letters)), round(0.5 * (height + 0.6 * letters))
            self._ink[top:low, x : x + swatch] = SIDE_COLOURS[side]
            draw.text(self._ink, side, (x + swatch + 0.7 * gap, height / 2), letters, PAPER)
            x += swatch + word + 2 * gap

    def paste(self, image: U8, time: float) -> None:
        """Draw it on `image`, a frame of `time` s. In place."""
        if not self.height:
            return
        rows, columns = self.height, self.width
        patch = image[-rows:, :columns]
        line = self._ink.copy()
        draw.text(line, clock(time), (self._gap, rows / 2), self._letters, PAPER)
        ground = cv2.addWeighted(line, _OPACITY, patch, 1 - _OPACITY, 0)
        np.maximum(ground, line, out=patch)  # letters and swatches stay opaque


def clock(time: float) -> str:
    """Seconds as minutes and seconds, 1:05.20, with hours where there are some."""
    hundredths = round(max(time, 0.0) * 100)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}:{minutes:02d}" if hours else str(minutes)
    return f"{start}:{rest // 100:02d}.{rest % 100:02d}"
