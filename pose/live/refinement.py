"""The refined frames of a stream, available once the following frames have been seen.

The newest estimate of a frame is shown at once. Recordings and final messages contain the refined one, as in streaming
speech recognition, where partial results precede final ones.
"""

from collections import deque
from dataclasses import replace
from time import monotonic

from pose.live.ahead import PosePredictor
from pose.live.camera import WatchedWorld
from pose.live.result import LiveResult, Stream
from pose.types import FrameResult


class RefinedFrames:
    """The frames of one stream that wait for their refined poses.

    Refined people have their own world, which sees refined poses only. They are never predicted.

    Attributes:
        waiting: Frames with their newest estimate, oldest first, at most as many as the refinement delay in frames.
            The images are left out if no subscriber wants refined frames, because images of 11 MB add up to 100 MB.
    """

    def __init__(self, stream: Stream, world: WatchedWorld | None, bridge: float) -> None:
        """
        Args:
            stream: Stream with a refining lifter.
            world: World of the refined people; None keeps camera coordinates.
            bridge: Seconds for which occluded people are predicted; 0 disables it.
        """
        self.waiting: deque[tuple[int, LiveResult]] = deque()
        self.stream, self.world = stream, world
        self._bridge = PosePredictor(stream.pipeline.skeleton, stream.session.camera, bridge=bridge) if bridge else None

    def refined(self, result: FrameResult) -> tuple[int, LiveResult]:
        """Return the oldest waiting frame with its number and its refined poses.

        Args:
            result: Refined poses from the lifter.
        """
        number, live = self.waiting[0]
        assert live.result.index == result.index, "frames are refined in order, without gaps"
        info, motion = None, ""
        if self.world is not None:
            result, info = self.world.place(result, live.skeleton)
            motion = self.world.motion
        if self._bridge is not None:
            result = self._bridge(result, 0.0)
        return number, replace(live, result=result, done=monotonic(), world=info, motion=motion, final=True)
