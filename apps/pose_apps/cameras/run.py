"""Processing of several videos of one scene to people in one common world frame."""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import UsageError
from pose.utils.written_files import check_not_input
from pose_apps.cameras.options import CamerasConfig, camera_names, read_distance, read_offsets
from pose_apps.cameras.tracking import TalliedCamera, track_cameras
from pose_apps.support.interrupts import Interrupts
from pose_apps.support.summary import Tally
from pose_apps.support.world import read_heights, read_up, world_line

if TYPE_CHECKING:
    from pose.multiview.results import MultiviewResults
    from pose.multiview.scene import RigScene
    from pose.pipeline import Pipeline
    from pose.results import RunInfo
    from pose.results.cache.run import Found
    from pose.results.cameras import ResultCamera
    from pose.structures.skeletons import Skeleton
    from pose.structures.types import FrameResult
    from pose_apps.support.outputs import Outputs
    from pose_apps.support.run_context import RunContext


@dataclass(frozen=True, slots=True)
class CamerasRequest:
    """Options for processing several cameras."""

    videos: list[str]  # video file of each camera
    cameras: CamerasConfig  # options of the cameras
    height: str | None  # body height of the person seen longest, m, as text such as "1.82"; None if unknown
    pitch: float | None  # pitch of the first camera, degrees, positive if it looks up; None if unknown
    roll: float | None  # clockwise roll of the first camera, degrees; None if unknown
    refine: bool = False  # whether to refine the camera poses of a given calibration. Its intrinsics are fixed


@dataclass(frozen=True, slots=True)
class CamerasOutcome:
    """Results of processing several cameras."""

    tally: Tally  # statistics of the 3D result, and of the 2D joints in all cameras
    files: list[Path]  # written files
    lines: list[str]  # lines of text for the summary
    cameras: "list[ResultCamera]"  # calibrated cameras
    size: tuple[int, int]  # (width, height) of the images of the first camera, px
    fps: float  # frame rate of the result, frames/s
    cached: "Found"  # results found in the cache: "nothing", "people" (2D only) or "everything"
    problems: list[str] = field(default_factory=list)  # reasons why results are incomplete


def run_cameras(
    request: CamerasRequest,
    networks: "Callable[[], Pipeline]",
    outputs: "Outputs",
    context: "RunContext",
    overwrite: bool,
    workers: int = 1,
) -> CamerasOutcome:
    """Process the videos of several cameras into one result."""
    from pose.results.cameras import CAMERAS_FILE, cameras_text, result_cameras
    from pose.results.recorded import write_results

    check_not_input([*outputs.files.values(), outputs.folder / CAMERAS_FILE], request.videos)
    if not overwrite:
        outputs.check_free()
    names = camera_names(request.videos)
    check_request(request, names)
    check_videos(request.videos)
    with (
        outputs.ready_folder([CAMERAS_FILE]) as written,
        ExitStack() as stack,
        Interrupts(context.handles_interrupts) as interrupts,
    ):
        pipeline, tally = networks(), Tally()
        with interrupts.raised_after(1):
            seen = track_cameras(request.videos, pipeline, written.folder, stack, context, interrupts.stop, workers)
        if interrupts.stop.is_set():
            raise KeyboardInterrupt("no results written")
        with interrupts.raised_after(0):
            scene = find_scene(request, names, seen, context)
            results, info, lines = _results(request, scene, seen, pipeline)
            texts = {written.folder / CAMERAS_FILE: cameras_text(scene.cameras)}
            write_results(results, info, written.files, texts=texts, seen=partial(_count, tally, info.skeleton))
            if "overlay" in written.files:
                _draw(request.videos, results, scene, written.files["overlay"], context)
        kept = outputs.settle(written, complete=True)
    files = [path for path in (*kept.files.values(), kept.folder / CAMERAS_FILE) if path.exists()]
    tally = replace(with_joints_of(tally, [one.tally for one in seen]), complete=True)
    cached = min((one.cached for one in seen), key=("nothing", "people", "everything").index)
    return CamerasOutcome(tally, files, lines, result_cameras(info), info.camera.size, info.fps, cached)


def with_joints_of(tally: Tally, cameras: Sequence[Tally]) -> Tally:
    """Return a copy of `tally` with the statistics of the 2D joints in all cameras."""
    return replace(
        tally,
        joints=sum(camera.joints for camera in cameras),
        low_confidence_joints=sum(camera.low_confidence_joints for camera in cameras),
        score_sum=sum(camera.score_sum for camera in cameras),
    )


