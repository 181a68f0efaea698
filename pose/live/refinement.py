"""Refined frames of a stream, which are available some frames later.

The newest estimate of a frame is displayed immediately. Recordings and final messages contain its refined poses, for
which the lifter has also seen the following frames.
"""

from collections import deque
from dataclasses import replace
from time import monotonic

from pose.live.ahead import PosePredictor
from pose.live.camera import WatchedWorld
from pose.live.result import LiveResult, Stream
from pose.types import FrameResult


class RefinedFrames:
    """Frames of one stream that wait for their refined poses.

    Refined people have separate world coordinates, which are computed from refined poses only. They are not predicted
    ahead, except to bridge occlusions.

    Attributes:
        pending: Number and newest estimate of each waiting frame, oldest first. There are at most as many as the
            refinement delay in frames. Images are omitted if no subscriber wants refined frames, to save memory.
        stream: Stream of the frames.
        world: World of the refined people; None for camera coordinates.
    """

    def __init__(self, stream: Stream, world: WatchedWorld | None, bridge: float) -> None:
        """Start without frames.

        Args:
            stream: Stream with a refining lifter.
            world: World of the refined people; None keeps camera coordinates.
            bridge: Maximum time for which an occluded person is predicted, s; 0 disables this.
        """
        self.pending: deque[tuple[int, LiveResult]] = deque()
        self.stream, self.world = stream, world
        self._bridge = PosePredictor(stream.pipeline.skeleton, stream.session.camera, bridge=bridge) if bridge else None

    def refined(self, result: FrameResult) -> tuple[int, LiveResult]:
        """Return the oldest waiting frame with its number and its refined poses.

        Args:
            result: Refined poses from the lifter.
        """
        number, live = self.pending[0]
        assert live.result.index == result.index, "frames are refined in order, without gaps"
        info, motion = None, ""
        if self.world is not None:
            result, info = self.world.place(result, live.skeleton)
            motion = self.world.motion
        if self._bridge is not None:
            result = self._bridge(result, 0.0)
        return number, replace(live, result=result, done=monotonic(), world=info, motion=motion, final=True)
