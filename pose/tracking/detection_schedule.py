"""Schedule of the frames in which the detector runs.

A detection pass costs several times as much as tracking one person. The detector runs when no person is tracked, when
one was lost, while people touch, and at an interval if a new person may have entered.
"""

import numpy as np

from pose.networks import crops
from pose.structures.types import F32, U8
from pose.tracking.background_change import BackgroundChange
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
