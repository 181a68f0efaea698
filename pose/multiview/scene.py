"""Combination of the runs of several cameras into one scene: cameras, motions on one time line, and the world."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pose.multiview.calibrate import Known
from pose.multiview.calibration_files import camera_json
from pose.multiview.clocks import clock_hints
from pose.multiview.fused_motion import FusedMotion, scaled_motions
from pose.multiview.motions import (
    FusedTimes,
    find_motions,
    find_world,
    fused_times,
    on_time_line,
    scale_for_height,
    stature_of,
)
from pose.multiview.results import MultiviewResults
from pose.multiview.rig import Rig, find_rig, rescaled
from pose.multiview.types import ViewCamera, ViewTrack
from pose.results import RunInfo, WorldInfo
from pose.structures.camera import Camera
from pose.structures.types import F64, FrameResult
from pose.utils.json_values import Json
from pose.utils.shown import in_utf8
from pose.video.recorded import Recorded
from pose.video.waveform import Waveform
from pose.world.rules import SizeRules

NOT_RECORDED = Recorded()


@dataclass(frozen=True, slots=True)
class CameraRun:
    """Observations and metadata of one camera.

    Attributes:
        tracks: Tracks of the people in this camera.
        span: Times (first, last) s of the frames on the camera's own clock.
        fps: Median frame rate.
        camera: Intrinsics, assumed or given.
        wave: Sound of the video; None without sound.
        recorded: Recording time from the metadata of the file.
        video: Path of the video, for results; empty without a file.
    """

    tracks: list[ViewTrack]
    span: tuple[float, float]
    fps: float
    camera: Camera
    wave: Waveform | None = None
    recorded: Recorded = NOT_RECORDED
    video: str = ""


@dataclass(frozen=True, slots=True)
class Given:
    """Known calibration, clocks and lengths of a set-up.

    Attributes:
        cameras: Cameras of a calibration, in the order of the runs; None if they are unknown.
        refine: Whether the poses of `cameras` are initial values to refine; the intrinsics stay fixed.
        offsets: Start times of the cameras, s; None if they are unknown.
        distance: Indices of two cameras, and the distance between them in m; None if unknown.
        height: Body height in m of the person seen longest; None if unknown.
    """

    cameras: list[ViewCamera] | None = None
    refine: bool = False
    offsets: list[float] | None = None
    distance: tuple[int, int, float] | None = None
    height: float | None = None


@dataclass(frozen=True, slots=True)
class RigScene:
    """Cameras, people and time line of a scene.

    Attributes:
        rig: Cameras and people, with clocks on the time line.
        line: Times of the results.
        motions: Motions of all people.
        cameras: Cameras as stored in result files.
        scale_sigma: Standard deviation of the logarithm of the scale; 0 where a length was given.
    """

    rig: Rig
    line: FusedTimes
    motions: list[FusedMotion]
    cameras: list[dict[str, Json]]
    scale_sigma: float = 0.0


def find_scene(runs: Sequence[CameraRun], names: Sequence[str], given: Given) -> RigScene:
    """Find cameras and the motion of all people, at the given scale.

    Args:
        runs: Run of each camera.
        names: Names of the cameras, for messages and files.
        given: Known calibration, clocks and lengths.

    Raises:
        PoseError: If the cameras cannot be calibrated.
    """
    initial_cameras = [ViewCamera.of(one.camera) for one in runs] if given.cameras is None else list(given.cameras)
    if given.offsets is not None:
        first = given.offsets[0]
        initial_cameras = [
            replace(camera, offset=value - first) for camera, value in zip(initial_cameras, given.offsets, strict=True)
        ]
    calibrated = given.cameras is not None
    known = Known(calibrated and not given.refine, given.offsets is not None, calibrated and given.refine)
    hints = clock_hints([one.wave for one in runs], [one.recorded for one in runs])
    rig = find_rig([track for one in runs for track in one.tracks], initial_cameras, names, known, hints)
    if given.distance is not None:
        one, other, metres = given.distance
        rig = rescaled(rig, metres / max(math.dist(rig.cameras[one].position, rig.cameras[other].position), 1e-6))
    line = fused_times(rig.cameras, [run.span for run in runs], runs[0].fps)
    rig = on_time_line(rig, line)
    motions = find_motions(rig, line)
    if given.height is not None and motions:
        factor = scale_for_height(motions, given.height)
        rig = rescaled(rig, factor)
        motions = scaled_motions(motions, factor)
    cameras = [camera_json(*each) for each in zip(names, rig.cameras, rig.accuracy, rig.clocks, strict=True)]
    for camera, run in zip(cameras, runs, strict=True):
        if run.video:
            camera["video"] = in_utf8(run.video)
    return RigScene(rig, line, motions, cameras, _scale_sigma(given, len(motions)))


def _scale_sigma(given: Given, people: int) -> float:
    """Return the standard deviation of the logarithm of the scale."""
    # Without a given length, the lifter's bodies give the scale. Lifted bodies are average adults. The error of the
    # scale is therefore the deviation of the people's mean height from the average.
    measured = given.cameras is not None and not given.refine
    if measured or given.distance is not None or given.height is not None:
        return 0.0
    return SizeRules().uncertainty.adult_log_sigma / math.sqrt(max(people, 1))


def results_of(
    scene: RigScene, own: Sequence[Iterable[FrameResult]], info: RunInfo, up: F64 | None = None
) -> tuple[MultiviewResults, RunInfo]:
    """Return the results of all frames in one world, and the description of the run with cameras and world.

    Args:
        scene: Result of `find_scene`.
        own: Results of each camera, repeatedly iterable.
        info: Description of the run.
        up: (3,) upward direction in the first camera's axes; None to estimate it.
    """
    first = scene.rig.cameras[0]
    world = find_world(scene.motions, scene.line, up)
    results = MultiviewResults(scene.rig, scene.motions, scene.line, world, own, info)
    statures = [stature_of(motion) for motion in scene.motions]
    heights = {person: (height, height * scene.scale_sigma) for person, height in enumerate(statures, 1)}
    return results, replace(
        info,
        camera=Camera(first.matrix, True, first.size),
        world=WorldInfo(world, heights),
        cameras=tuple(scene.cameras),
    )
