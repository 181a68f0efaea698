"""Frames in which the detector runs: at intervals, and where the image changes outside the tracked people.

A detection pass costs several times as much as tracking one person. The detector runs when no person is tracked, when
one was lost, while people touch, and at an interval if a new person may have entered.

A detection pass costs several times as much as tracking one person. With a static camera, most passes would process an
image in which nothing else has changed.
"""

from typing import Any

import cv2
import numpy as np

from pose.networks import crops
from pose.structures.types import F32, U8
from pose.tracking.observations import PersonTrack
from pose.tracking.person_state import MIN_TOUCHING_IOU

CROWD = 4  # people of whom some touch: the detector runs on every frame, since regions drift to neighbours
TOUCHING_INTERVAL_S = 0.1  # maximum time between two detection passes while people touch


class DetectionSchedule:
    """Schedule of the detection passes."""

    def __init__(self, interval_s: float, memory_s: float) -> None:
        """Set the intervals: between passes (0: every frame), and of search after a loss. A pass is due at once."""
        self._interval = interval_s
        self._memory = memory_s
        self.reset()

    def reset(self) -> None:
        """Start again, for a new scene."""
        self._next = self._last_loss = -np.inf
        self._change = BackgroundChange()

    def is_due(self, image: U8, tracks: list[PersonTrack], boxes: F32, time: float) -> bool:
        """Return whether the detector has to run on this frame, for the tracks and boxes (P, 4) of the previous one."""
        crowded = len(tracks) >= CROWD and bool((crops.box_iou(boxes, boxes) > MIN_TOUCHING_IOU).sum() > len(boxes))
        if tracks and time < self._next and not crowded:
            return False
        touching = any(track.occluders for track in tracks)
        if crowded or touching or self._interval == 0 or self._is_searching(time):
            return True
        self._next = time + self._interval
        return self._change.detect(image, boxes, time)

    def record_loss(self, time: float) -> None:
        """Record that a track was lost at `time` (s)."""
        self._last_loss = time

    def record_frame(self, tracks: list[PersonTrack], detected: bool, time: float) -> None:
        """Plan the next detection pass after a frame."""
        if detected:
            self._next = time if self._is_searching(time) else time + self._interval
        if any(track.occluders for track in tracks):
            self._next = min(self._next, time + TOUCHING_INTERVAL_S)

    def _is_searching(self, time: float) -> bool:
        return bool(time - self._last_loss < self._memory)


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
