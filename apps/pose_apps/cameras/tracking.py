"""Each camera by itself: 2D, tracks and 3D, kept on disk and as tracks."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pose.errors import PoseError

if TYPE_CHECKING:
    import threading

    from pose.camera_motion.verdict import CameraMotion
    from pose.files import ResultSpool
    from pose.multiview.scene import CameraRun
    from pose.multiview.types import Track
    from pose.pipeline import Pipeline
    from pose.types import FrameResult
    from pose.video import Source
    from pose_apps.support.host import Host
    from pose_apps.support.summary import Tally


LARGEST_TURN = 1.0  # degrees that a camera may turn in all; more than tracking errors of the background
LARGEST_ZOOM = 1.03  # longest over shortest focal length


@dataclass(frozen=True, slots=True)
class Seen:
    """What one camera saw, and the results of its own pipeline."""

    spool: "ResultSpool"
    run: "CameraRun"


def track_cameras(
    videos: Sequence[str],
    pipeline: "Pipeline",
    folder: Path,
    stack: ExitStack,
    host: "Host",
    stop: "threading.Event",
    tally: "Tally",
) -> list[Seen]:
    """Run the pipeline over every video. folder: for temporary files. stack: closes them.

    Raises PoseError for a video without frames, for a camera that moves, and for a video that shows what another one
    shows, frame for frame.
    """
    found: list[Seen] = []
    for row, video in enumerate(videos):
        seen = _track(row, video, pipeline, folder, stack, host, stop, tally)
        if stop.is_set():
            break
        for other, earlier in enumerate(found):
            if _same(seen.run.tracks, earlier.run.tracks):
                raise PoseError(f"{video}: has the same images as {videos[other]}; each camera needs its own video")
        found.append(seen)
    return found


def _track(
    row: int,
    video: str,
    pipeline: "Pipeline",
    folder: Path,
    stack: ExitStack,
    host: "Host",
    stop: "threading.Event",
    tally: "Tally",
) -> Seen:
    from pose.camera_motion.log import MotionLog
    from pose.files import ResultSpool
    from pose.multiview.collect import collect_tracks
    from pose.multiview.scene import CameraRun
    from pose.video import open_source
    from pose.video.container import Target
    from pose.video.recorded import recorded_at
    from pose.video.waveform import read_waveform

    motion = MotionLog()
    with open_source(video) as source:
        wave = read_waveform(source.sound) if source.sound is not None else None
        recorded = recorded_at(Target(f"file:{video}", video))
        camera = pipeline.camera(source.info.size, source.info.focal_35mm)
        spool = ResultSpool(folder, pipeline.skeleton)
        stack.callback(spool.close)
        times = []
        results = _results(source, pipeline, stop, host)
        for result in host.shown(results, source, f"camera {row + 1}"):
            spool.write(result)
            motion.add(result.people)
            times.append(result.time)
            if row == 0:
                tally.add(result, pipeline.skeleton)
        host.warn(source.problems)
    if not times:
        raise PoseError(f"{video}: no frame could be read")
    if motion.measured and not stop.is_set():
        check_still(video, motion.solve()[1])
    steps = np.diff(times)
    fps = 1 / float(np.median(steps)) if len(steps) else source.info.fps
    tracks = collect_tracks(spool, pipeline.skeleton, row)
    return Seen(spool, CameraRun(tracks, (times[0], times[-1]), fps, camera, wave, recorded))


def check_still(video: str, motion: "CameraMotion") -> None:
    """Raises PoseError for a camera that moves. An unknown motion passes: the reprojection error shows it later."""
    from pose.camera_motion.verdict import TRANSLATING

    turn = max(motion.pan, motion.tilt, motion.roll)
    carried = motion.kind == TRANSLATING
    if motion.moves and (carried or turn > LARGEST_TURN or motion.zoom > LARGEST_ZOOM):
        how = "is carried" if carried else "zooms" if turn <= LARGEST_TURN else f"turns by {turn:.0f} degrees"
        raise PoseError(
            f"{video}: the camera {how}; several cameras must stand still (--camera fixed skips this check)"
        )


def _results(source: "Source", pipeline: "Pipeline", stop: "threading.Event", host: "Host") -> "Iterator[FrameResult]":
    if host.cache is None:
        return pipeline.run(source, stop=stop)
    from pose.cache import CachedRun

    return CachedRun(pipeline, source, host.cache).results(stop)


def _same(tracks: "list[Track]", others: "list[Track]") -> bool:
    """Whether two videos show the very same motion at the same pixels: one video under two names."""
    if not tracks or len(tracks) != len(others):
        return False
    return all(
        len(one) == len(other) and np.array_equal(one.keypoints, other.keypoints)
        for one, other in zip(tracks, others, strict=True)
    )
