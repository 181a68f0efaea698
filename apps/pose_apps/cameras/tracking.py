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
    from pose.results.cache.run import Found
    from pose.structures.frame_store import ResultStore
    from pose.structures.types import FrameResult
    from pose.video import Source
    from pose_apps.support.run_context import RunContext


@dataclass(frozen=True, slots=True)
class TalliedCamera:
    """Results of the pipeline for the video of one of several cameras, with statistics."""

    spool: "ResultStore"  # results of all frames, stored in a temporary file
    run: "CameraRun"  # metadata of the run
    cached: "Found"  # results found in the cache: "nothing", "people" (2D only) or "everything"
    tally: Tally  # statistics of the frames of this camera


def track_cameras(
    videos: Sequence[str],
    pipeline: "Pipeline",
    folder: Path,
    stack: ExitStack,
    context: "RunContext",
    stop: threading.Event,
    workers: int = 1,
) -> list[TalliedCamera]:
    """Run the pipeline on every camera's video, on threads; fewer results if `stop` is set."""
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
