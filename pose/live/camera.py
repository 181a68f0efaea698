"""World coordinates of a live stream while its camera does not translate."""

from pose.results import WorldInfo
from pose.structures.camera import Camera
from pose.structures.skeletons import Skeleton, to_h36m17
from pose.structures.types import FrameResult
from pose.world import frame
from pose.world.camera_motion.verdict import ROTATING, TRANSLATING, UNKNOWN
from pose.world.camera_motion.watch import CameraWatch
from pose.world.clean import Steps
from pose.world.gravity import ANKLES
from pose.world.live import LiveWorld
from pose.world.live_footing import LiveFooting
from pose.world.rules import RULES

_NO_WORLD = (TRANSLATING, UNKNOWN)
_MOTION_TEXTS = {
    ROTATING: "camera turns, compensated",
    TRANSLATING: "camera moves: no world",
    UNKNOWN: "camera motion unknown: no world (--camera fixed if it is static)",
}


class WatchedWorld:
    """World coordinates of a live stream from one camera, which may rotate."""

    # There are none while the camera changes its position, or its motion is unknown. When it stops, new ones begin.

    def __init__(self, camera: Camera, steps: Steps, watch: CameraWatch | None) -> None:
        """Start without frames; without a `watch` the camera is assumed static."""
        self._camera, self._steps, self._watch = camera, steps, watch
        self._world, self._feet = self._new_world(), LiveFooting()
        self._has_frames = False

    @property
    def motion(self) -> str:
        """State of the camera motion: "static", "rotating", "translating", "unknown"; empty if assumed static."""
        # The motion of the feet (`LiveFooting.result`) has precedence over that of the image (`CameraWatch.state`).
        return "" if self._watch is None else self._feet.result or self._watch.state

    def place(self, result: FrameResult, skeleton: Skeleton) -> tuple[FrameResult, WorldInfo | None]:
        """Return the frame with world positions in `placed` and its world; unchanged and None without a world."""
        if self._watch is None:
            placed = self._world.place(result, skeleton)
        else:
            people = result.people
            view = self._watch.update(people.background, people.index, people.time, people.cut)
            if self._has_frames and (people.cut or self._watch.state in _NO_WORLD):
                self._restart()
            if self._watch.state in _NO_WORLD:
                return result, None
            placed = self._world.place(result, skeleton, view)
            if self._feet_contradict(placed, skeleton):
                self._has_frames = True
                return result, None
        self._has_frames = True
        return placed, WorldInfo(self._world.world, self._world.heights)

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
        result = self._feet.update(placed, scores[:, ANKLES] > RULES.floor.min_score, self._watch)
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
