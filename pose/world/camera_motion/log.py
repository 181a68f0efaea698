"""Collection of a run's background: its motion, from which the camera path is estimated, and its straight lines."""

from dataclasses import replace

import numpy as np

from pose.structures.types import F32, F64, Background, Flags, People
from pose.world.camera_motion.focal import focal_ratios, rescaled
from pose.world.camera_motion.path import CameraPath, find_path
from pose.world.camera_motion.verdict import CameraMotion, classify


class MotionLog:
    """Background of the frames of a run; a few hundred bytes per frame.

    Attributes:
        segments: Time in s, and ends (L, 2, 2) px of the line segments, of each frame in which they were found.
    """

    def __init__(self) -> None:
        self.segments: list[tuple[float, F32]] = []
        self._times: list[float] = []
        self._indices: list[int] = []
        self._peopled: list[bool] = []
        self._cuts: list[int] = []
        self._measured: list[tuple[int, Background]] = []

    def add(self, people: People) -> None:
        """Add the next frame of the run."""
        if people.cut:
            self._cuts.append(len(self._times))
        if people.background is not None:
            self._measured.append((len(self._times), people.background))
        if people.segments is not None:
            self.segments.append((people.time, people.segments))
        self._times.append(people.time)
        self._indices.append(people.index)
        self._peopled.append(len(people) > 0)

    @property
    def measured(self) -> bool:
        """Whether the background of any frame was measured."""
        return bool(self._measured)

    @property
    def peopled(self) -> bool:
        """Whether any frame contains people."""
        return any(self._peopled)

    @property
    def with_people(self) -> Flags:
        """Whether each frame (F,) contains people."""
        return np.array(self._peopled, bool)

    @property
    def times(self) -> F64:
        """Times (F,) of the frames, s."""
        return np.array(self._times)

    @property
    def begins(self) -> list[float]:
        """Start of each scene, s."""
        return [self._times[row] for row in dict.fromkeys([0, *self._cuts])] if self._times else []

    def solve(self, assumed_focal: bool = False) -> tuple[CameraPath, CameraMotion]:
        """Estimate the camera path over all frames, at least one, and classify the camera motion."""
        times, peopled = np.array(self._times), np.array(self._peopled)
        path = find_path(times, self._indices, self._cuts, self._measured)
        motion = classify(path, self._measured, peopled)
        ratios = focal_ratios(path, motion) if assumed_focal else {}
        if not ratios:
            return path, motion
        scenes = path.scenes
        path = find_path(times, self._indices, self._cuts, rescaled(self._measured, scenes.tolist(), ratios))
        path = replace(path, zooms=path.zooms * [ratios.get(scene, 1.0) for scene in scenes.tolist()])
        return path, classify(path, self._measured, peopled)
