"""Live poses in the Rerun viewer (extra `[rerun]`)."""

from pathlib import Path
from typing import Any

import numpy as np

from pose.errors import PoseError
from pose.export.rrd import JPEG_QUALITY, LIMB_RADIUS_M
from pose.live.base import Loop
from pose.live.result import LiveResult
from pose.live.subscriber import Subscriber
from pose.structures.colours import RGB, person_colour
from pose.structures.skeletons import H36M17, Skeleton
from pose.structures.types import F32


class RerunSink:
    """Sink that logs to the Rerun viewer: images with skeletons as `camera`, and 3D poses as `world`.

    The 3D poses are in world coordinates, or in camera coordinates if there is no world.

    Attributes:
        lost: Number of frames that were dropped because the viewer was too slow.
        problem: Error that ended the sink for good; None without one.
        trouble: Current temporary problem, as in other sinks. This sink has none: always empty.
    """

    trouble = ""

    def __init__(self, loop: Loop, file: Path | None = None) -> None:
        """Start the viewer or open a file, and subscribe to the loop.

        Args:
            file: Path of an .rrd file to write; None starts the viewer.

        Raises:
            PoseError: If Rerun is not installed or fails to start.
        """
        try:
            import rerun
        except ImportError as error:
            raise PoseError("--rerun needs Rerun: pip install 'pose-run[rerun]'") from error
        self._rerun: Any = rerun
        self._stream = rerun.RecordingStream("pose-webcam")
        try:
            if file is None:
                self._stream.spawn()
            else:
                self._stream.save(str(file))
        except RuntimeError as error:
            raise PoseError(f"--rerun: cannot start the viewer: {error}") from error
        self._in_world: bool | None = None
        self._subscriber = Subscriber(loop, self._log, after=self._stream.flush)

    @property
    def problem(self) -> str | None:
        """Error that ended the sink for good; None without one."""
        return self._subscriber.problem

    @property
    def lost(self) -> int:
        """Number of frames that were dropped because the viewer was too slow."""
        return self._subscriber.dropped

    def _log(self, live: LiveResult) -> None:
        rerun, stream = self._rerun, self._stream
        people, poses = live.result.people, live.result.poses
        stream.set_time("capture", duration=live.result.time)
        stream.log("camera", rerun.Image(live.image).compress(jpeg_quality=JPEG_QUALITY))
        colours = [person_colour(person) for person in people.ids.tolist()]
        strips, strip_colours = _strips(people.keypoints, live.skeleton, colours)
        stream.log("camera/people", rerun.LineStrips2D(strips, colors=strip_colours))
        placed = live.result.placed
        if self._in_world is not (placed is not None):
            self._in_world = placed is not None
            axes = rerun.ViewCoordinates.RUB if self._in_world else rerun.ViewCoordinates.RDF
            stream.log("world", axes, static=True)  # y up in world coordinates, y down in the camera frame
        bodies = poses.joints + poses.root[:, None] if placed is None else placed.joints
        strips, strip_colours = _strips(bodies, H36M17, colours)
        stream.log("world/people", rerun.LineStrips3D(strips, colors=strip_colours, radii=LIMB_RADIUS_M))
        stream.log("latency_ms", rerun.Scalars(1000 * live.latency))

    def close(self) -> None:
        """Log the queued frames and disconnect."""
        self._subscriber.close()


def _strips(points: F32, skeleton: Skeleton, colours: list[RGB]) -> tuple[F32, list[RGB]]:
    """Return limbs (P * edges, 2, D) of joints (P, J, D), as pairs of joints, and the colour of each limb."""
    limbs = points[:, np.array(skeleton.edges)]
    return limbs.reshape(-1, 2, points.shape[-1]), [colour for colour in colours for _ in skeleton.edges]
