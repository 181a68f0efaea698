"""The frames of a stream a second time: refined, once the frames that follow have been seen.

The newest estimate of a frame is shown at once. Recordings and messages carry the refined one, like the final results
of live speech recognition that follow partial ones.
"""

from collections import deque
from dataclasses import replace
from time import monotonic

from pose.live.ahead import Ahead
from pose.live.camera import WatchedWorld
from pose.live.result import LiveResult, Stream
from pose.types import FrameResult


class RefinedFrames:
    """The frames of one stream on the way to their refined poses.

    Refined people have a world of their own, which knows the refined poses only, and are never predicted ahead.

    Attributes:
        waiting: Frames with their newest estimate, oldest first, that are not refined yet; at most as many as the
            lifter refines later.
    """

    def __init__(self, stream: Stream, world: WatchedWorld | None, bridge: float) -> None:
        """
        Args:
            stream: Whose lifter refines.
            world: That refined people are put into; None leaves them as they are lifted.
            bridge: Seconds for which occluded people are carried on; 0: never.
        """
        self.waiting: deque[tuple[int, LiveResult]] = deque()
        self.stream, self.world = stream, world
        self._bridge = Ahead(stream.pipeline.skeleton, stream.session.camera, bridge=bridge) if bridge else None

    def refined(self, result: FrameResult) -> tuple[int, LiveResult]:
        """The first frame that waits, with the number that it waits under. result: what the lifter says of it now."""
        number, live = self.waiting[0]
        assert live.result.index == result.index, "frames are refined in order, and none is left out"
        info, motion = None, ""
        if self.world is not None:
            result, info = self.world.place(result, live.skeleton)
            motion = self.world.motion
        if self._bridge is not None:
            result = self._bridge(result, 0.0)
        return number, replace(live, result=result, done=monotonic(), world=info, motion=motion, final=True)
