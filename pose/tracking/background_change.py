"""Detection of image changes outside the tracked people, to skip detection passes.

A detection pass costs several times as much as tracking one person. With a static camera, most passes would process an
image in which nothing else has changed.
"""

from typing import Any

import cv2
import numpy as np

from pose.structures.types import F32, U8

CELLS = 96  # number along the longer side; the mean over a cell suppresses noise and keeps people visible
SAMPLES_PER_CELL = 6  # pixels along one side of a cell; a mean over all pixels takes ten times as long
MIN_CHANGE = 10.0  # intensity from 0 to 255; compression artefacts and lamp flicker change a cell by less
BOX_MARGIN = 0.15  # fraction of the box size; limbs can leave the box of the previous frame
MAX_SKIP_S = 1.0  # a motionless person who was missed by one pass is detected after this time


class BackgroundChange:
    """Detector of changes since the last detection pass, outside the boxes of the tracked people."""

    def __init__(self) -> None:
        self._reference: F32 | None = None
        self._boxes = np.zeros((0, 4), np.float32)
        self._time = -np.inf

    def detect(self, image: U8, boxes: F32, time: float) -> bool:
        """Return whether a new person may have entered since the last detection pass; True once per second."""
        # `image` then becomes the reference, with which the image outside the tracked people is compared.
        size = _grid_size(image)
        samples: Any = image
        if max(image.shape[:2]) > SAMPLES_PER_CELL * CELLS:
            sampled_size = SAMPLES_PER_CELL * size[0], SAMPLES_PER_CELL * size[1]
            samples = cv2.resize(image, sampled_size, interpolation=cv2.INTER_NEAREST)
        cells = cv2.resize(samples, size, interpolation=cv2.INTER_AREA).astype(np.float32)
        if self._reference is not None and cells.shape == self._reference.shape and time - self._time < MAX_SKIP_S:
            change = np.abs(cells - self._reference).max(axis=2)
            scale = np.array([size[0] / image.shape[1], size[1] / image.shape[0]] * 2)
            for box in np.concatenate([boxes, self._boxes]) * scale:
                _clear(change, box)
            if change.max() < MIN_CHANGE:
                return False
        self._reference, self._boxes, self._time = cells, boxes, time
        return True


def _grid_size(image: U8) -> tuple[int, int]:
    """Return the size (columns, rows) of the grid of cells."""
    height, width = image.shape[:2]
    scale = min(CELLS / max(height, width), 1)
    return max(1, round(width * scale)), max(1, round(height * scale))


def _clear(change: F32, box: F32) -> None:
    """Set the cells of a box (4,), xyxy in cells, and of a margin around it to 0."""
    left, top, right, bottom = box
    across, down = BOX_MARGIN * (right - left) + 1, BOX_MARGIN * (bottom - top) + 1
    rows = slice(max(0, int(top - down)), max(0, int(np.ceil(bottom + down))))
    columns = slice(max(0, int(left - across)), max(0, int(np.ceil(right + across))))
    change[rows, columns] = 0
