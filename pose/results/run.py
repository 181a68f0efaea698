"""One run of a video or a single image; `pose.multiview.run` has that of several cameras.

Commands and the Python API call these functions; `pose.functions.lift` is the run of keypoints.

The first lifting shows who wears the sensors, when, and how they are mounted.
"""

import math
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, Self

import numpy as np

from pose.errors import PoseError
from pose.lifting.fit.directions import WornSensors
from pose.lifting.fit.windows import FitLog
from pose.results import RunInfo
from pose.results.cache import Cache
from pose.results.cache.run import CachedPipeline, CachedRun, CachedStream
from pose.results.edits.plan import EditPlan, StoredFrames
from pose.results.edits.types import Edit
from pose.results.recorded import RecordedRun, record
from pose.structures.result_store import ResultStore
from pose.structures.types import F32, F64, U8, Frame, FrameResult, People
from pose.utils.json_values import Json
from pose.video import Source
from pose.world.clean import Steps
from pose.world.measured import DepthImages

MAX_HIDDEN_S = 5.0  # longest time without any keypoint in which the sensors alone continue a person


@dataclass(frozen=True, slots=True)
class FirstRun:
    """A run without the sensors."""

    results: Iterable[FrameResult]  # results of all frames in camera coordinates
    turns: F64  # (F, 3, 3) rotations from the camera axes of each frame to those of the first
    up: F64 | None  # (3,) direction against gravity in the camera axes of the first frame; None if unknown

    @classmethod
    def of(cls, recorded: RecordedRun, up: F64 | None) -> Self:
        """Return what sensors need of a run, with the user's `up`; PoseError for cuts or unknown motion."""
        world = recorded.info.world
        if world is None or any(result.people.cut for result in recorded.lifted):
            raise PoseError("--imu: needs a video without cuts, from a camera whose motion is known")
        turns = [np.eye(3) if result.view is None else result.view.rotation for result in recorded.results]
        known = None if world.world.found_by == "unknown" else world.world.up
        return cls(recorded.lifted, np.array(turns), known if up is None else up)


FindWorn = Callable[[FirstRun], WornSensors]  # finds what the sensors measure


def with_hidden(people: Callable[[], Iterator[People]], worn: WornSensors) -> Iterator[People]:
    """Yield the sampled people of all frames; the wearer of the sensors has one id, and a row where it is hidden."""
    wearer, seen = worn.people[0], list[tuple[float, F32]]()
    for frame in people():
        rows = np.flatnonzero(np.isin(frame.ids, worn.people) & ~frame.interpolated)
        if len(rows):
            seen.append((frame.time, frame.boxes[rows[0]]))
    times = np.array([time for time, _ in seen])
    for frame in people():
        frame = frame[~frame.interpolated] if frame.interpolated.any() else frame
        named = np.isin(frame.ids, worn.people)
        if named.any():
            ids = np.where(named, wearer, frame.ids)
            yield replace(frame, ids=ids)
            continue
        after = int(np.searchsorted(times, frame.time))
        if frame.sampled and 0 < after < len(times) and times[after] - times[after - 1] <= MAX_HIDDEN_S:
            share = (frame.time - times[after - 1]) / (times[after] - times[after - 1])
            box = (1 - share) * seen[after - 1][1] + share * seen[after][1]
            frame = frame.with_undetected([wearer], box[None].astype(np.float32))
        yield frame


# Passes results on unchanged, and may report them. Arguments: results, their source, and what they are, for a bar.
Progress = Callable[[Iterable[FrameResult], Source, str], Iterable[FrameResult]]


class RunStream(CachedStream, Protocol):
    """One stream of frames in a pipeline, such as `pose.session.Session`."""

    def track(self, frame: Frame) -> People:
        """Detect and track the people of the next frame in 2D."""

    def flush(self) -> list[FrameResult]:
        """End the stream; return all remaining frames."""


class RunPipeline(CachedPipeline, Protocol):
    """Pipeline that runs on videos, such as `pose.pipeline.Pipeline`."""

    fits: FitLog

    def run_info(
        self, source: str, fps: float, image_size: tuple[int, int], focal_35mm: float | None = None
    ) -> RunInfo:
        """Return the metadata for result files."""

    def session(self, image_size: tuple[int, int], focal_35mm: float | None = None) -> RunStream:
        """Start a stream of images of one size."""

    def copy_for_thread(self) -> "RunPipeline | None":
        """Return a copy for another thread; None if there can be none."""


def unreported(results: Iterable[FrameResult], source: Source, what: str) -> Iterable[FrameResult]:
    """Pass results on unchanged."""
    return results


def counted(report: Callable[[int, int | None], None] | None) -> Progress:
    """Return a `Progress` that calls `report` with the number of frames so far, and of all frames if it is known."""
    if report is None:
        return unreported

    def reported(results: Iterable[FrameResult], source: Source, what: str) -> Iterator[FrameResult]:
        for count, result in enumerate(results, 1):
            yield result
            report(count, source.info.frame_count)

    return reported


