"""Refined frames of a stream, which are available some frames later.

The newest estimate of a frame is displayed immediately. Recordings and final messages contain its refined poses, for
which the lifter has also seen the following frames.
"""

from collections import deque
from dataclasses import replace
from time import monotonic

from pose.live.ahead import PosePredictor
from pose.live.camera import PlacedScene, RefinedWorld
from pose.live.result import LiveResult, Stream
from pose.structures.types import FrameResult


class RefinedFrames:
    """Queue of the frames of one stream whose refined poses are not available yet."""

    # Refined poses of a frame are placed in the scene that was displayed with its newest estimate: estimating a second
    # one would take as long again. They are not predicted for a later time, but people who are briefly occluded are
    # added. Images are omitted if no subscriber wants refined frames, to save memory.

    def __init__(self, stream: Stream, world: RefinedWorld, bridge: float) -> None:
        """Start without frames."""
        # Number, newest estimate and scene of each frame, oldest first.
        self.pending: deque[tuple[int, LiveResult, PlacedScene | None]] = deque()
        self.stream, self.world = stream, world
        self._bridge = PosePredictor(stream.pipeline.skeleton, stream.session.camera, bridge=bridge) if bridge else None

    def refined(self, result: FrameResult) -> tuple[int, LiveResult]:
        """Return number and refined result of the oldest frame in `pending`, which remains there."""
        number, live, scene = self.pending[0]
        assert live.result.index == result.index, "frames are refined in order, without gaps"
        result, info = self.world.place(result, live.skeleton, scene)
        if self._bridge is not None:
            result = self._bridge(result, 0.0)
        return number, replace(live, result=result, done=monotonic(), world=info, final=True)
