"""World coordinates of a live stream while its camera does not translate."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from pose.results import WorldInfo
from pose.structures.camera import Camera
from pose.structures.skeletons import Skeleton, to_h36m17
from pose.structures.types import F64, FrameResult
from pose.world import frame
from pose.world.camera_motion.fit import IDENTITY_VIEW, View
from pose.world.camera_motion.verdict import ROTATING, TRANSLATING, UNKNOWN
from pose.world.camera_motion.watch import CameraWatch
from pose.world.clean import Steps
from pose.world.footing import LiveFooting
from pose.world.gravity import ANKLES
from pose.world.live import LiveWorld
from pose.world.live_ground import ShownScene
from pose.world.measured import DepthImages, MeasuredPose, floor_normal, measure_people, scaled_matrix
from pose.world.rules import FLOOR

_NO_WORLD = (TRANSLATING, UNKNOWN)
_MIN_FLOORS, _MAX_TRIES = 5, 60  # depth images with a floor from which the vertical follows, and images searched
_MOTION_TEXTS = {
    ROTATING: "camera turns, compensated",
    TRANSLATING: "camera moves: no world",
    UNKNOWN: "camera motion unknown: no world (--camera fixed if it is static)",
}


@dataclass(frozen=True, slots=True)
class PlacedScene:
    """What the newest estimate of a frame says about its scene."""

    world: LiveWorld  # that placed the people of the frame
    view: View  # of the camera
    measured: Mapping[int, MeasuredPose] | None  # see `LiveWorld.place`
    shown: ShownScene


class RefinedWorld:
    """World coordinates of refined poses, in the scenes of their frames' newest estimates."""

    def __init__(self) -> None:
        self._source: LiveWorld | None = None  # that placed the newest estimate of the last frame
        self._world: LiveWorld | None = None

    def place(
        self, result: FrameResult, skeleton: Skeleton, scene: PlacedScene | None
    ) -> tuple[FrameResult, WorldInfo | None]:
        """Return the refined frame and its world, as `WatchedWorld.place`, in the scene of the frame, if it has one."""
        if scene is None:
            return result, None
        if self._world is None or self._source is not scene.world:
            self._source, self._world = scene.world, scene.world.follower()
        placed = self._world.place(result, skeleton, scene.view, scene.measured, scene.shown)
        return placed, WorldInfo(self._world.world, self._world.heights)


class WatchedWorld:
    """World coordinates of a live stream from one camera, which may rotate."""

    # There are none while the camera changes its position, or its motion is unknown. When it stops, new ones begin.

    def __init__(
        self, camera: Camera, steps: Steps, watch: CameraWatch | None, depth: DepthImages | None = None
    ) -> None:
        """Start without frames; without a `watch` the camera is assumed static."""
        self._camera, self._steps, self._watch, self._depth = camera, steps, watch, depth
        self._floors: list[F64] = []  # normals (3,) of the floor in the first depth images
        self._tries = 0  # depth images in which the floor was searched
        self._world, self._feet = self._new_world(), LiveFooting()
        self._has_frames = False
        self.scene: PlacedScene | None = None  # of the last frame; None without a world

    @property
    def has_depth(self) -> bool:
        """Whether depth images belong to the stream."""
        return self._depth is not None

    @property
    def motion(self) -> str:
        """State of the camera motion: "static", "rotating", "translating", "unknown"; empty if assumed static."""
        # The motion of the feet (`LiveFooting.result`) has precedence over that of the image (`CameraWatch.state`).
        return "" if self._watch is None else self._feet.result or self._watch.state

    def place(self, result: FrameResult, skeleton: Skeleton) -> tuple[FrameResult, WorldInfo | None]:
        """Return the frame with world positions in `placed` and its world; unchanged and None without a world."""
        self.scene, view = None, IDENTITY_VIEW
        if self._watch is None:
            measured = self._measured(result, view)
            placed = self._world.place(result, skeleton, measured=measured)
        else:
            people = result.people
            view = self._watch.update(people.background, people.index, people.time, people.cut)
            if self._has_frames and (people.cut or self._watch.state in _NO_WORLD):
                self._restart()
            if self._watch.state in _NO_WORLD:
                return result, None
            measured = self._measured(result, view)
            placed = self._world.place(result, skeleton, view, measured)
            if self._feet_contradict(placed, skeleton):
                self._has_frames = True
                return result, None
        self._has_frames = True
        self.scene = PlacedScene(self._world, view, measured, self._world.shown)
        return placed, WorldInfo(self._world.world, self._world.heights)

    def _measured(self, result: FrameResult, view: View) -> Mapping[int, MeasuredPose] | None:
        """Return what the depth image of the frame says; the floor in the first ones gives the vertical."""
        if self._depth is None:
            return None
        index = self._depth.at(result.time)
        if index is None:
            return {}
        image = self._depth.read(index)
        matrix = scaled_matrix(self._depth, self._camera, image)
        pose = np.eye(4) if self._depth.extrinsics is None else self._depth.extrinsics
        if self._steps.up is None and self._tries < _MAX_TRIES:
            self._tries += 1
            if (normal := floor_normal(image, matrix)) is not None:
                self._floors.append(pose[:3, :3].T @ normal @ view.rotation)
            if len(self._floors) == _MIN_FLOORS:
                self._steps = replace(self._steps, up=np.median(self._floors, axis=0))
                self._restart()
        return measure_people(result, image, matrix, pose)

    def _restart(self) -> None:
        self._world, self._feet, self._has_frames = self._new_world(), LiveFooting(), False

    def _new_world(self) -> LiveWorld:
        return LiveWorld(self._camera, self._steps, background=True)

    def _feet_contradict(self, placed: FrameResult, skeleton: Skeleton) -> bool:
        """Return whether the feet contradict the camera rotation, or did in the last frame, so that a world begins."""
        assert self._watch is not None
        if not self._watch.checks_feet:
            self._feet = LiveFooting()
            return False
        before = self._feet.result
        _, scores = to_h36m17(placed.people.keypoints, placed.people.scores, skeleton)
        result = self._feet.update(placed, scores[:, ANKLES] > FLOOR.min_score, self._watch)
        if before and not result:  # the camera may have moved meanwhile, so that the old world is wrong
            self._restart()
        return bool(before or result)

    def status_text(self, info: WorldInfo | None) -> str:
        """Describe gravity and camera motion for a status line; `info` is None without world coordinates."""
        motion_text = _MOTION_TEXTS.get(self.motion, "")
        if info is None:
            return motion_text
        gravity = gravity_text(info)
        return f"{gravity}, {motion_text}" if motion_text else gravity


def gravity_text(info: WorldInfo) -> str:
    """Describe the direction of gravity for a status line: unknown, given, or its standard deviation in degrees."""
    if info.world.found_by == frame.UNKNOWN:
        return "gravity unknown"
    return "gravity given" if info.world.found_by == frame.GIVEN else f"gravity ±{info.world.sigma_degrees:.0f}°"