def record_video(
    pipeline: RunPipeline,
    source: Source,
    steps: Steps | None,
    *,
    join: bool = True,
    span: tuple[float, float] = (0.0, math.inf),
    settings: Mapping[str, Json],
    cache: Cache | None = None,
    stop: threading.Event | None = None,
    progress: Progress = unreported,
    images: bool = True,
    folder: Path | None = None,
    keep: bool = False,
    depth: DepthImages | None = None,
    edits: Sequence[Edit] = (),
    sensors: FindWorn | None = None,
    journal: Path | None = None,
) -> RecordedRun:
    """Process a video, not read yet, and transform its people to the world; the caller closes the run.

    Args:
        steps: Settings of the transformation; None keeps camera coordinates. Whether bones are constant and the camera
            is known follows from the pipeline.
        join: Whether to join tracks of one person and drop those that show no person.
        span: Start and end of the part of the video that `source` returns, s, for the metadata, as `settings` are.
        stop: Event that ends the run after the current frame.
        progress: Function that passes the results on, and may report them.
        images: Whether the source can be read again, to estimate the translation of a carried camera.
        keep: Whether an error keeps the results of the frames before it; see `RecordedRun.error`.
        edits: Corrections by a user. With a cache of the 2D, only 3D and world are computed.
        sensors: Function that finds what inertial sensors of a person measure; not with edits.
        journal: File with which a run continues that was interrupted; see `CachedRun`.

    Raises:
        PoseError: If the source cannot be read, or the disk is full.
    """
    stop = stop or threading.Event()
    info = pipeline.run_info(source.name, source.info.fps, source.info.size, source.info.focal_35mm)
    part = {"start": span[0], "end": span[1] if math.isfinite(span[1]) else None}
    used = [name for name, given in (("depth", depth), ("imu", sensors)) if given is not None]
    extra: dict[str, Json] = {"sensors": ["camera", *used]} if used else {}
    info = replace(info, settings={**part, **info.settings, **settings, **extra})
    if steps is not None:
        steps = replace(steps, bones=pipeline.config.constant_bones, camera_known=info.camera.known)

    run = CachedRun(pipeline, source, cache, stop, journal)

    def results() -> Generator[FrameResult, None, None]:
        with pipeline.times.rest("threads of networks and codecs"):
            yield from progress(run.results(), source, "poses")

    replay = source.replay if images else None
    collect = partial(record, join=join, images=replay, stop=stop, times=pipeline.times, folder=folder)
    if edits:
        recorded = _edited(pipeline, source, run, info, steps, edits, progress, collect, folder)
    elif sensors is not None:
        with closing(results()) as seen:
            recorded = _with_sensors(pipeline, run, seen, info, steps, sensors, stop, collect, folder, depth)
    else:
        recorded = collect(results(), info, steps, keep=keep, collected=run.keep, depth=depth)
    recorded.cached, recorded.cut_short = run.found, source.cut_short
    return recorded


def _edited(
    pipeline: RunPipeline,
    source: Source,
    run: CachedRun,
    info: RunInfo,
    steps: Steps | None,
    edits: Sequence[Edit],
    progress: Progress,
    collect: partial[RecordedRun],
    folder: Path | None,
) -> RecordedRun:
    """Observe all frames, then lift them again as the edits say."""
    with closing(run), closing(run.observed(folder, lambda results: progress(results, source, "poses"))) as stored:
        plan = EditPlan(edits, StoredFrames(stored), pipeline.skeleton, info.camera)
        frames = run.edited(stored, plan.apply if plan.changes_frames else None, plan.sides)
        if run.found != "nothing":
            frames = iter(progress(frames, source, "poses"))
        recorded = collect(frames, info, None if steps is None else plan.steps(steps))
    joined = {} if recorded.world is None else recorded.world.joined
    recorded.info = replace(recorded.info, settings={**recorded.info.settings, **plan.settings(joined)})
    recorded.problems = plan.problems
    return recorded


def _with_sensors(
    pipeline: RunPipeline,
    run: CachedRun,
    results: Iterable[FrameResult],
    info: RunInfo,
    steps: Steps | None,
    sensors: FindWorn,
    stop: threading.Event,
    collect: partial[RecordedRun],
    folder: Path | None,
    depth: DepthImages | None,
) -> RecordedRun:
    """Lift all frames, find what the sensors of a person measure, and lift the frames again with it."""
    with closing(ResultStore(folder, pipeline.skeleton)) as first:
        for result in results:
            first.write(result)
        run.keep(first)
        if stop.is_set():  # interrupted: the frames before are kept without the sensors
            return collect(iter(first), info, steps)
        with collect(iter(first), info, steps, times=None) as plain:
            worn = sensors(FirstRun.of(plain, None if steps is None else steps.up))
        directions = {worn.people[0]: worn.directions}
        if steps is not None:
            steps = replace(steps, worn=directions)
        pipeline.fits.windows.clear()
        frames = run.lifted(with_hidden(first.people, worn), directions=directions)
        recorded = collect(frames, info, steps, depth=depth)
    recorded.worn = worn
    return recorded


PASSES = 2  # estimations per image: the first crops people by the detector's boxes, the second by the joints found
# Correction of sigma for single frames: on test subjects with detector errors, 61 % of the joints were within their
# sigma instead of 68 % (measured at commit aeebe8c6).
SIGMA_FACTOR = 1.11


def record_still(
    pipeline: RunPipeline, image: U8, name: str, focal_35mm: float | None = None
) -> tuple[FrameResult, RunInfo]:
    """Estimate the 2D and 3D keypoints of the people in one image (H, W, 3) uint8 RGB, with the metadata.

    `focal_35mm` is the 35 mm equivalent focal length in mm, if it is known.
    """
    size = (image.shape[1], image.shape[0])
    session = pipeline.session(size, focal_35mm)
    for look in range(PASSES):
        people = session.track(Frame(image, look, look / 30))
    (result,) = session.lift(replace(people, index=0, time=0.0)) + session.flush()
    info = pipeline.run_info(name, 1.0, size, focal_35mm)
    settings = {"stills": True, "sigma_factor": SIGMA_FACTOR, **info.settings}
    wider = replace(result.poses, sigma=result.poses.sigma * SIGMA_FACTOR)
    return FrameResult(result.people, wider), replace(info, settings=settings)
