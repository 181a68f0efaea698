"""Legend at the bottom of a frame, with the time and the colours of left and right."""

from collections.abc import Callable

import cv2
import numpy as np

from pose.structures.colours import INK, PAPER, RGB, SIDE_COLOURS
from pose.view import draw
from pose.view.draw import Canvas

_HEIGHT = 10.0  # px, height of the capitals for unit 1
_MIN_HEIGHT = 7.0  # px; smaller text is not legible
_OPACITY = 0.62  # opacity of the background
_WIDEST_TIME = "00:00.00"
SIDES = ("left", "right")


class Legend:
    """Legend in the lower left corner of images of one size; of size 0 if the image is too small."""

    def __init__(self, size: tuple[int, int], unit: float, code: Callable[[RGB], RGB] = draw.as_rgb) -> None:
        """Compute the layout; `unit` is 1 for 1280 x 720, `code` converts an RGB colour to the values of a pixel."""
        letters = max(_MIN_HEIGHT, _HEIGHT * unit)
        gap = round(0.9 * letters)
        words = [draw.text_width(side, letters) for side in SIDES]
        self._swatch = round(1.6 * letters)
        self._starts = [draw.text_width(_WIDEST_TIME, letters) + 2 * gap]  # px, left edges of the colour samples
        for word in words:
            self._starts.append(self._starts[-1] + self._swatch + word + 2 * gap)
        width, height = self._starts[-1], round(2.4 * letters)
        fits = width < size[0] and height < size[1] / 3
        self.width, self.height = (width, height) if fits else (0, 0)
        self._letters, self._gap = letters, gap
        self._ground = np.empty((height, width, 3), np.uint8)
        self._ground[:] = code(INK)

    def draw(self, canvas: Canvas, time: float) -> None:
        """Draw the legend with the time (s) of the frame."""
        if not self.height:
            return
        patch, letters, middle = canvas.pixels[-self.height :, : self.width], self._letters, self.height / 2
        cv2.addWeighted(self._ground, _OPACITY, patch, 1 - _OPACITY, 0, dst=patch)
        line = canvas._replace(pixels=patch)
        draw.text(line, clock(time), (self._gap, middle), letters, PAPER)
        top, low = round(middle - 0.3 * letters), round(middle + 0.3 * letters)
        for side, x in zip(SIDES, self._starts, strict=False):
            patch[top:low, x : x + self._swatch] = canvas.code(SIDE_COLOURS[side])
            draw.text(line, side, (x + self._swatch + 0.7 * self._gap, middle), letters, PAPER)


def clock(time: float) -> str:
    """Format seconds as minutes and seconds, 1:05.20, with hours if there are any."""
    hundredths = round(max(time, 0.0) * 100)
    minutes, rest = divmod(hundredths, 6000)
    hours, minutes = divmod(minutes, 60)
    start = f"{hours}:{minutes:02d}" if hours else str(minutes)
    return f"{start}:{rest // 100:02d}.{rest % 100:02d}"
