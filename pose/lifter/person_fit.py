"""The fit of a person's motion to the 2D while a video goes by, in bounded memory: `pose.fit.windows.fit_motion`."""

import numpy as np

from pose.camera import Camera
from pose.fit.windows import MotionFit, next_window, window_end
from pose.lifter.pending import PersonFrame, lifted_sequence, seen_sequence
from pose.skeletons import Skeleton


class PersonFit:
    """Fits the frames of one person, which have constant bones, window by window."""

    def __init__(self, skeleton: Skeleton, camera: Camera) -> None:
        self._skeleton, self._camera = skeleton, camera
        self._fit = MotionFit()
        self._waiting: list[PersonFrame] = []  # from the first of the window on

    def push(self, frames: list[PersonFrame]) -> list[PersonFrame]:
        """Take the next frames; return those that are final now, oldest first."""
        self._waiting += frames
        final: list[PersonFrame] = []
        while self._waiting:
            times = np.array([frame.time for frame in self._waiting])
            end = window_end(times, 0)
            if end == len(times):
                break
            final += self._fitted(end, next_window(times, 0))
        return final

    def end(self) -> list[PersonFrame]:
        """No frame follows: fit the rest."""
        return self._fitted(len(self._waiting), len(self._waiting)) if self._waiting else []

    def _fitted(self, end: int, final: int) -> list[PersonFrame]:
        """Fit the first `end` frames as one window and take the first `final` of them."""
        window = self._waiting[:end]
        seen = seen_sequence(window, self._camera, self._skeleton)
        answer = self._fit.window(lifted_sequence(window), seen)
        taken, self._waiting = self._waiting[:final], self._waiting[final:]
        for frame, *parts in zip(taken, answer.joints, answer.root, answer.sigma, strict=False):
            frame.lifted = np.concatenate([part.ravel() for part in parts])
        return taken
