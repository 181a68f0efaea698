"""Videos of several cameras: 2D pose, tracking and 3D pose of each, in parallel, and `pose.several`, their result."""

import queue
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import ExitStack, closing
from contextvars import copy_context
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pose.config import PipelineConfig
from pose.errors import PoseError, UsageError
from pose.multiview.calibration_files import check_cameras, read_cameras
from pose.multiview.collect import collect_tracks
from pose.multiview.scene import CameraRun, Given, find_scene, results_of
from pose.multiview.types import ViewTrack
from pose.multiview.videos import MAX_CAMERAS, MIN_CAMERAS, unique_names
from pose.pipeline import Pipeline
from pose.result import Result
from pose.structures.frame_store import ResultStore
from pose.structures.types import FrameResult
from pose.utils.device import resolve_device
from pose.utils.resources import WORKER_MEGABYTES, available_cores, available_megabytes
from pose.video import Source, open_source
from pose.video.container import Target
from pose.video.recorded import recorded_at
from pose.video.waveform import read_waveform
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.verdict import TRANSLATING, CameraMotion
from pose.world.given import check_heights

MAX_ROTATION_DEGREES = 1.0  # of a static camera; larger than tracking errors of the background
MAX_ZOOM_RATIO = 1.03  # maximum ratio of the longest to the shortest focal length

# Runs a pipeline on the source of a camera. Arguments: index of the camera, source, pipeline.
RunFunction = Callable[[int, Source, Pipeline], Iterable[FrameResult]]


@dataclass(frozen=True, slots=True)
class CameraResults:
    """The results of one camera's own pipeline."""

    index: int  # index of the camera
    spool: ResultStore  # results of all frames, in a temporary file
    run: CameraRun  # tracks, times and camera parameters of the run
    problems: list[str]  # warnings about the video


