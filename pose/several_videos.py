"""One `Result` from several videos of the same scene: `pose.several`."""

import threading
import warnings
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from pose.camera_runs import CameraRuns, camera_workers, with_threads
from pose.config import PipelineConfig
from pose.errors import UsageError
from pose.multiview.calibration_files import check_cameras, read_cameras
from pose.multiview.scene import Given, find_scene, results_of
from pose.multiview.videos import MAX_CAMERAS, MIN_CAMERAS, unique_names
from pose.pipeline import Pipeline
from pose.result import Result
from pose.structures.types import FrameResult
from pose.video import Source, open_source


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
    paths = [Path(video) for video in videos]
    if not MIN_CAMERAS <= len(paths) <= MAX_CAMERAS:
        raise UsageError(f"videos: got {len(paths)}; allowed: {MIN_CAMERAS} to {MAX_CAMERAS}")
    if offsets is not None and len(offsets) != len(paths):
        raise UsageError(f"offsets: got {len(offsets)} for {len(paths)} videos; give one per video")
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
        for problem in (problem for one in by_camera for problem in one.problems):
            warnings.warn(problem, stacklevel=2)
        runs = [one.run for one in by_camera]
        sizes = [run.camera.size for run in runs]
        calibration = None if cameras is None else read_cameras(Path(cameras), names, sizes)
        given = Given(calibration, offsets=None if offsets is None else list(offsets), height=height)
        scene = find_scene(runs, names, given)
        info = pipeline.run_info(", ".join(map(str, paths)), scene.line.fps, sizes[0])
        results, known = results_of(scene, [one.spool for one in by_camera], info)
        return Result.of(results, known)
