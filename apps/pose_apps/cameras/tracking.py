"""2D, tracks and 3D of each camera separately."""

import queue
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pose.errors import PoseError
from pose_apps.support.summary import Tally

if TYPE_CHECKING:
    from pose.cache import Found
    from pose.camera_motion.verdict import CameraMotion
    from pose.config import PipelineConfig
    from pose.files import ResultSpool
    from pose.multiview.scene import CameraRun
    from pose.multiview.types import Track
    from pose.pipeline import Pipeline
    from pose.types import FrameResult
    from pose.video import Source
    from pose_apps.support.host import Host


LARGEST_TURN = 1.0  # maximum total rotation of a static camera, degrees; larger than tracking errors of the background
LARGEST_ZOOM = 1.03  # maximum ratio of the longest to the shortest focal length


@dataclass(frozen=True, slots=True)
class Seen:
    """The results of one camera's own pipeline.

    Attributes:
        spool: The results.
        run: Of the solver.
        known: What of them the cache knew.
        tally: Of its frames.
        problems: Warnings.
    """

    spool: "ResultSpool"
    run: "CameraRun"
    known: "Found"
    tally: Tally
    problems: list[str]


def camera_workers(count: int, device: str) -> int:
    """Cameras that are processed at the same time, as cores and memory allow; one where networks run on a GPU."""
    from pose.system.device import resolve_device
    from pose_apps.support.resources import WORKER_MEGABYTES, available_cores, available_megabytes

    if resolve_device(device) != "cpu":
        return 1
    memory = available_megabytes()
    room = count if memory is None else int(memory // WORKER_MEGABYTES)
    return max(1, min(count, available_cores(), room))


def with_threads(config: "PipelineConfig", workers: int) -> "PipelineConfig":
    """The configuration of each of some workers, which share the cores."""
    from pose_apps.support.resources import available_cores

    return replace(config, threads=max(1, min(config.threads, available_cores() // workers)))


def track_cameras(
    videos: Sequence[str],
    pipeline: "Pipeline",
    folder: Path,
    stack: ExitStack,
    host: "Host",
    stop: threading.Event,
    workers: int = 1,
) -> list[Seen]:
    """Run the pipeline on every video.

    Args:
        videos: One for each camera.
        pipeline: Of the first worker; further ones get their own.
        folder: For temporary files.
        stack: Closes them.
        host: As of a clip.
        stop: Ends all workers at their next frame.
        workers: Cameras processed at the same time, each by a thread.

    Returns:
        One for each video; fewer if `stop` is set.

    Raises:
        PoseError: If a video has no frames, its camera moves, or two videos have the same images.
    """
    from pose.files import ResultSpool

    spools = []
    for _ in videos:
        spools.append(ResultSpool(folder, pipeline.skeleton))
        stack.callback(spools[-1].close)
    found: dict[int, Seen] = {}
    with closing(_tracked(videos, spools, pipeline, host, stop, workers)) as tracked:
        for row, seen in tracked:
            for other, earlier in found.items():
                if _same(seen.run.tracks, earlier.run.tracks):
                    one, two = sorted((row, other))
                    raise PoseError(
                        f"{videos[two]}: has the same images as {videos[one]}; each camera needs its own video"
                    )
            found[row] = seen
    for _, seen in sorted(found.items()):
        host.warn(seen.problems)
    return [found[row] for row in sorted(found)]


def _tracked(
    videos: Sequence[str],
    spools: "list[ResultSpool]",
    pipeline: "Pipeline",
    host: "Host",
    stop: threading.Event,
    workers: int,
) -> Generator[tuple[int, Seen], None, None]:
    """Each camera, as soon as it is done. An error of one of them ends all."""
    from pose.pipeline import Pipeline

    if workers == 1:
        for row, video in enumerate(videos):
            seen = _track(row, video, spools[row], pipeline, host, stop)
            if seen is not None:
                yield row, seen
            if stop.is_set():
                return
        return
    rows, done = iter(range(len(videos))), queue.SimpleQueue[tuple[int, Seen] | BaseException | None]()
    turn = threading.Lock()

    def work(number: int) -> None:
        try:
            own = pipeline if number == 0 else Pipeline(pipeline.config, lazy=host.cache is not None)
            while not stop.is_set():
                with turn:
                    row = next(rows, None)
                if row is None:
                    break
                if (seen := _track(row, videos[row], spools[row], own, host, stop)) is not None:
                    done.put((row, seen))
            done.put(None)
        except BaseException as error:  # it is raised in the thread that waits
            done.put(error)

    threads = [
        threading.Thread(target=copy_context().run, args=(work, number), name=f"camera worker {number}", daemon=True)
        for number in range(workers)
    ]
    for thread in threads:
        thread.start()
    try:
        left = workers
        while left:
            answer = done.get()
            if isinstance(answer, BaseException):
                raise answer
            if answer is None:
                left -= 1
            else:
                yield answer
    except BaseException:
        stop.set()
        raise
    finally:
        for thread in threads:
            thread.join()


def _track(
    row: int,
    video: str,
    spool: "ResultSpool",
    pipeline: "Pipeline",
    host: "Host",
    stop: threading.Event,
) -> Seen | None:
    """One camera; None if it was stopped before its first frame."""
    from pose.camera_motion.log import MotionLog
    from pose.multiview.collect import collect_tracks
    from pose.multiview.scene import CameraRun
    from pose.video import open_source
    from pose.video.container import Target
    from pose.video.recorded import recorded_at
    from pose.video.waveform import read_waveform

    motion, tally = MotionLog(), Tally()
    with open_source(video) as source:
        wave = read_waveform(source.sound) if source.sound is not None else None
        recorded = recorded_at(Target(f"file:{video}", video))
        camera = pipeline.camera(source.info.size, source.info.focal_35mm)
        times = []
        results, known = _results(source, pipeline, stop, host)
        for result in host.shown(results, source, f"camera {row + 1}"):
            spool.write(result)
            motion.add(result.people)
            times.append(result.time)
            tally.add(result, pipeline.skeleton)
        problems = list(source.problems)
    if not times and stop.is_set():
        return None
    if not times:
        raise PoseError(f"{video}: no frame could be read")
    if motion.measured and not stop.is_set():
        check_still(video, motion.solve()[1])
    steps = np.diff(times)
    fps = 1 / float(np.median(steps)) if len(steps) else source.info.fps
    tracks = collect_tracks(spool, pipeline.skeleton, row)
    run = CameraRun(tracks, (times[0], times[-1]), fps, camera, wave, recorded, video)
    return Seen(spool, run, known, tally, problems)


def check_still(video: str, motion: "CameraMotion") -> None:
    """Check that a camera is static. Unknown motion passes: the reprojection error reveals it later.

    Raises:
        PoseError: If it moves.
    """
    from pose.camera_motion.verdict import TRANSLATING

    turn = max(motion.pan, motion.tilt, motion.roll)
    carried = motion.kind == TRANSLATING
    if motion.moves and (carried or turn > LARGEST_TURN or motion.zoom > LARGEST_ZOOM):
        how = "is carried" if carried else "zooms" if turn <= LARGEST_TURN else f"turns by {turn:.0f} degrees"
        raise PoseError(
            f"{video}: the camera {how}; several cameras must stand still (--camera fixed skips this check)"
        )


def _results(
    source: "Source", pipeline: "Pipeline", stop: threading.Event, host: "Host"
) -> "tuple[Iterator[FrameResult], Found]":
    if host.cache is None:
        return pipeline.run(source, stop=stop), "nothing"
    from pose.cache import CachedRun

    run = CachedRun(pipeline, source, host.cache)
    return run.results(stop), run.found


def _same(tracks: "list[Track]", others: "list[Track]") -> bool:
    """Whether two videos have identical motion at identical pixels, hence are the same video."""
    if not tracks or len(tracks) != len(others):
        return False
    return all(
        len(one) == len(other) and np.array_equal(one.keypoints, other.keypoints)
        for one, other in zip(tracks, others, strict=True)
    )
