"""Detection of hard cuts, after which all people get new ids.

Three measures compare an image with the previous one: the fraction of cells that keep their brightness, the correlation
of the cells at the best shift, and the overlap of the colour histograms. Within a scene, a person who fills the image,
a flash or a pan lowers one or two of them. A cut lowers all three. A cut to another camera in the same room keeps the
colours, but lowers the other two more than a pan does.
"""

import cv2
import numpy as np

from pose.structures.types import F32, U8

CELLS = 32  # number along the longer side; the value of a cell is the mean of its pixels
MAX_SHIFT_CELLS = 4  # largest shift between two frames by a pan or camera shake
MIN_CORRELATION = 0.75  # minimum correlation of two frames of one scene, at the best shift
CERTAIN_CUT_CORRELATION = 0.45  # less is a cut, see below; frames of a pan 1/3 s apart have 0.56
MIN_COLOUR_OVERLAP = 0.8  # minimum overlap of the colour histograms of two frames of one scene
MIN_UNCHANGED_FRACTION = 0.4  # minimum fraction of the cells that keep their brightness within one scene
CERTAIN_CUT_UNCHANGED_FRACTION = 0.2  # below both limits, it is a cut whatever the colours
MAX_UNCHANGED_DIFFERENCE = 8  # brightness from 0 to 255, largest difference of a cell that counts as unchanged
COLOUR_BINS = 32  # number along each of two colour axes
_SAMPLES_PER_CELL = 8  # pixels along one side of a cell, in images with at least twice as many
_MIN_BRIGHTNESS = 20  # from 0 to 255; a darker cell counts as black
_MIN_CONTRAST = 2.0  # standard deviation of the brightness; a blank image has less and is not compared


class CutDetector:
    """Detector of hard cuts, which compares each image with the previous one."""

    def __init__(self) -> None:
        self._cells: F32 | None = None
        self._small = np.zeros((0, 0, 3), np.uint8)

    def is_cut(self, image: U8) -> bool:
        """Return whether `image`, (H, W, 3) uint8 RGB, begins another scene. Call this with every image, in order."""
        height, width = image.shape[:2]
        scale = CELLS / max(height, width)
        size = max(1, round(width * scale)), max(1, round(height * scale))
        small = _resized(_sampled(image, size), size)
        cells = cv2.cvtColor(small, cv2.COLOR_RGB2GRAY).astype(np.float32)
        before, small_before = self._cells, self._small
        if cv2.meanStdDev(cells)[1][0, 0] < _MIN_CONTRAST:
            return False
        self._cells, self._small = cells, small
        if before is None or before.shape != cells.shape:
            return False
        unchanged = _unchanged_fraction(before, cells)
        if unchanged >= MIN_UNCHANGED_FRACTION or (correlation := _correlation(before, cells)) >= MIN_CORRELATION:
            return False
        if unchanged < CERTAIN_CUT_UNCHANGED_FRACTION and correlation < CERTAIN_CUT_CORRELATION:
            return True
        overlap = np.minimum(_colour_histogram(small), _colour_histogram(small_before)).sum()
        return float(overlap) < MIN_COLOUR_OVERLAP


def _sampled(image: U8, cells: tuple[int, int]) -> U8:
    """Return a regular sample of the pixels, which is averaged much faster than a large image."""
    if max(image.shape[:2]) < 2 * CELLS * _SAMPLES_PER_CELL:
        return image
    size = _SAMPLES_PER_CELL * cells[0], _SAMPLES_PER_CELL * cells[1]
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_NEAREST), np.uint8)


def _resized(image: U8, size: tuple[int, int]) -> U8:
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)


def _colour_histogram(small: U8) -> F32:
    """Return a normalised histogram (COLOUR_BINS^2,) of CIELAB's a and b axes, which hardly depend on brightness."""
    lab = cv2.cvtColor(small, cv2.COLOR_RGB2LAB)
    counts = cv2.calcHist([lab], [1, 2], None, [COLOUR_BINS, COLOUR_BINS], [0, 256, 0, 256])
    blurred = cv2.GaussianBlur(counts, (5, 5), 1.0).ravel()
    return np.asarray(blurred / max(float(blurred.sum()), 1e-6), np.float32)


def _unchanged_fraction(before: F32, now: F32) -> float:
    """Return the fraction of cells that keep their brightness. Cells that stay black (letterbox bars) are ignored."""
    not_black = (before > _MIN_BRIGHTNESS) | (now > _MIN_BRIGHTNESS)
    return float((np.abs(now - before)[not_black] < MAX_UNCHANGED_DIFFERENCE).mean()) if not_black.any() else 1.0


def _correlation(before: F32, now: F32) -> float:
    """Return the largest correlation of the cells of two images over all shifts of at most MAX_SHIFT_CELLS."""
    rows, columns = (min(MAX_SHIFT_CELLS, (side - 1) // 3) for side in now.shape)
    inner = now[rows : now.shape[0] - rows or None, columns : now.shape[1] - columns or None]
    return float(cv2.matchTemplate(before, np.ascontiguousarray(inner), cv2.TM_CCOEFF_NORMED).max())
