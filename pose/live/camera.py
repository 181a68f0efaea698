"""The world of a live stream, for as long as its camera keeps its place."""

from pose.camera import Camera
from pose.camera_motion.verdict import ROTATING, TRANSLATING, UNKNOWN
from pose.camera_motion.watch import CameraWatch
from pose.files import WorldInfo
from pose.skeletons import Skeleton
from pose.types import FrameResult
from pose.world import frame
from pose.world.clean import Steps
from pose.world.live import LiveWorld

_NO_WORLD = (TRANSLATING, UNKNOWN)
_WORDS = {
    ROTATING: "camera turns, compensated",
    TRANSLATING: "camera moves: no world",
    UNKNOWN: "camera motion unknown: no world (--camera fixed if it stands still)",
}


class WatchedWorld:
    """Puts people into their world. A camera that is carried ends it; when it stands again, another begins."""

    def __init__(self, camera: Camera, steps: Steps, watch: CameraWatch | None) -> None:
        """watch: None takes the camera for fixed."""
        self._camera, self._steps, self._watch = camera, steps, watch
        self._world = LiveWorld(camera, steps)
        self._used = False

    @property
    def motion(self) -> str:
        """Of the camera, as in `CameraWatch.state`; empty where it is taken for fixed."""
        return "" if self._watch is None else self._watch.state

    def place(self, result: FrameResult, skeleton: Skeleton) -> tuple[FrameResult, WorldInfo | None]:
        """The frame in its world, and what is known of that; the frame as it is and None where there is no world."""
        if self._watch is None:
            placed = self._world.place(result, skeleton)
        else:
            people = result.people
            view = self._watch.see(people.background, people.index, people.time, people.cut)
            if self._used and (people.cut or self.motion in _NO_WORLD):
                self._world, self._used = LiveWorld(self._camera, self._steps), False
            if self.motion in _NO_WORLD:
                return result, None
            placed = self._world.place(result, skeleton, view)
        self._used = True
        return placed, WorldInfo(self._world.world, self._world.heights)

    def words(self, info: WorldInfo | None) -> str:
        """What is known of gravity and of the camera, for a status line. info: what `place` said last."""
        said = _WORDS.get(self.motion, "")
        if info is None:
            return said
        if info.world.found_by == frame.UNKNOWN:
            gravity = "gravity unknown"
        else:
            given = info.world.found_by == frame.GIVEN
            gravity = "gravity given" if given else f"gravity ±{info.world.sigma_degrees:.0f}°"
        return f"{gravity}, {said}" if said else gravity