def camera_workers(count: int, device: str) -> int:
    """Return the number of cameras to process in parallel, limited by cores and memory; 1 on a GPU."""
    if resolve_device(device) != "cpu":
        return 1
    memory = available_megabytes()
    room = count if memory is None else int(memory // WORKER_MEGABYTES)
    return max(1, min(count, available_cores(), room))


def with_threads(config: PipelineConfig, workers: int) -> PipelineConfig:
    """Return `config` with the CPU threads limited to an equal share of the cores for each of `workers` workers."""
    return replace(config, threads=max(1, min(config.threads, available_cores() // workers)))


@dataclass(frozen=True, slots=True)
class CameraRuns:
    """Runs of the pipeline on the videos of several cameras."""

    videos: Sequence[str]  # path of each camera's video
    pipeline: Pipeline  # pipeline of the first worker; further workers build their own
    # Function of a camera's index, its source and a pipeline that returns the results of all frames.
    run_camera: RunFunction
    folder: Path  # folder for temporary files
    stop: threading.Event  # event that stops all workers at their next frame
    workers: int = 1  # number of threads, each of which processes one camera at a time

    def collect(self, stack: ExitStack) -> list[CameraResults]:
        """Run the pipeline on all videos.

        Returns:
            Results of each video, in the order of the videos; of fewer videos if `stop` is set.

        Raises:
            PoseError: If a video has no readable frames, a camera moves, or two videos show the same images.
        """
        spools = []
        for _ in self.videos:
            spools.append(ResultStore(self.folder, self.pipeline.skeleton))
            stack.callback(spools[-1].close)
        by_camera: dict[int, CameraResults] = {}
        with closing(self._tracked(spools)) as tracked:
            for results in tracked:
                for other, earlier in by_camera.items():
                    if _same(results.run.tracks, earlier.run.tracks):
                        one, two = sorted((results.index, other))
                        raise PoseError(
                            f"{self.videos[two]}: has the same images as {self.videos[one]}; "
                            "each camera needs its own video"
                        )
                by_camera[results.index] = results
        return [by_camera[row] for row in sorted(by_camera)]

    def _tracked(self, spools: list[ResultStore]) -> Generator[CameraResults, None, None]:
        """Yield the results of each camera as soon as they are complete. An error of one camera stops the others."""
        if self.workers == 1:
            for row in range(len(self.videos)):
                results = self._track(row, spools[row], self.pipeline)
                if results is not None:
                    yield results
                if self.stop.is_set():
                    return
            return
        rows, done = iter(range(len(self.videos))), queue.SimpleQueue[CameraResults | BaseException | None]()
        rows_lock = threading.Lock()

        def work(number: int) -> None:
            try:
                own = self.pipeline if number == 0 else self.pipeline.copy_for_thread()
                while own is not None and not self.stop.is_set():
                    with rows_lock:
                        row = next(rows, None)
                    if row is None:
                        break
                    if (results := self._track(row, spools[row], own)) is not None:
                        done.put(results)
                done.put(None)
            except BaseException as error:  # raised again in the waiting thread
                done.put(error)

        threads = [
            threading.Thread(
                target=copy_context().run, args=(work, number), name=f"camera worker {number}", daemon=True
            )
            for number in range(self.workers)
        ]
        for thread in threads:
            thread.start()
        try:
            running = self.workers
            while running:
                item = done.get()
                if isinstance(item, BaseException):
                    raise item
                if item is None:
                    running -= 1
                else:
                    yield item
        except BaseException:
            self.stop.set()
            raise
        finally:
            for thread in threads:
                thread.join()

    def _track(self, row: int, spool: ResultStore, pipeline: Pipeline) -> CameraResults | None:
        """Return the results of one camera; None if the run was stopped before the first frame."""
        video, motion = self.videos[row], MotionLog()
        with open_source(video) as source:
            wave = read_waveform(source.sound) if source.sound is not None else None
            recorded = recorded_at(Target(f"file:{video}", video))
            camera = pipeline.camera(source.info.size, source.info.focal_35mm)
            times = []
            for result in self.run_camera(row, source, pipeline):
                spool.write(result)
                motion.add(result.people)
                times.append(result.time)
            problems = list(source.problems)
        if not times and self.stop.is_set():
            return None
        if not times:
            raise PoseError(f"{video}: no frame could be read")
        if motion.measured and not self.stop.is_set():
            check_static(video, motion.solve()[1])
        steps = np.diff(times)
        fps = 1 / float(np.median(steps)) if len(steps) else source.info.fps
        tracks = collect_tracks(spool, pipeline.skeleton, row, self.folder)
        run = CameraRun(tracks, (times[0], times[-1]), fps, camera, wave, recorded, video)
        return CameraResults(row, spool, run, problems)


def check_static(video: str, motion: CameraMotion) -> None:
    """Check that a camera is static; unknown motion passes, as the reprojection error reveals it later."""
    rotation = max(motion.pan, motion.tilt, motion.roll)
    carried = motion.kind == TRANSLATING
    if motion.moves and (carried or rotation > MAX_ROTATION_DEGREES or motion.zoom > MAX_ZOOM_RATIO):
        turns = rotation > MAX_ROTATION_DEGREES
        how = "is carried" if carried else f"turns by {rotation:.0f} degrees" if turns else "zooms"
        raise PoseError(f"{video}: the camera {how}; several cameras must be static (--camera fixed skips this check)")


def _same(tracks: list[ViewTrack], others: list[ViewTrack]) -> bool:
    """Return whether the tracks of two videos are identical to the pixel, which means that the videos are the same."""
    if not tracks or len(tracks) != len(others):
        return False
    return all(
        len(one) == len(other) and np.array_equal(one.keypoints, other.keypoints)
        for one, other in zip(tracks, others, strict=True)
    )


def several(
    videos: Sequence[str | Path],
    *,
    pipeline: Pipeline | None = None,
    cameras: str | Path | None = None,
    offsets: Sequence[float] | None = None,
    height: float | None = None,
) -> Result:
    """Process videos of several fixed cameras that film the same moment, as `pose-run left.mp4 right.mp4` does.

    Args:
        videos: 2 to 8 paths, one for each camera.
        pipeline: Pipeline that processes each video; default `Pipeline()`. Videos are processed in parallel threads,
            as many as cores and memory allow. With a GPU or a custom detector they are processed one after another.
        cameras: Calibration file; None calibrates the cameras from the motion of the people.
        offsets: Start time of each video in s on a common clock; None estimates them.
        height: Body height in m of the person seen longest, which sets the scale; None uses the lifter's scale.

    Returns:
        All people in common world coordinates, each with one id in all cameras. `Result.cameras` has the cameras.

    Raises:
        PoseError: If a video cannot be read, a camera moves, two videos show the same images, or the cameras cannot be
            calibrated.
        UsageError: If there are fewer than 2 or more than 8 videos, if the number of `offsets` differs from that of the
            videos, or if both `cameras` and `height` are given.
    """
    if isinstance(videos, str | Path) or not all(isinstance(video, str | Path) for video in videos):
        raise UsageError("videos: expected a list of paths, one for each camera")
    paths = [Path(video) for video in videos]
    if not MIN_CAMERAS <= len(paths) <= MAX_CAMERAS:
        raise UsageError(f"videos: got {len(paths)}; allowed: {MIN_CAMERAS} to {MAX_CAMERAS}")
    if offsets is not None and len(offsets) != len(paths):
        raise UsageError(f"offsets: got {len(offsets)} for {len(paths)} videos; give one per video")
    if offsets is not None and not np.isfinite(np.asarray(offsets, np.float64)).all():
        raise UsageError("offsets: expected finite seconds")
    if height is not None:
        check_heights({None: height})
    if height is not None and cameras is not None:
        raise UsageError(f"height: the calibration in {cameras} already sets the scale; leave out one of the two")
    names = unique_names([path.stem for path in paths])
    if cameras is not None:
        check_cameras(Path(cameras), names)
    for path in paths:
        open_source(str(path)).close()
    device = "auto" if pipeline is None else pipeline.config.device
    workers = camera_workers(len(paths), device)
    pipeline = pipeline or Pipeline(with_threads(PipelineConfig(), workers))
    stop = threading.Event()

    def run_camera(index: int, source: Source, pipeline: Pipeline) -> Iterable[FrameResult]:
        return pipeline.run(source, stop=stop)

    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="pose-")))
        by_camera = CameraRuns(list(map(str, paths)), pipeline, run_camera, folder, stop, workers).collect(stack)
        for problem in (problem for camera_result in by_camera for problem in camera_result.problems):
            warnings.warn(problem, stacklevel=2)
        runs = [camera_result.run for camera_result in by_camera]
        sizes = [run.camera.size for run in runs]
        calibration = None if cameras is None else read_cameras(Path(cameras), names, sizes)
        setup = Given(calibration, offsets=None if offsets is None else list(offsets), height=height)
        scene = find_scene(runs, names, setup)
        info = pipeline.run_info(", ".join(map(str, paths)), scene.line.fps, sizes[0])
        results, full_info = results_of(scene, [camera_result.spool for camera_result in by_camera], info)
        return Result.of(results, full_info)
