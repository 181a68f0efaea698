"""Collection of a run's background: its motion, from which the camera path is estimated, and its straight lines.

Images of a rotating camera determine its focal length (R. Hartley, "Self-calibration from multiple views with a
rotating camera", ECCV 1994). Each comparison of `pose.world.camera_motion.parallax` estimates it. The result is used
where the estimates agree and differ clearly from the assumed focal length. If the camera translates in proportion to
its rotation, the estimates agree on a wrong value. Standing feet must therefore support the path
(`CameraMotion.certain`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from pose.structures.types import F32, F64, Background, Flags, People
from pose.world.camera_motion.path import CameraPath, find_path
from pose.world.camera_motion.verdict import ROTATING, CameraMotion, agree_on_focal, classify


class MotionLog:
    """Background of the frames of a run; a few hundred bytes per frame."""

    def __init__(self) -> None:
        # time in s, and ends (L, 2, 2) px of the line segments, of each frame in which they were found
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


_MIN_LOG_RATIO = 0.12  # a slow translation may cause smaller differences
_MIN_TURN_DEGREES = 8.0


def focal_ratios(path: CameraPath, motion: CameraMotion) -> dict[int, float]:
    """Return measured / assumed focal length by scene number, where rotation shows that the assumed one is wrong."""
    scenes = {scene.number: scene.motion for scene in motion.scenes} or {int(path.scenes[0]): motion}
    return {number: scene.focal_ratio for number, scene in scenes.items() if _determined(scene)}


def _determined(motion: CameraMotion) -> bool:
    apart = abs(float(np.log(motion.focal_ratio)))
    turned = max(motion.pan, motion.tilt) > _MIN_TURN_DEGREES
    agrees = agree_on_focal(motion.focal_ratio, motion.focal_sigma)
    return motion.kind == ROTATING and apart > _MIN_LOG_RATIO and agrees and turned


def rescaled(
    measured: Sequence[tuple[int, Background]], scenes: Sequence[int], ratios: Mapping[int, float]
) -> list[tuple[int, Background]]:
    """Convert backgrounds to other focal lengths (ratio by scene): the displacements in px give other rotations."""
    return [(at, _rescaled(background, ratios.get(int(scenes[at]), 1.0))) for at, background in measured]


def _rescaled(background: Background, ratio: float) -> Background:
    links = background.links.copy()
    angles = np.linalg.norm(links[:, 1:3], axis=1, keepdims=True)
    safe = np.maximum(angles, 1e-9)
    links[:, 1:3] *= np.arctan(np.tan(safe) / ratio) / safe
    return replace(background, links=links)
