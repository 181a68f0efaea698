"""One run of several cameras that film the same moment: each in its own pipeline, fused to one result."""

import queue
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from pose.errors import PoseError, UsageError
from pose.multiview.calibration_files import check_cameras, read_cameras, read_lab, size_notes
from pose.multiview.fitting import Calibrations
from pose.multiview.results import MultiviewResults
from pose.multiview.scene import CameraRun, Given, RigScene, find_scene, results_of
from pose.multiview.stored import collect_tracks
from pose.multiview.types import ViewTrack
from pose.multiview.videos import camera_names
from pose.results import RunInfo
from pose.results.cache import Cache
from pose.results.cache.run import CachedRun, Found
from pose.results.edits import Edit
from pose.results.edits.plan import EditPlan, StoredFrames
from pose.results.run import Progress, RunPipeline, unreported
from pose.structures.result_store import ResultStore
from pose.structures.types import F64
from pose.utils.device import resolve_device
from pose.utils.resources import WORKER_MEGABYTES, available_cores, available_megabytes
from pose.video import open_source
from pose.video.container import Target
from pose.video.recorded import recorded_at
from pose.video.waveform import read_waveform
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.verdict import TRANSLATING, CameraMotion
from pose.world.given import check_heights

MAX_ROTATION_DEGREES = 1.0  # of a static camera; larger than tracking errors of the background
MAX_ZOOM_RATIO = 1.03  # maximum ratio of the longest to the shortest focal length


@dataclass(frozen=True, slots=True)
class CameraResults:
    """The results of one camera's own pipeline."""

    index: int  # index of the camera
    spool: ResultStore  # results of all frames, in a temporary file
    run: CameraRun  # tracks, times and camera parameters of the run
    problems: list[str]  # warnings about the video
    cached: Found  # part of the results that was read from the cache
    cut_short: str | None = None  # message that the end of the video is missing; None if it is complete
    plan: EditPlan | None = None  # edits that are given in this camera; None without edits


