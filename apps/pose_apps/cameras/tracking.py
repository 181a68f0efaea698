"""Processing of several cameras, each with its own pipeline, with progress bar, cache and statistics."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pose_apps.support.summary import Tally

if TYPE_CHECKING:
    from pose.multiview.scene import CameraRun
    from pose.pipeline import Pipeline
    from pose.results.cache import Found
    from pose.structures.frame_store import FrameStore
    from pose.structures.types import FrameResult
    from pose.video import Source
    from pose_apps.support.run_context import RunContext


@dataclass(frozen=True, slots=True)
class TalliedCamera:
    """Results of the pipeline for the video of one of several cameras, with statistics.

    Attributes:
        spool: Results of all frames, stored in a temporary file.
        run: Metadata of the run.
        cached: Results found in the cache: "nothing", "people" (2D only) or "everything".
        tally: Statistics of the frames of this camera.
    """

    spool: "FrameStore"
    run: "CameraRun"
    cached: "Found"
    tally: Tally


def track_cameras(
    videos: Sequence[str],
    pipeline: "Pipeline",
    folder: Path,
    stack: ExitStack,
    context: "RunContext",
    stop: threading.Event,
    workers: int = 1,
) -> list[TalliedCamera]:
    """Run the pipeline on the video of every camera with `pose.cameras.CameraRuns`.

    Args:
        videos: Video of each camera.
        pipeline: Pipeline of the first worker; further workers build their own.
        folder: Folder for temporary files.
        stack: Exit stack that closes the temporary files of the results.
        context: Callbacks of the command.
        stop: Event that ends all workers at their next frame.
        workers: Number of cameras that are processed at the same time, each in one thread.

    Returns:
        The results of each video. The list is shorter if `stop` is set.

    Raises:
        PoseError: If a video has no frames, its camera moves, or two videos have the same images.
    """
    from pose.cameras import CameraRuns
    from pose.results.cache.run import cached_results

    tallies, cached = [Tally() for _ in videos], dict[int, "Found"]()

    def run_camera(row: int, source: "Source", pipeline: "Pipeline") -> "Iterator[FrameResult]":
        results, cached[row] = cached_results(pipeline, source, context.cache, stop)
        for result in context.with_progress(results, source, f"camera {row + 1}"):
            tallies[row].add(result, pipeline.skeleton)
            yield result

    found = CameraRuns(videos, pipeline, run_camera, folder, stop, workers).collect(stack)
    for seen in found:
        context.warn(seen.problems)
    return [TalliedCamera(seen.spool, seen.run, cached[seen.index], tallies[seen.index]) for seen in found]
