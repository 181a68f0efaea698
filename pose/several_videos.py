"""One `Result` from several videos of the same scene: `pose.several`."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pose.errors import PoseError, UsageError
from pose.files import ResultSpool
from pose.multiview.calibration_files import read_cameras
from pose.multiview.collect import collect_tracks
from pose.multiview.scene import CameraRun, Given, find_scene, results_of
from pose.pipeline import Pipeline
from pose.result import Result
from pose.video import open_source
from pose.video.container import Target
from pose.video.recorded import recorded_at
from pose.video.waveform import read_waveform

MOST_CAMERAS = 8


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
        pipeline: Of each camera; the defaults of `Pipeline` if None.
        cameras: Calibration file; None calibrates from the people.
        offsets: Start times of the cameras in s; None estimates them.
        height: Height in m of the person seen longest, which sets the scale; None takes it from the lifter.

    Returns:
        All people in one world, with one id in all cameras. `table.run.cameras` holds the cameras.

    Raises:
        PoseError: If a video cannot be read, or the cameras cannot be found.
        UsageError: For arguments that do not fit each other.
    """
    paths = [Path(video) for video in videos]
    if not 2 <= len(paths) <= MOST_CAMERAS:
        raise UsageError(f"videos: got {len(paths)}; allowed: 2 to {MOST_CAMERAS}")
    if offsets is not None and len(offsets) != len(paths):
        raise UsageError(f"offsets: got {len(offsets)} for {len(paths)} videos; give one per video")
    if height is not None and cameras is not None:
        raise UsageError(f"height: the calibration in {cameras} already sets the scale")
    for path in paths:
        open_source(str(path)).close()
    pipeline = pipeline or Pipeline()
    names = [path.stem for path in paths]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="pose-")))
        spool = ResultSpool(folder, pipeline.skeleton)
        stack.callback(spool.close)
        runs = [_run(index, path, pipeline, folder, spool if index == 0 else None) for index, path in enumerate(paths)]
        sizes = [run.camera.size for run in runs]
        calibration = None if cameras is None else read_cameras(Path(cameras), names, sizes)
        given = Given(calibration, offsets=None if offsets is None else list(offsets), height=height)
        scene = find_scene(runs, names, given)
        info = pipeline.run_info(", ".join(map(str, paths)), scene.line.fps, sizes[0])
        results, known = results_of(scene, spool, info, pipeline.skeleton)
        return Result.of(results, known)


def _run(index: int, path: Path, pipeline: Pipeline, folder: Path, kept: ResultSpool | None) -> CameraRun:
    """Process one camera.

    Args:
        kept: Where its results are stored; None for a temporary file.
    """
    with ExitStack() as stack:
        source = stack.enter_context(open_source(str(path)))
        spool = kept or ResultSpool(folder, pipeline.skeleton)
        if kept is None:
            stack.callback(spool.close)
        times = []
        for result in pipeline.run(source):
            spool.write(result)
            times.append(result.time)
        if not times:
            raise PoseError(f"{path}: no frame could be read")
        return CameraRun(
            collect_tracks(spool, pipeline.skeleton, index),
            (times[0], times[-1]),
            1 / float(np.median(np.diff(times))) if len(times) > 1 else source.info.fps,
            pipeline.camera(source.info.size, source.info.focal_35mm),
            read_waveform(source.sound) if source.sound is not None else None,
            recorded_at(Target(f"file:{path}", str(path))),
            str(path),
        )