def camera_workers(count: int, device: str) -> int:
    """Return the number of cameras to process in parallel, limited by cores and memory; 1 on a GPU."""
    if resolve_device(device) != "cpu":
        return 1
    memory = available_megabytes()
    room = count if memory is None else int(memory // WORKER_MEGABYTES)
    return max(1, min(count, available_cores(), room))


class RecordedCameras:
    """Runs of the pipeline on videos of several cameras, fused to one result; must be closed."""

    scene: RigScene  # cameras and motions of all people; after `fuse`
    results: MultiviewResults  # results of all frames in world coordinates; after `fuse`
    info: RunInfo  # metadata of the run with cameras and world; after `fuse`

    def __init__(
        self,
        videos: Sequence[str],
        pipeline: RunPipeline,
        setup: Given,
        *,
        cache: Cache | None = None,
        stop: threading.Event | None = None,
        progress: Progress = unreported,
        folder: Path | None = None,
        workers: int = 1,
        edits: Sequence[Edit] = (),
        calibrations: Calibrations | None = None,
    ) -> None:
        """Take note of what is to be done: the videos, the first worker's pipeline, and what is known (`known_setup`).

        `progress` passes the results of a camera on; it is called in threads. Each of the `workers` processes one
        camera at a time. With a cache of the 2D, edits compute only 3D and cameras. `calibrations` are kept for further
        runs.
        """
        self.videos, self.names, self._setup = videos, camera_names(videos), setup
        self._pipeline, self._cache, self.stop = pipeline, cache, stop or threading.Event()
        self._progress, self._folder, self._workers, self._edits = progress, folder, workers, edits
        self._calibrations = calibrations
        self._stack = ExitStack()
        self.cameras: list[CameraResults] = []  # results of each camera, in the order of the videos

    @property
    def cut_short(self) -> str | None:
        """Message that the end of a video is missing; None if all are complete."""
        return next((camera.cut_short for camera in self.cameras if camera.cut_short), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()

    def track(self) -> list[CameraResults]:
        """Run the pipeline on all videos; on fewer if `stop` is set.

        Raises:
            PoseError: If a video has no readable frames, a camera moves, or two videos show the same images.
        """
        spools = []
        for _ in self.videos:
            spools.append(ResultStore(self._folder, self._pipeline.skeleton))
            self._stack.callback(spools[-1].close)
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
        self.cameras = [by_camera[row] for row in sorted(by_camera)]
        return self.cameras

    def fuse(self, up: F64 | None = None) -> None:
        """Find cameras, clocks and the motion of all people in one world, without cameras that do not fit.

        `up` (3,) is opposite to gravity in the frame of the first camera; None estimates it. PoseError if calibration
        fails.
        """
        plans = {camera.index: camera.plan for camera in self.cameras if camera.plan is not None}
        runs = [camera.run for camera in self.cameras]
        self.scene = find_scene(runs, self.names, self._setup, plans, self._calibrations)
        size = self.scene.rig.cameras[0].size
        videos = [self.videos[index] for index in self.scene.kept]
        info = self._pipeline.run_info(", ".join(videos), self.scene.line.fps, size)
        if up is not None and self.scene.kept[0]:
            raise PoseError(f"pitch and roll: their camera, the first one, does not fit: {self.scene.rig.notes[0]}")
        spools = [self.cameras[index].spool for index in self.scene.kept]
        self.results, self.info = results_of(self.scene, spools, info, up)

    @property
    def problems(self) -> list[str]:
        """Messages about edits that do not apply to this run."""
        return [problem for camera in self.cameras if camera.plan is not None for problem in camera.plan.problems]

    def _tracked(self, spools: list[ResultStore]) -> Generator[CameraResults, None, None]:
        """Yield the results of each camera as soon as they are complete. An error of one camera stops the others."""
        if self._workers == 1:
            for row in range(len(self.videos)):
                results = self._track(row, spools[row], self._pipeline)
                if results is not None:
                    yield results
                if self.stop.is_set():
                    return
            return
        rows, done = iter(range(len(self.videos))), queue.SimpleQueue[CameraResults | BaseException | None]()
        rows_lock = threading.Lock()

        def work(number: int) -> None:
            try:
                own = self._pipeline if number == 0 else self._pipeline.copy_for_thread()
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
            for number in range(self._workers)
        ]
        for thread in threads:
            thread.start()
        try:
            running = self._workers
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

    def _track(self, row: int, spool: ResultStore, pipeline: RunPipeline) -> CameraResults | None:
        """Return the results of one camera; None if the run was stopped before the first frame."""
        video, motion, camera_name = self.videos[row], MotionLog(), f"camera {row + 1}"
        with open_source(video) as source:
            wave = read_waveform(source.sound) if source.sound is not None else None
            recorded = recorded_at(Target(f"file:{video}", video))
            camera = pipeline.camera(source.info.size, source.info.focal_35mm)
            times = []
            cached, plan = CachedRun(pipeline, source, self._cache, self.stop), None
            with ExitStack() as stack:
                stack.callback(cached.close)
                if self._edits:
                    seen = cached.observed(self._folder, lambda results: self._progress(results, source, camera_name))
                    stack.callback(seen.close)
                    plan = EditPlan(
                        self._edits, StoredFrames(seen), pipeline.skeleton, camera, row + 1, len(self.videos)
                    )
                    results = cached.edited(seen, plan.apply if plan.changes_frames else None, plan.sides)
                    known = cached.found != "nothing"
                else:
                    results, known = cached.results(), True
                for result in self._progress(results, source, camera_name) if known else results:
                    spool.write(result)
                    motion.add(result.people)
                    times.append(result.time)
                problems, cut_short = list(source.problems), source.cut_short
                if plan is None:
                    cached.keep(spool)
        if not times and self.stop.is_set():
            return None
        if not times:
            raise PoseError(f"{video}: no frame could be read")
        if motion.measured and not self.stop.is_set():
            check_static(video, motion.solve()[1])
        steps = np.diff(times)
        fps = 1 / float(np.median(steps)) if len(steps) else source.info.fps
        tracks = collect_tracks(spool, pipeline.skeleton, row, self._folder)
        run = CameraRun(tracks, (times[0], times[-1]), fps, camera, wave, recorded, video)
        return CameraResults(row, spool, run, problems, cached.found, cut_short, plan)


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


def known_setup(
    videos: Sequence[str],
    calibration: str | Path | None,
    *,
    refine: bool = False,
    offsets: Sequence[float] | None = None,
    distance: tuple[int, int, float] | None = None,
    heights: Mapping[int | None, float] | None = None,
    keep_frame: bool = True,
) -> Given:
    """Check what is known about several cameras, and open each video once, before any work.

    `heights` are body heights in m by id of the person; None stands for the person seen longest. With `keep_frame`,
    vertical and floor are those of the calibration, if its file has a frame of its own. More than one source of the
    scale, or a wrong number of offsets, is a UsageError; a video or calibration that does not fit, a PoseError.
    """
    if offsets is not None and len(offsets) != len(videos):
        raise UsageError(
            f"offsets: got {len(offsets)} for {len(videos)} videos; give one per video, including the first"
        )
    if offsets is not None and not np.isfinite(np.asarray(offsets, np.float64)).all():
        raise UsageError("offsets: expected finite seconds")
    check_heights(heights or {})
    scales = [name for name, given in (("height", heights or None), ("distance", distance)) if given is not None]
    if len(scales) == 2:
        raise UsageError("height and distance: both set the scale; give only one")
    if scales and calibration is not None:
        raise UsageError(f"{scales[0]}: the calibration in {calibration} already sets the scale; leave out one of them")
    names = camera_names(videos)
    if calibration is not None:
        check_cameras(Path(calibration), names)
    sizes = []
    for video in videos:
        with open_source(video) as source:
            sizes.append(source.info.size)
    known = None if calibration is None else read_cameras(Path(calibration), names, sizes)
    lab = None if calibration is None or not keep_frame else read_lab(Path(calibration), names, sizes)
    notes = [] if calibration is None else size_notes(Path(calibration), names, sizes)
    return Given(known, refine, None if offsets is None else list(offsets), distance, heights or {}, lab, notes)
