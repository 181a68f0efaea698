"""Collects the results of a run for the estimate of the camera's motion."""

import numpy as np

from pose.camera_motion.path import CameraPath, find_path
from pose.camera_motion.verdict import CameraMotion, judge
from pose.types import Background, People


class MotionLog:
    """The backgrounds of a run's frames, a few hundred bytes each."""

    def __init__(self) -> None:
        self._times: list[float] = []
        self._indices: list[int] = []
        self._peopled: list[bool] = []
        self._cuts: list[int] = []
        self._measured: list[tuple[int, Background]] = []

    def add(self, people: People) -> None:
        """Add a frame."""
        if people.cut:
            self._cuts.append(len(self._times))
        if people.background is not None:
            self._measured.append((len(self._times), people.background))
        self._times.append(people.time)
        self._indices.append(people.index)
        self._peopled.append(len(people) > 0)

    @property
    def measured(self) -> bool:
        """Whether any frame was measured."""
        return bool(self._measured)

    @property
    def peopled(self) -> bool:
        """Whether any frame contains people."""
        return any(self._peopled)

    def solve(self) -> tuple[CameraPath, CameraMotion]:
        """The camera path over all frames, at least one, and its classification."""
        path = find_path(np.array(self._times), self._indices, self._cuts, self._measured)
        return path, judge(path, self._measured, np.array(self._peopled))
