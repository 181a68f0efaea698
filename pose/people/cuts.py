"""Hard cuts: does this picture show another scene than the one before? Nobody keeps an id across one.

A person who fills the picture and jumps changes much of it, a lamp or a flash its brightness, and a pan all of its
places; none of them changes places and colours at once, as another scene does.
"""

import cv2
import numpy as np

from pose.types import F32, U8

SIDE = 32  # cells along the longer side; each is the mean of its pixels
SEARCH = 4  # cells that a pan or a shake may move the picture by between two frames
ALIKE = 0.75  # correlation of the cells at the best such shift; two frames of a scene are above
COLOURS = 0.8  # overlap of the histograms of colours; two frames of a scene are above
KEPT = 0.4  # of the cells that are not black, as bright as before: less than so many are after a cut
SAME = 8  # of 255
BINS = 8  # of each of two colour axes
_SAMPLES = 8  # pixels across a cell that are looked at, where it has twice as many
_BLACK = 20  # of 255
_LEAST_CONTRAST = 2.0  # of 255; a picture without is black, and shows no scene


class Cuts:
    """Compares every picture with the one before."""

    def __init__(self) -> None:
        self._cells: F32 | None = None
        self._small = np.zeros((0, 0, 3), np.uint8)

    def found(self, image: U8) -> bool:
        """Whether `image` (H, W, 3), RGB, begins another scene. Pictures come in order."""
        height, width = image.shape[:2]
        scale = SIDE / max(height, width)
        size = max(1, round(width * scale)), max(1, round(height * scale))
        small = _resized(_sampled(image, size), size)
        cells = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY).astype(np.float32)
        before, small_before = self._cells, self._small
        if cv2.meanStdDev(cells)[1][0, 0] < _LEAST_CONTRAST:
            return False
        self._cells, self._small = cells, small
        if before is None or before.shape != cells.shape or _kept(before, cells) >= KEPT:
            return False
        if float(np.minimum(_colours(small), _colours(small_before)).sum()) >= COLOURS:
            return False
        return _correlation(before, cells) < ALIKE


def _sampled(image: U8, cells: tuple[int, int]) -> U8:
    """A few thousand pixels that stand for all, and cost next to nothing: as many for each cell."""
    if max(image.shape[:2]) < 2 * SIDE * _SAMPLES:
        return image
    size = _SAMPLES * cells[0], _SAMPLES * cells[1]
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_NEAREST), np.uint8)


def _resized(image: U8, size: tuple[int, int]) -> U8:
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def _colours(small: U8) -> F32:
    """(BINS * BINS) share of the cells in each bin of hue and saturation, which brightness does not change much."""
    lab = cv2.cvtColor(small, cv2.COLOR_RGB2LAB)
    found = cv2.calcHist([lab], [1, 2], None, [BINS * 4, BINS * 4], [0, 256, 0, 256])
    blurred = cv2.GaussianBlur(found, (5, 5), 1.0).ravel()
    return np.asarray(blurred / max(float(blurred.sum()), 1e-6), np.float32)


def _kept(before: F32, now: F32) -> float:
    """The share of the cells that stayed as they were; black ones, as bars above and below have, do not count."""
    shown = (before > _BLACK) | (now > _BLACK)
    return float((np.abs(now - before)[shown] < SAME).mean()) if shown.any() else 1.0


def _correlation(before: F32, now: F32) -> float:
    """Of two pictures' cells, at the shift by at most SEARCH cells where they agree best."""
    rows, columns = (min(SEARCH, (side - 1) // 3) for side in now.shape)
    inner = now[rows : now.shape[0] - rows or None, columns : now.shape[1] - columns or None]
    return float(cv2.matchTemplate(before, np.ascontiguousarray(inner), cv2.TM_CCOEFF_NORMED).max())
