"""Drawing of the overlay video of a run."""

import threading
from collections.abc import Collection, Iterable
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from pose_apps.support.run_context import RunContext

if TYPE_CHECKING:
    from pose.results import RunInfo
    from pose.structures.types import FrameResult
    from pose.utils.progress import StageTimes
    from pose.video import Source
    from pose.video.planes import Planes


def draw_overlay(
    source: "Source",
    results: "Iterable[FrameResult]",
    info: "RunInfo",
    path: Path,
    context: RunContext,
    times: "StageTimes",
    inset: str,
    body: bool,
    doubtful: Collection[int],
) -> None:
    """Draw the results on the source's images, read again; decoding, drawing and encoding run in parallel."""
    from pose.utils.background import in_background, prefetch
    from pose.utils.device import opencv_threads
    from pose.video import VideoWriter
    from pose.view.planar_overlay import PlanarOverlay

    video = source.info
    frames = prefetch(source.replay_planes(), times, threading.Event(), "overlay: ")
    first = next(frames, None)
    if first is None:
        return
    bodies = None
    if body:
        from pose.view.mesh_overlay import BodyMeshes  # imports much

        bodies = BodyMeshes(info.camera, info.skeleton)
        results = bodies.in_batches(results)
    overlay = PlanarOverlay(info.camera.size, info.skeleton, first.planes.colours, inset, bodies, doubtful)
    with (
        closing(frames),
        VideoWriter(
            path,
            overlay.output_size,
            fps=video.fps,
            time_base=video.time_base,
            colours=first.planes.colours,
            sound=source.sound,
        ) as writer,
    ):

        def encode(shown: tuple["Planes", float]) -> None:
            with times.measure("overlay: encode (in parallel)"):
                writer.write_planes(*shown)
            overlay.take_back(shown[0])

        with opencv_threads(1), in_background(encode) as write:
            for frame, result in zip(
                chain([first], frames), context.with_progress(results, source, "overlay"), strict=False
            ):
                with times.measure("overlay: draw"):
                    drawn = overlay.draw(frame.planes, result)
                write((drawn, frame.time))
    context.warn(writer.problems)
