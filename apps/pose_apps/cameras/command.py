"""Processing of several videos of one scene to people in one common world frame, for `pose-run` and `pose-batch`."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pose.config import PipelineConfig
from pose.errors import PoseError, UsageError
from pose.multiview.videos import camera_names
from pose.structures.defaults import CAMERAS_FILE
from pose.world.given import read_heights
from pose_apps.cameras.options import CamerasConfig, camera_videos, joint_folder, read_distance, read_offsets
from pose_apps.clip import RunConfig, derive, planned_outputs
from pose_apps.support.interrupts import Interrupts
from pose_apps.support.lifters import make_pipeline
from pose_apps.support.run_context import RunContext, open_cache_of, warn, with_progress_bar
from pose_apps.support.summary import Tally, files_line, print_wrapped
from pose_apps.support.world import read_up, world_line

if TYPE_CHECKING:
    from pose.multiview.run import RecordedCameras
    from pose.multiview.scene import Given, RigScene
    from pose.pipeline import Pipeline
    from pose.results.cache.run import Found
    from pose.results.cameras import ResultCamera
    from pose.results.edits import Edit
    from pose.structures.skeletons import Skeleton
    from pose.structures.types import FrameResult
    from pose.video import Source


@dataclass(frozen=True, slots=True)
class CamerasOutcome:
    """Results of processing several cameras."""

    tally: Tally  # statistics of the 3D result, and of the 2D joints in all cameras
    files: list[Path]  # written files
    lines: list[str]  # lines of text for the summary
    notes: list[str]  # details, for --verbose
    cameras: "list[ResultCamera]"  # calibrated cameras
    size: tuple[int, int]  # (width, height) of the images of the first camera, px
    fps: float  # frame rate of the result, frames/s
    cached: "Found"  # results found in the cache: "nothing", "people" (2D only) or "everything"
    problems: list[str] = field(default_factory=list)  # reasons why results are incomplete


def run_several(
    videos: Sequence[str],
    cameras: CamerasConfig,
    config: RunConfig,
    pipeline_config: PipelineConfig,
    loaded: Callable[[], None] = lambda: None,
) -> int:
    """Process videos, or a folder, of cameras that film one scene, and return the exit status."""
    check_several(config)
    chosen = camera_videos(videos, cameras.cameras)
    config = replace(config, out=config.out or str(joint_folder(videos)))
    from pose.config import for_each_camera
    from pose.multiview.run import camera_workers  # loads NumPy

    workers = camera_workers(len(chosen), pipeline_config.device)
    threads = for_each_camera(pipeline_config, len(chosen))
    networks = partial(make_pipeline, threads, config.cache, quiet=config.quiet, loaded=loaded)
    with open_cache_of(config.cache, config.cache_size) as cache:
        context = RunContext(partial(with_progress_bar, quiet=config.quiet), warn, cache)
        done = process_cameras(chosen, cameras, config, networks, context, workers)
    if not config.quiet:
        details = done.notes if config.verbose else []
        for line in [done.lines[0], *details, files_line(done.files, verbose=config.verbose), *done.lines[1:]]:
            print_wrapped(line)
    if done.problems:
        raise PoseError("; ".join(done.problems))
    return 0


def check_several(config: RunConfig) -> None:
    """Check that no option is set that is unavailable with several cameras."""
    defaults = RunConfig()
    for name in ("stills", "start", "end", "intrinsics", "profile", "world", "demo", "inset", "body", "depth", "imu"):
        if getattr(config, name) != getattr(defaults, name):
            raise UsageError(f"{name}: not supported with several cameras")


def process_cameras(
    videos: Sequence[str],
    cameras: CamerasConfig,
    config: RunConfig,
    networks: "Callable[[], Pipeline]",
    context: RunContext,
    workers: int = 1,
) -> CamerasOutcome:
    """Process videos of several cameras and write all requested files into the folder `config.out`."""
    from pose.results.cameras import cameras_text, result_cameras
    from pose.results.edits import given_edits
    from pose.results.recorded import write_results

    wanted, edits = planned_outputs(config, videos, context), given_edits(config.edits)
    setup = setup_of(videos, cameras, config.height)
    with (
        wanted.ready_folder([CAMERAS_FILE]) as written,
        Interrupts(context.handles_interrupts) as interrupts,
    ):
        pipeline = networks()
        tally, tallies = Tally(), defaultdict[str, Tally](Tally)
        up = read_up(config.pitch, config.roll)
        with tracked_cameras(
            videos, pipeline, setup, context, interrupts, tallies, written.folder, workers, edits
        ) as run:
            with interrupts.raised_after(0):
                run.fuse(up)
                context.warn(run.scene.rig.notes)
                info, texts = run.info, {written.folder / CAMERAS_FILE: cameras_text(run.scene.cameras)}
                write_results(run.results, info, written.files, texts=texts, seen=partial(_count, tally, info.skeleton))
                if written.overlay is not None:
                    draw_cameras([videos[index] for index in run.scene.kept], run, written.overlay, context)
            cached = min((one.cached for one in run.cameras), key=("nothing", "people", "everything").index)
            assert info.world is not None
            first, *details = [*camera_lines(run.scene), *_doubtful_lines(info.world.doubtful), world_line(info.world)]
            tally.doubtful = set(info.world.doubtful)
        kept = wanted.settle(written, complete=True)
    files = [path for path in (*kept.files.values(), kept.folder / CAMERAS_FILE) if path.exists()]
    tally = replace(with_joints_of(tally, list(tallies.values())), complete=True)
    made = derive(config, videos[0], kept, wanted, pipeline.times)
    return CamerasOutcome(
        tally, files + made.files, [first, *made.lines], details + made.notes, result_cameras(info), info.camera.size,
        info.fps, cached, made.problems,
    )  # fmt: skip


@contextmanager
def tracked_cameras(
    videos: Sequence[str],
    pipeline: "Pipeline",
    setup: "Given",
    context: RunContext,
    interrupts: Interrupts,
    tallies: dict[str, Tally],
    folder: Path | None = None,
    workers: int = 1,
    edits: "Sequence[Edit]" = (),
) -> "Iterator[RecordedCameras]":
    """Run the pipeline on the videos, with progress bars, statistics by camera and warnings; yield the run to fuse."""
    from pose.multiview.run import RecordedCameras

    def watched(results: "Iterable[FrameResult]", source: "Source", what: str) -> "Iterator[FrameResult]":
        for result in context.with_progress(results, source, what):
            tallies[what].add(result, pipeline.skeleton)
            yield result

    with RecordedCameras(
        videos, pipeline, setup, cache=context.cache, stop=interrupts.stop, progress=watched, folder=folder,
        workers=workers, edits=edits,
    ) as run:  # fmt: skip
        with interrupts.raised_after(1):
            cameras = run.track()
        context.warn([*(problem for camera in cameras for problem in camera.problems), *run.problems])
        if interrupts.stop.is_set():
            raise KeyboardInterrupt("no results written")
        yield run


def setup_of(videos: Sequence[str], cameras: CamerasConfig, height: str | None, *, refine: bool = False) -> "Given":
    """Check before any work that options and videos fit together, and return what is known about the cameras."""
    from pose.multiview.run import known_setup

    distance = None if cameras.distance is None else read_distance(cameras.distance, camera_names(videos))
    offsets = read_offsets(cameras.offsets)
    return known_setup(
        videos, cameras.file, refine=refine, offsets=offsets, distance=distance, heights=read_heights(height),
        keep_frame=cameras.frame == "lab",
    )  # fmt: skip


def with_joints_of(tally: Tally, cameras: Sequence[Tally]) -> Tally:
    """Return a copy of `tally` with the statistics of the 2D joints in all cameras."""
    return replace(
        tally,
        joints=sum(camera.joints for camera in cameras),
        low_confidence_joints=sum(camera.low_confidence_joints for camera in cameras),
        score_sum=sum(camera.score_sum for camera in cameras),
    )


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


def _doubtful_lines(doubtful: Sequence[int]) -> list[str]:
    people = ", ".join(map(str, doubtful))
    return [f"doubtful people: {people} (two cameras hardly see them at once; possibly false)"] if doubtful else []


def _count(tally: Tally, skeleton: "Skeleton", result: "FrameResult") -> None:
    tally.add(result, skeleton)
    tally.add_sigma(result)


def draw_cameras(videos: Sequence[str], run: "RecordedCameras", path: Path, context: RunContext) -> None:
    """Draw the results on the images of the cameras, side by side."""
    from pose.video import VideoWriter, open_source
    from pose.view.grid import CameraGrid

    with ExitStack() as stack:
        sources = [stack.enter_context(open_source(video)) for video in videos]
        names = [str(camera["name"]) for camera in run.scene.cameras]
        grid = CameraGrid(run.scene.rig.cameras, names, [iter(source) for source in sources])
        with VideoWriter(path, grid.size, fps=run.info.fps) as writer:
            for result in context.with_progress(run.results, sources[0], "overlay"):
                writer.write(grid.draw(result), result.time)
        context.warn(writer.problems)
