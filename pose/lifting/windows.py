"""Frame-by-frame input for an offline lifter: frames of one person are collected and lifted in overlapping windows.

Memory is bounded, whatever the length of the video. The results equal those of `pose.lifting.predict.Lifter.lift`.
"""

import numpy as np

from pose.lifting.blending import Blend
from pose.lifting.pending import PersonFrame, keypoint_sequence
from pose.lifting.predict import Lifter
from pose.structures.camera import Camera
from pose.structures.gaps import MAX_TRACK_GAP_S
from pose.structures.skeletons import Skeleton


class PersonWindows:
    """Buffer that lifts one person's frames in overlapping, blended windows, again after gaps over MAX_TRACK_GAP_S."""

    def __init__(self, lifter: Lifter, skeleton: Skeleton, camera: Camera) -> None:
        self._lifter, self._skeleton, self._camera = lifter, skeleton, camera
        self._begin()

    def _begin(self) -> None:
        self._waiting: list[PersonFrame] = []  # frames from the first that is not final
        self._windows = self._lifter.windows
        self._blend: Blend | None = None  # until the frame rate is known
        self._start = 0  # index in the track of the first waiting frame
        self._fresh = 0  # number of frames that no window has contained yet

    def push(self, frame: PersonFrame) -> list[PersonFrame]:
        """Add a frame; returns those that are lifted now, oldest first."""
        away = bool(self._waiting) and frame.time - self._waiting[-1].time > MAX_TRACK_GAP_S
        lifted = self.end() if away else []
        self._waiting.append(frame)
        self._fresh += 1
        if self._blend is None and len(self._waiting) == self._windows.size:
            self._blend = self._start_blend()
        if len(self._waiting) == self._windows.size and self._fresh >= self._windows.hop:
            lifted += self._lift(self._windows.hop)
        return lifted

    def _start_blend(self) -> Blend:
        self._windows = self._windows.at_rate_of(np.array([frame.time for frame in self._waiting]))
        return Blend(self._windows, self._windows.size + self._windows.hop)

    def end(self) -> list[PersonFrame]:
        """Lift and return the remaining frames."""
        lifted = self._lift(len(self._waiting))
        self._begin()
        return lifted

    def _lift(self, count: int) -> list[PersonFrame]:
        """Lift the waiting frames as one window and take the first `count`, which no later window contains."""
        self._blend = self._blend or self._start_blend()
        if self._fresh:
            sequence = keypoint_sequence(self._waiting, self._camera, self._skeleton)
            self._blend.add(self._start, self._lifter.forward_mirrored([sequence])[0])
            self._fresh = 0
        lifted, self._waiting = self._waiting[:count], self._waiting[count:]
        for frame, output in zip(lifted, self._blend.take(count), strict=True):
            frame.lifted = output
        self._start += count
        return lifted
