"""Fit of one person's motion to the 2D during a video, in bounded memory; see `pose.lifting.fit.windows.fit_motion`."""

import numpy as np

from pose.lifting.fit.directions import BoneDirections
from pose.lifting.fit.log import FitLog
from pose.lifting.fit.windows import MotionFit, first_window
from pose.lifting.pending import PersonFrame, keypoint_sequence, lifted_sequence
from pose.structures.camera import Camera
from pose.structures.skeletons import Skeleton


class PersonFit:
    """Step that fits the 3D motion of one person to the 2D, window by window. Bone lengths must be constant already."""

    def __init__(
        self,
        skeleton: Skeleton,
        camera: Camera,
        log: FitLog | None = None,
        directions: BoneDirections | None = None,
    ) -> None:
        self._skeleton, self._camera = skeleton, camera
        self._fit = MotionFit(log, directions)
        self._waiting: list[PersonFrame] = []  # frames from the start of the window

    def push(self, frames: list[PersonFrame]) -> list[PersonFrame]:
        """Add frames; returns those that are final now, oldest first."""
        self._waiting += frames
        return self._fitted(ended=False)

    def end(self) -> list[PersonFrame]:
        """Fit the remaining frames at the end of the track."""
        return self._fitted(ended=True)

    def _fitted(self, ended: bool) -> list[PersonFrame]:
        """Fit the windows that are complete; return their final frames."""
        taken: list[PersonFrame] = []
        while self._waiting:
            window = first_window(np.array([frame.time for frame in self._waiting]), ended)
            if window is None:
                break
            end, final = window
            frames = self._waiting[:end]
            seen = keypoint_sequence(frames, self._camera, self._skeleton)
            fitted = self._fit.window(lifted_sequence(frames), seen, final)
            for frame, *parts in zip(frames[:final], fitted.joints, fitted.root, fitted.sigma, strict=False):
                frame.lifted = np.concatenate([part.ravel() for part in parts])
            taken += frames[:final]
            del self._waiting[:final]
        return taken
