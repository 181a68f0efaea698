"""Whether somebody may have come in: has the picture changed where nobody is who is followed already?

A look for newcomers costs several times what a followed person costs. In front of a resting camera most of them would
see the same room again.
"""

from typing import Any

import cv2
import numpy as np

from pose.types import F32, U8

CELLS = 96  # on the longer side of the picture; each is a mean, so noise goes and people stay
SAMPLES = 6  # pixels across a cell that are looked at, where it has more: a mean over all costs ten times as much
DIFFERENCE = 10.0  # of 255; compression and lamps stay below
MARGIN = 0.15  # of a box, around people: limbs reach out of the box of the frame before
LONGEST = 1.0  # s; who stood still when a look missed them is seen at the next one


class Arrivals:
    """Compares the picture with that of the last look."""

    def __init__(self) -> None:
        self._seen: F32 | None = None
        self._people = np.zeros((0, 4), np.float32)
        self._time = -np.inf

    def possible(self, image: U8, people: F32, time: float) -> bool:
        """Whether a look at `image` (H, W, 3) may find somebody new; if so it counts as looked at.

        people: (P, 4) xyxy px, who is followed. time: s.
        """
        size = _cells(image)
        samples: Any = image
        if max(image.shape[:2]) > SAMPLES * CELLS:
            samples = cv2.resize(image, (SAMPLES * size[0], SAMPLES * size[1]), interpolation=cv2.INTER_NEAREST)
        shown = cv2.resize(samples, size, interpolation=cv2.INTER_AREA).astype(np.float32)
        if self._seen is not None and shown.shape == self._seen.shape and time - self._time < LONGEST:
            change = np.abs(shown - self._seen).max(axis=2)
            scale = np.array([size[0] / image.shape[1], size[1] / image.shape[0]] * 2)
            for box in np.concatenate([people, self._people]) * scale:
                _clear(change, box)
            if change.max() < DIFFERENCE:
                return False
        self._seen, self._people, self._time = shown, people, time
        return True


def _cells(image: U8) -> tuple[int, int]:
    height, width = image.shape[:2]
    scale = min(CELLS / max(height, width), 1)
    return max(1, round(width * scale)), max(1, round(height * scale))


def _clear(change: F32, box: F32) -> None:
    """Set the cells of a box (4,) xyxy and of a margin around it to 0."""
    left, top, right, bottom = box
    across, down = MARGIN * (right - left) + 1, MARGIN * (bottom - top) + 1
    rows = slice(max(0, int(top - down)), max(0, int(np.ceil(bottom + down))))
    columns = slice(max(0, int(left - across)), max(0, int(np.ceil(right + across))))
    change[rows, columns] = 0