def check_request(request: CamerasRequest, names: Sequence[str]) -> None:
    """Check before any work that the options can be combined."""
    cameras = request.cameras
    if cameras.distance is not None:
        read_distance(cameras.distance, names)
    offsets = read_offsets(cameras.offsets)
    if offsets is not None and len(offsets) != len(names):
        raise UsageError(
            f"offsets: got {len(offsets)} for {len(names)} videos; give one per video, including the first"
        )
    scales = [name for name, given in (("height", request.height), ("distance", cameras.distance)) if given is not None]
    if len(scales) == 2:
        raise UsageError("height and distance: both set the scale; give only one")
    if scales and cameras.file is not None:
        raise UsageError(f"{scales[0]}: the calibration in {cameras.file} already sets the scale")
    if cameras.file is not None:
        from pose.multiview.calibration_files import check_cameras

        check_cameras(cameras.file, names)


def check_videos(videos: Sequence[str]) -> None:
    """Check before any work that all videos can be opened."""
    from pose.video import open_source

    for video in videos:
        open_source(video).close()


def find_scene(
    request: CamerasRequest, names: Sequence[str], seen: Sequence[TalliedCamera], context: "RunContext"
) -> "RigScene":
    """Estimate intrinsics, poses and clocks of the cameras, and the motion of all people in 3D."""
    from pose.multiview.calibration_files import read_cameras
    from pose.multiview.scene import Given, find_scene

    options, runs = request.cameras, [camera_results.run for camera_results in seen]
    scene = find_scene(
        runs,
        names,
        Given(
            None if options.file is None else read_cameras(options.file, names, [run.camera.size for run in runs]),
            request.refine,
            read_offsets(options.offsets),
            None if options.distance is None else read_distance(options.distance, names),
            _height(request.height),
        ),
    )
    context.warn(scene.rig.notes)
    return scene


def _height(text: str | None) -> float | None:
    heights = read_heights(text)
    if not heights:
        return None
    if list(heights) != [None]:
        raise UsageError(f"height: expected one height, of the person seen longest by several cameras, got {text!r}")
    return heights[None]


def _results(
    request: CamerasRequest, scene: "RigScene", seen: Sequence[TalliedCamera], pipeline: "Pipeline"
) -> "tuple[MultiviewResults, RunInfo, list[str]]":
    from pose.multiview.scene import results_of

    info = pipeline.run_info(", ".join(request.videos), scene.line.fps, scene.rig.cameras[0].size)
    up = read_up(request.pitch, request.roll)
    results, placed_info = results_of(scene, [one.spool for one in seen], info, up)
    assert placed_info.world is not None
    return results, placed_info, [*camera_lines(scene), world_line(placed_info.world)]


def camera_lines(scene: "RigScene") -> list[str]:
    """Summarise the calibration as lines of text: one about all cameras, and one about each camera."""
    people = len(scene.motions)
    shared = sum(len(tracks) > 1 for tracks in scene.rig.people)
    lines = [f"{len(scene.rig.cameras)} cameras, {people} people, {shared} of them seen by several cameras"]
    for row, (camera, entry) in enumerate(zip(scene.rig.cameras, scene.cameras, strict=True)):
        sigmas = scene.rig.accuracy[row]
        away = (
            ""
            if row == 0
            else f", {math.dist(camera.position, (0, 0, 0)):.2f} m from the first (+- {sigmas.position:.2f} m)"
        )
        by = "".join([", from ", " and ".join(scene.rig.clocks[row])]) if scene.rig.clocks[row] else ""
        lines.append(
            f"{entry['name']}: starts at {camera.offset:.3f} s (+- {1000 * sigmas.offset:.0f} ms{by}), focal length "
            f"{camera.focal:.0f} px{away}, rotation +- {sigmas.rotation:.1f} degrees, "
            f"reprojection error {sigmas.residual:.1f} px"
        )
    return lines


def _count(tally: Tally, skeleton: "Skeleton", result: "FrameResult") -> None:
    tally.add(result, skeleton)
    tally.add_sigma(result)


def _draw(
    videos: Sequence[str], results: "MultiviewResults", scene: "RigScene", path: Path, context: "RunContext"
) -> None:
    from pose.video import VideoWriter, open_source
    from pose.view.grid import CameraGrid

    with ExitStack() as stack:
        sources = [stack.enter_context(open_source(video)) for video in videos]
        names = [str(camera["name"]) for camera in scene.cameras]
        grid = CameraGrid(scene.rig.cameras, names, [iter(source) for source in sources])
        with VideoWriter(path, grid.size, fps=scene.line.fps) as writer:
            for result in context.with_progress(results, sources[0], "overlay"):
                writer.write(grid.draw(result), result.time)
        context.warn(writer.problems)
