"""Workers of any engine. A worker processes clips one after another, with networks that are loaded once."""

import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from pose.config import PipelineConfig
from pose.errors import PoseError, without_credentials
from pose.results.recorded import average_rate
from pose_apps.batch.clips import BatchClip
from pose_apps.batch.manifest import CameraFacts, Line, MotionFacts, QualityFacts, VideoFacts
from pose_apps.cameras.command import check_several, process_cameras
from pose_apps.cameras.options import NO_CAMERAS, CamerasConfig, camera_videos
from pose_apps.clip import RunConfig, run_any
from pose_apps.support.lifters import make_pipeline
from pose_apps.support.run_context import RunContext, RunOutcome
from pose_apps.support.summary import NOBODY, Tally

if TYPE_CHECKING:
    from pose.pipeline import Pipeline
    from pose.structures.types import FrameResult
    from pose.video import Source

PROGRESS_INTERVAL_S = 0.5  # s between two progress reports
ProgressCallback = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Job:
    """Common settings of all clips; `key` identifies results that need not be computed again."""

    run: RunConfig  # options of `pose-run`
    pipeline: PipelineConfig  # options of the pipeline
    out: Path  # folder of all results
    key: str  # SHA-256 of all settings and weights, which identifies results that need not be computed again
    cameras: CamerasConfig = NO_CAMERAS  # options for groups of videos from several cameras


@dataclass(frozen=True, slots=True)
class BatchTask:
    """One clip to process; an `existing` result is valid if the content of the clip has not changed."""

    clip: BatchClip
    existing: Line | None = None  # entry of the manifest for an existing result
    attempts: int = 1  # number of attempts, including this one


@dataclass(frozen=True, slots=True)
class TaskResult:
    """Result of a task; `retry` if its error may not depend on the clip."""

    line: Line  # new entry of the manifest for the clip
    retry: bool = False  # whether to try the clip again, because its error may not depend on the clip


