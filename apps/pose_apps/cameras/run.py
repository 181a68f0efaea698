"""Several videos of one moment in, everybody in one world out."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import UsageError
from pose_apps.cameras.options import CamerasConfig, camera_names, read_distance, read_offsets
from pose_apps.cameras.tracking import Seen, track_cameras
from pose_apps.support.interrupts import Interrupts
from pose_apps.support.summary import Tally
from pose_apps.support.world import read_heights, read_up, world_line

if TYPE_CHECKING:
    from pose.files import RunInfo
    from pose.multiview.results import MultiviewResults
    from pose.multiview.scene import Scene
    from pose.pipeline import Pipeline
    from pose.types import FrameResult
    from pose_apps.support.host import Host
    from pose_apps.support.outputs import Outputs

CAMERAS_FILE = "cameras.json"


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for. videos: one a camera. height, pitch, roll: as of `WorldConfig`. refine: a calibration file is
    only the start.
    """

    videos: list[str]
    cameras: CamerasConfig
    height: str | None
    pitch: float | None
    roll: float | None
    refine: bool = False


@dataclass(frozen=True, slots=True)
class CamerasDone:
    """tally: of the first camera. files: what was written. lines: what to say of it."""

    tally: Tally
    files: list[Path]
    lines: list[str]
    pipeline: "Pipeline"


def run_cameras(
    request: Request, networks: "Callable[[], Pipeline]", outputs: "Outputs", host: "Host", overwrite: bool
) -> CamerasDone:
    """Process several videos into one result. Raises PoseError, and KeyboardInterrupt where Ctrl-C ends it."""
    if not overwrite:
        outputs.check_free()
    names = camera_names(request.videos)
    check_request(request, names)
    check_videos(request.videos)
    with outputs.ready_folder([CAMERAS_FILE]) as written, ExitStack() as stack, Interrupts(host.heard) as interrupts:
        pipeline, tally = networks(), Tally()
        with interrupts.raised_after(1):
            seen = track_cameras(request.videos, pipeline, written.folder, stack, host, interrupts.stop, tally)
        if interrupts.stop.is_set():
            raise KeyboardInterrupt("no results written")
        with interrupts.raised_after(0):
            scene = find_scene(request, names, seen, host)
            results, info, lines = _results(request, scene, seen, pipeline)
            _write(results, info, written, scene)
            if "overlay" in written.files:
                _draw(request.videos, results, scene, written.files["overlay"], host)
        kept = outputs.settle(written, whole=True)
    files = [path for path in (*kept.files.values(), kept.folder / CAMERAS_FILE) if path.exists()]
    tally.complete = True
    return CamerasDone(tally, files, lines, pipeline)


def check_request(request: Request, names: Sequence[str]) -> None:
    """Raises UsageError for options that do not go together, before any work starts."""
    cameras = request.cameras
    if cameras.distance is not None:
        read_distance(cameras.distance, names)
    offsets = read_offsets(cameras.offsets)
    if offsets is not None and len(offsets) != len(names):
        raise UsageError(
            f"offsets: got {len(offsets)} for {len(names)} videos; give one per video, including the first"
        )
    scales = [name for name, said in (("height", request.height), ("distance", cameras.distance)) if said is not None]
    if len(scales) == 2:
        raise UsageError("height and distance: both set the scale; give only one")
    if scales and cameras.file is not None:
        raise UsageError(f"{scales[0]}: the calibration in {cameras.file} already sets the scale")
    if cameras.file is not None and not cameras.file.is_file():
        raise UsageError(f"--cameras {cameras.file}: no such file")


def check_videos(videos: Sequence[str]) -> None:
    """Raises PoseError for a video that cannot be opened, before the first one is processed."""
    from pose.video import open_source

    for video in videos:
        open_source(video).close()


def find_scene(request: Request, names: Sequence[str], seen: Sequence[Seen], host: "Host") -> "Scene":
    """Cameras and motions of everybody, at the scale that is asked for."""
    from pose.multiview.calibration_files import read_cameras
    from pose.multiview.scene import Given, find_scene

    said, runs = request.cameras, [one.run for one in seen]
    scene = find_scene(
        runs,
        names,
        Given(
            None if said.file is None else read_cameras(said.file, names, [run.camera.size for run in runs]),
            request.refine,
            read_offsets(said.offsets),
            None if said.distance is None else read_distance(said.distance, names),
            _height(request.height),
        ),
    )
    host.warn(scene.rig.notes)
    return scene


def _height(text: str | None) -> float | None:
    heights = read_heights(text)
    if not heights:
        return None
    if list(heights) != [None]:
        raise UsageError(f"height: expected one height, of the person seen longest by several cameras, got {text!r}")
    return heights[None]


def _results(
    request: Request, scene: "Scene", seen: Sequence[Seen], pipeline: "Pipeline"
) -> "tuple[MultiviewResults, RunInfo, list[str]]":
    from pose.multiview.scene import results_of

    info = pipeline.run_info(", ".join(request.videos), scene.line.fps, scene.rig.cameras[0].size)
    up = read_up(request.pitch, request.roll)
    results, known = results_of(scene, seen[0].spool, info, pipeline.skeleton, up)
    assert known.world is not None
    return results, known, [*camera_lines(scene), world_line(known.world)]


def camera_lines(scene: "Scene") -> list[str]:
    """What was found of the cameras, for people."""
    people = len(scene.motions)
    shared = sum(len(tracks) > 1 for tracks in scene.rig.people)
    lines = [f"{len(scene.rig.cameras)} cameras, {people} people, {shared} of them seen by several cameras"]
    for row, (camera, said) in enumerate(zip(scene.rig.cameras, scene.cameras, strict=True)):
        one = scene.rig.accuracy[row]
        place = (
            "" if row == 0 else f", {math.dist(camera.place, (0, 0, 0)):.2f} m from the first (+- {one.place:.2f} m)"
        )
        by = "".join([", from ", " and ".join(scene.rig.clocks[row])]) if scene.rig.clocks[row] else ""
        lines.append(
            f"{said['name']}: starts at {camera.offset:.3f} s (+- {1000 * one.offset:.0f} ms{by}), focal length "
            f"{camera.focal:.0f} px{place}, rotation +- {one.turn:.1f} degrees, "
            f"reprojection error {one.residual:.1f} px"
        )
    return lines


def _write(results: "Iterable[FrameResult]", info: "RunInfo", outputs: "Outputs", scene: "Scene") -> None:
    from pose.files import WRITERS
    from pose.multiview.calibration_files import write_cameras

    with ExitStack() as stack:
        writers = [
            stack.enter_context(WRITERS[name](path, info)) for name, path in outputs.files.items() if name in WRITERS
        ]
        for result in results:
            for writer in writers:
                writer.write(result)
        for writer in writers:
            writer.close(True)
    write_cameras(outputs.folder / CAMERAS_FILE, scene.cameras)


def _draw(videos: Sequence[str], results: "MultiviewResults", scene: "Scene", path: Path, host: "Host") -> None:
    from pose.video import VideoWriter, open_source
    from pose.view.grid import CameraGrid

    with ExitStack() as stack:
        sources = [stack.enter_context(open_source(video)) for video in videos]
        names = [str(camera["name"]) for camera in scene.cameras]
        grid = CameraGrid(scene.rig.cameras, names, [iter(source) for source in sources])
        with VideoWriter(path, grid.size, fps=scene.line.fps) as writer:
            for result in host.shown(results, sources[0], "overlay"):
                writer.write(grid.draw(result), result.time)
        host.warn(writer.problems)
