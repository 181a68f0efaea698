"""What a worker does: one clip after the other with networks that are loaded once, whatever engine runs it."""

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
from pose.errors import PoseError
from pose_apps.batch.clips import Clip
from pose_apps.batch.manifest import Line, QualityFacts, VideoFacts
from pose_apps.run import RunConfig, run_any
from pose_apps.support.host import Done, Host
from pose_apps.support.summary import NOBODY, Tally

if TYPE_CHECKING:
    from pose.pipeline import Pipeline
    from pose.types import FrameResult
    from pose.video import Source

TELL_SECONDS = 0.5  # between two reports of progress
Tell = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Job:
    """What is done with every clip. key: SHA-256 of settings and weights. out: the folder of all results."""

    run: RunConfig
    pipeline: PipelineConfig
    out: Path
    key: str


@dataclass(frozen=True, slots=True)
class Task:
    """One clip to do. known: the key of a result that is there and still good if the content is what it was."""

    clip: Clip
    known: Line | None = None
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a task. again: another attempt may help, for the error is none of the clip's."""

    line: Line
    again: bool = False


class Worker:
    """Does clips. Networks are loaded with the first one."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._pipeline: Pipeline | None = None

    def process(self, task: Task, tell: Tell = lambda frames, of: None) -> Answer:
        """Process one clip; the error of a clip is part of the answer.

        tell: called with the number of further frames that are finished, and that of the clip, None where unknown.
        """
        begun = time.perf_counter()
        clip = task.clip
        warned: list[str] = []
        base = Line(
            path=clip.path, name=clip.name, key=None, status="failed", attempts=task.attempts, job=self._job.key
        )
        base = replace(base, signature=clip.signature())
        again = False
        with warnings.catch_warnings(record=True) as caught:
            try:
                line = self._unchanged(task, base) or self._done(clip, base, warned.extend, tell)
            except PoseError as error:
                line = replace(base, error=_one_line(str(error)))
            except Exception as error:  # a bug of ours or of a library is this clip's error, not the end of all
                line, again = replace(base, error=_one_line(f"{type(error).__name__}: {error}")), True
        warned += [str(one.message) for one in caught]
        warned += [NOBODY] if line.status == "ok" and not line.people else []
        seconds = round(time.perf_counter() - begun, 3)
        return Answer(replace(line, seconds=seconds, warnings=[_one_line(text) for text in warned]), again)

    def _unchanged(self, task: Task, base: Line) -> Line | None:
        """The line of an earlier result, where its file was touched or moved and has the content that it had."""
        if task.known is None:
            return None
        from pose.video import open_source

        run = self._job.run
        with open_source(task.clip.path, start=run.start, end=run.end, image_fps=run.image_fps) as source:
            if task.known.key != self._key(source):
                return None
        return replace(task.known, path=base.path, signature=base.signature)

    def _done(self, clip: Clip, base: Line, warn: Callable[[Iterable[str]], None], tell: Tell) -> Line:
        from pose.cache import open_cache
        from pose.system.device import seed_torch

        run = replace(self._job.run, video=clip.path, out=str(self._job.out / clip.name))
        seed_torch(self._job.pipeline.seed)  # so that no clip depends on those before
        with nullcontext() if run.cache == "off" else open_cache(run.cache, run.cache_size) as cache:
            done = run_any(run, self._networks, Host(_told(tell), warn, cache, heard=False))
            if cache is not None and cache.problem:
                warn([f"{cache.problem}; results are not cached"])
        return self._line(done, base)

    def _line(self, done: Done, base: Line) -> Line:
        error = "; ".join(done.problems)
        return replace(
            base,
            key=self._key(done.source),
            status="failed" if error else "ok",
            error=_one_line(error) if error else None,
            frames=done.tally.frames,
            people=done.tally.seen if done.stills else len(done.tally.ids),
            outputs=[path.relative_to(self._job.out).as_posix() for path in done.files],
            cached=done.known,
            video=_video_facts(done),
            quality=_quality_facts(done.tally),
            version=version("pose-run"),
            date=datetime.now(UTC).isoformat(timespec="seconds"),
        )

    def _key(self, source: "Source") -> str:
        from pose.cache.keys import hash_of

        return hash_of([self._job.key, source.content() or source.name])

    def _networks(self) -> "Pipeline":
        if self._pipeline is None:
            self._pipeline = make_pipeline(self._job)
        return self._pipeline


def make_pipeline(job: Job) -> "Pipeline":
    """The networks of a job. Raises PoseError."""
    import cv2

    from pose.pipeline import Pipeline
    from pose.system.progress import hidden_progress
    from pose_apps.support.intrinsics import read_intrinsics

    cv2.setNumThreads(1)  # the other cores are other workers'
    intrinsics = None if job.run.intrinsics is None else read_intrinsics(job.run.intrinsics)
    with hidden_progress(True):
        return Pipeline(job.pipeline, intrinsics=intrinsics, lazy=job.run.cache != "off")


def _told(
    tell: Tell,
) -> "Callable[[Iterable[FrameResult], Source, str], Iterator[FrameResult]]":
    """Passes results on and reports now and then how many there were."""

    def shown(results: "Iterable[FrameResult]", source: "Source", what: str) -> "Iterator[FrameResult]":
        count, last = 0, time.monotonic()
        for result in results:
            count += what == "poses"
            if (now := time.monotonic()) - last > TELL_SECONDS:
                tell(count, source.info.frame_count)
                count, last = 0, now
            yield result
        tell(count, source.info.frame_count)

    return shown


def _video_facts(done: Done) -> VideoFacts:
    info, tally = done.source.info, done.tally
    duration = 0.0 if done.stills or not tally.frames else tally.last_time - tally.first_time + 1 / info.fps
    return {"width": info.size[0], "height": info.size[1], "fps": round(info.fps, 6), "duration": round(duration, 6)}


def _quality_facts(tally: Tally) -> QualityFacts:
    return {
        "frames_without_people": tally.empty,
        "doubtful": sorted(tally.doubtful),
        "confidence": round(tally.confidence / tally.joints, 4) if tally.joints else None,
        "low_confidence": round(tally.guessed / tally.joints, 4) if tally.joints else None,
        "sigma_mm": round(tally.sigma / tally.lifted, 2) if tally.lifted else None,
        "camera_motion": tally.motion or None,
    }


def _one_line(text: str) -> str:
    return " ".join(text.split())