class Worker:
    """Worker that processes clips. The networks are loaded with the first clip."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._pipeline: Pipeline | None = None

    def process(self, task: BatchTask, on_progress: ProgressCallback = lambda frames, total: None) -> TaskResult:
        """Process one clip; the result contains errors. Progress is the new, and all frames of the clip or None."""
        started = time.perf_counter()
        clip = task.clip
        warned: list[str] = []
        base = Line(
            path=without_credentials(clip.path),
            name=clip.name,
            key=None,
            status="failed",
            attempts=task.attempts,
            job=self._job.key,
        )
        base = replace(base, signature=clip.signature())
        retry = False
        with warnings.catch_warnings(record=True) as caught:
            try:
                line = self._unchanged(task, base) or self._process_clip(clip, base, warned.extend, on_progress)
            except PoseError as error:
                line = replace(base, error=_one_line(str(error)))
            except Exception as error:  # a bug fails this clip only, not the whole run
                line, retry = replace(base, error=_one_line(f"{type(error).__name__}: {error}")), True
        warned += [str(one.message) for one in caught]
        warned += [NOBODY] if line.status == "ok" and not line.people else []
        seconds = round(time.perf_counter() - started, 3)
        return TaskResult(replace(line, seconds=seconds, warnings=[_one_line(text) for text in warned]), retry)

    def _unchanged(self, task: BatchTask, base: Line) -> Line | None:
        """Return the line of the existing result if the clip's content has not changed; otherwise None."""
        if task.existing is None or task.existing.key != self._key(task.clip):
            return None
        return replace(task.existing, path=base.path, signature=base.signature)

    def _process_clip(
        self, clip: BatchClip, base: Line, warn: Callable[[Iterable[str]], None], on_progress: ProgressCallback
    ) -> Line:
        from pose.results.cache import open_cache
        from pose.utils.device import seed_torch
        from pose.utils.progress import hidden_progress

        run = replace(self._job.run, video=clip.path, out=str(self._job.out / clip.name))
        seed_torch(self._job.pipeline.seed)  # so that results do not depend on earlier clips
        opened = nullcontext() if run.cache == "off" else open_cache(run.cache, run.cache_size)
        with hidden_progress(True), opened as cache:
            context = RunContext(
                _progress_reporter(on_progress, len(clip.videos)), warn, cache, handles_interrupts=False
            )
            if clip.videos:
                line = self._process_group(clip, run, base, context)
            else:
                line = self._clip_line(run_any(run, self._networks, context), base)
            if cache is not None and cache.problem:
                warn([f"{cache.problem}; results are not cached"])
        return line

    def _process_group(self, clip: BatchClip, run: RunConfig, base: Line, context: RunContext) -> Line:
        """Process the videos of a group of cameras, and return the manifest line."""
        check_several(run)
        videos = camera_videos(clip.videos, None)
        done = process_cameras(videos, self._job.cameras, run, self._networks, context)
        tally, error = done.tally, "; ".join(done.problems)
        cameras: list[CameraFacts] = [
            {
                "name": camera.name,
                "video": camera.video or camera.name,
                "offset": camera.offset,
                "position_sigma": camera.place_sigma,
                "residual_px": None if math.isnan(camera.residual_px) else camera.residual_px,
            }
            for camera in done.cameras
        ]
        return replace(
            self._fill_line(base, tally, done.files, error),
            key=self._key(clip),
            people=len(tally.ids),
            cached=done.cached,
            video=_video_facts(done.size, done.fps, tally),
            cameras=cameras,
        )

    def _clip_line(self, done: RunOutcome, base: Line) -> Line:
        info = done.source.info
        return replace(
            self._fill_line(base, done.tally, done.files, "; ".join(done.problems)),
            key=self._key_of(done.source),
            people=done.tally.people_in_frames if done.stills else len(done.tally.ids),
            cached=done.cached,
            video=_video_facts(info.size, info.fps, None if done.stills else done.tally),
        )

    def _fill_line(self, base: Line, tally: Tally, files: list[Path], error: str) -> Line:
        return replace(
            base,
            status="failed" if error else "ok",
            error=_one_line(error) if error else None,
            frames=tally.frames,
            outputs=[path.relative_to(self._job.out).as_posix() for path in files],
            quality=_quality_facts(tally),
            version=version("pose-run"),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _key(self, clip: BatchClip) -> str:
        """Return a hash of settings, weights and content of the clip, or of all videos of a group."""
        from pose.results.cache.keys import hash_of

        run = self._job.run
        keys = []
        for video in clip.videos or [clip.path]:
            with run.opened(video) as source:
                keys.append(self._key_of(source))
        return hash_of(keys) if clip.videos else keys[0]

    def _key_of(self, source: "Source") -> str:
        from pose.results.cache.keys import hash_of

        return hash_of([self._job.key, source.content() or source.name])

    def _networks(self) -> "Pipeline":
        if self._pipeline is None:
            self._pipeline = job_pipeline(self._job)
        return self._pipeline


def job_pipeline(job: Job) -> "Pipeline":
    """Load the networks of a job."""
    import cv2

    cv2.setNumThreads(1)  # other workers use the other cores
    return make_pipeline(job.pipeline, job.run.cache, job.run.intrinsics, quiet=True)


def _progress_reporter(
    on_progress: ProgressCallback, cameras: int
) -> "Callable[[Iterable[FrameResult], Source, str], Iterator[FrameResult]]":
    """Return a function that yields results unchanged and reports newly finished frames at intervals."""

    def with_progress(results: "Iterable[FrameResult]", source: "Source", what: str) -> "Iterator[FrameResult]":
        count, last = 0, time.monotonic()
        own = source.info.frame_count
        total = own * max(cameras, 1) if own else None  # the videos of a group are assumed to have equal lengths
        for result in results:
            count += what.startswith("camera") if cameras else what == "poses"
            if (now := time.monotonic()) - last > PROGRESS_INTERVAL_S:
                on_progress(count, total)
                count, last = 0, now
            yield result
        on_progress(count, total)

    return with_progress


def _video_facts(size: tuple[int, int], fps: float, tally: Tally | None) -> VideoFacts:
    """Return the properties of a video. `tally` is None for single images."""
    if tally is not None:
        fps = average_rate(fps, tally.frames, tally.first_time, tally.last_time)
    duration = 0.0 if tally is None or not tally.frames else tally.last_time - tally.first_time + 1 / fps
    return {"width": size[0], "height": size[1], "fps": round(fps, 6), "duration": round(duration, 6)}


def _quality_facts(tally: Tally) -> QualityFacts:
    return {
        "frames_without_people": tally.frames_without_people,
        "doubtful": sorted(tally.doubtful),
        "confidence": round(tally.score_sum / tally.joints, 4) if tally.joints else None,
        "low_confidence": round(tally.low_confidence_joints / tally.joints, 4) if tally.joints else None,
        "sigma_mm": round(tally.sigma_sum / tally.joints_3d, 2) if tally.joints_3d else None,
        "camera_motion": None if tally.motion is None else tally.motion.kind,
        "motion": _motion_facts(tally),
    }


def _motion_facts(tally: Tally) -> MotionFacts | None:
    from pose.world.camera_motion.verdict import FIXED

    motion = tally.motion
    if motion is None or motion.kind == FIXED:
        return None
    return {
        "rotation_degrees": _rounded(max(motion.pan, motion.tilt, motion.roll), 2),
        "zoom_percent": _rounded(100 * (motion.zoom - 1), 2),
        "known": _rounded(motion.known, 4),
        "focal_ratio": _rounded(motion.focal_ratio, 3),
    }


def _rounded(value: float, digits: int) -> float | None:
    return round(value, digits) if math.isfinite(value) else None


def _one_line(text: str) -> str:
    return without_credentials(" ".join(text.split()))
