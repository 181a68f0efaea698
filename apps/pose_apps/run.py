"""`pose-run`: a video in, tracked 3D people out."""

import argparse
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser

from pose.config import PipelineConfig
from pose.errors import PoseError, UsageError
from pose.options import option
from pose.spaces import CAMERA, SPACES, WORLD
from pose.system.progress import hidden_progress
from pose.view.insets import INSETS
from pose_apps.cameras.options import CamerasConfig
from pose_apps.support.analysis import analysed, check_analysis
from pose_apps.support.camera_motion import motion_line
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.drawn_overlay import draw_overlay
from pose_apps.support.host import Done, Host
from pose_apps.support.interrupts import Interrupts, signals_as_ctrl_c
from pose_apps.support.options import add_config_option, add_options, config_first, config_of
from pose_apps.support.outputs import USUAL, Outputs, plan_outputs
from pose_apps.support.shown import open_cache_of, print_times, shown_results, warn
from pose_apps.support.status import StatusLine
from pose_apps.support.summary import Tally, counted, report, report_stills, say
from pose_apps.support.world import (
    SPACE_HELP,
    TRIM_HELP,
    WorldConfig,
    contradictions_line,
    doubtful_line,
    inconsistent_lines,
    joins_line,
    steps_of,
    unknown_heights,
    world_line,
)

if TYPE_CHECKING:
    from pose.cache import Cache, Found
    from pose.camera_motion.log import MotionLog
    from pose.files import ResultSpool, ResultWriter, RunInfo
    from pose.pipeline import Pipeline
    from pose.types import FrameResult
    from pose.video import Source


VIDEO = "a video file, a folder or glob of images, an http(s) or RTSP URL, or a camera number"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig(WorldConfig):
    """What one run reads and writes. Raises UsageError for a value that is not allowed."""

    video: str | None = option(None, f"{VIDEO}; also without --video")
    demo: bool = option(False, "process a short clip of two people (downloaded once); results go to ./demo")
    out: str | None = option(None, "folder for the results; default: beside the video, with its name")
    formats: str = option(
        ",".join(USUAL),
        "output formats, separated by commas; others: docs/guides/exports.md",
    )
    overlay: bool = option(True, "draw the overlay video")
    inset: str = option(
        INSETS[0],
        "corner of the 3D inset in the overlay, or off; auto: where it covers no head and least of the people",
        choices=INSETS,
        metavar="PLACE",
    )
    analyse: bool = option(False, "write figures of movement; docs/guides/analysis.md")
    space: str | None = option(None, SPACE_HELP, choices=SPACES)
    trim: bool = option(True, TRIM_HELP)
    stills: bool = option(False, "process each image on its own")
    start: float = option(0.0, "start at this second of the video", least=0.0)
    end: float = option(math.inf, "stop at this second of the video", least=0.0)
    image_fps: float = option(30.0, "frame rate of a folder or glob of images", least=0.001, most=1000.0)
    intrinsics: str | None = option(
        None, "camera intrinsics: fx,fy,cx,cy in px, or a file with a 3x3 matrix; default: assumed field of view"
    )
    cache: str = option(
        "off",
        "folder for cached 2D and 3D results; off: no cache",
    )
    cache_size: float = option(
        2.0, "maximum size of the cache in GB; least recently used entries are deleted first", least=0.0
    )
    overwrite: bool = option(False, "replace existing results")
    quiet: bool = option(False, "print nothing but warnings and errors")
    profile: bool = option(False, "print wall-clock and processor time of each stage")

    def __post_init__(self) -> None:
        WorldConfig.__post_init__(self)
        if self.space == WORLD and not self.world:
            raise UsageError(f"space: --no-world computes no world to export; give --space {CAMERA}")
        if self.analyse and not self.world:
            raise UsageError("analyse: needs world coordinates; leave out --no-world")


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `pose-run`."""
    parser = ArgumentParser(prog="pose-run", description="Track every person of a video in 3D.", exit_on_error=False)
    clip = parser.add_argument(
        "clip",
        nargs="*",
        default=argparse.SUPPRESS,
        action=_Video,
        metavar="VIDEO",
        help=f"{VIDEO}; also as --video; several: cameras that film the same moment",
    )
    add_config_option(parser)
    video = parser.add_argument("--video", type=str, action=_Video, help=f"{VIDEO}; also without --video")
    add_options(parser, RunConfig, without={"video"})
    add_options(parser, CamerasConfig)
    add_options(parser, PipelineConfig)
    try:
        parsed = parse_arguments(parser, config_first(argv))
    except UsageError as error:
        if str(error).startswith("unrecognized arguments: ") and clip.given:
            raise UsageError(f"{error}; pose-run takes one video, pose-batch many") from error
        raise
    if clip.given and video.given:
        raise UsageError(f"--video and {clip.given}: name one video; call pose-run once for each")
    config, cameras = config_of(RunConfig, parsed), config_of(CamerasConfig, parsed)
    if len(clip.videos) > 1 or cameras != CamerasConfig():
        videos = clip.videos or [config.video or ""]
        with signals_as_ctrl_c(), StatusLine("loading the networks", hidden=config.quiet) as status:
            return _several(videos, cameras, config, config_of(PipelineConfig, parsed), status.end)
    with signals_as_ctrl_c(), StatusLine("loading the networks", hidden=config.quiet) as status:
        return run(config, config_of(PipelineConfig, parsed), status.end)


class _Video(argparse.Action):
    """The video, as a word of its own, `pose-run clip.mp4`, or as an option. given: how the call names it. videos: all
    of several.
    """

    given: str | None = None
    videos: tuple[str, ...] = ()

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        words = [values] if isinstance(values, str) else list(values or [])
        if words:
            self.videos = tuple(map(str, words))
            namespace.video = self.given = self.videos[0]


def run(config: RunConfig, pipeline_config: PipelineConfig, loaded: Callable[[], None] = lambda: None) -> int:
    """Process one video; the exit status. loaded: called before anything is shown.

    Raises PoseError with the line that says what is wrong.
    """
    from pose_apps.support.intrinsics import read_intrinsics

    if config.demo:
        config = _of_demo_clip(config)
    if not config.video:
        raise UsageError("no video: give a video file, a folder or glob of images, an address or a camera, or --demo")
    intrinsics = None if config.intrinsics is None else read_intrinsics(config.intrinsics)

    def networks() -> "Pipeline":
        from pose.pipeline import Pipeline

        with hidden_progress(config.quiet):
            pipeline = Pipeline(pipeline_config, intrinsics=intrinsics, lazy=config.cache != "off")
        loaded()
        return pipeline

    begun = time.perf_counter()
    with open_cache_of(config.cache, config.cache_size) as cache:
        host = Host(partial(shown_results, quiet=config.quiet), warn, cache)
        done = run_any(config, networks, host)
        warn([f"{cache.problem}; results are not cached"] if cache is not None and cache.problem else [])
    if not config.quiet:
        said = report_stills if done.stills else report
        said(done.tally, done.source, done.pipeline, done.files, time.perf_counter() - begun, done.known)
        for note in done.notes:
            say(note)
    if config.profile:
        print_times(done.pipeline.times, done.tally.frames)
    if done.problems:
        raise PoseError("; ".join(done.problems))
    if done.interruption:
        raise done.interruption
    return 0


def _of_demo_clip(config: RunConfig) -> RunConfig:
    from pose_apps.support.demo import FOLDER, demo_clip

    if config.video:
        raise UsageError(f"--demo and {config.video}: name a video or give --demo, not both")
    out = FOLDER if config.out is None else config.out
    return replace(config, video=demo_clip(quiet=config.quiet), out=out)


def _several(
    videos: Sequence[str],
    cameras: CamerasConfig,
    config: RunConfig,
    pipeline_config: PipelineConfig,
    loaded: Callable[[], None],
) -> int:
    """Videos of several cameras that film the same moment. As `run`."""
    from pose_apps.cameras.command import Common, run_several

    usual = RunConfig()
    for name in ("stills", "start", "end", "intrinsics", "profile", "world", "demo", "inset"):
        if getattr(config, name) != getattr(usual, name):
            raise UsageError(f"{name}: is not supported with several cameras")
    common = Common(**{entry.name: getattr(config, entry.name) for entry in fields(Common)})
    return run_several(videos, cameras, common, pipeline_config, loaded)


def run_any(config: RunConfig, networks: "Callable[[], Pipeline]", host: Host) -> Done:
    """Process one video, or single pictures where that is asked for, or it is one, or their sizes differ.

    networks: may be called twice. Raises what `run_clip` and `run_stills` raise.
    """
    from pose.video.images import SUFFIXES, SizesDifferError
    from pose_apps.stills import Request, run_stills

    assert config.video is not None
    one = Path(config.video)
    if not config.stills and not (one.suffix.lower() in SUFFIXES and one.is_file()):
        try:
            return run_clip(config, networks, host)
        except SizesDifferError:
            host.warn([f"{config.video}: images differ in size and are processed one by one, as with --stills"])
    if config.analyse:
        raise UsageError("analyse: not available for single images, which show no movement")
    for name in ("pitch", "roll", "height"):
        if getattr(config, name) is not None:
            raise UsageError(f"{name}: not available for single images; use pose-convert --{name} on their results")
    request = Request(config.video, config.out, config.formats, config.overlay, config.overwrite, config.inset)
    return run_stills(request, networks, host)


def run_clip(config: RunConfig, networks: "Callable[[], Pipeline]", host: Host) -> Done:
    """Process one video into its files. networks: called once the video is open and the folder ready.

    Raises PoseError, and KeyboardInterrupt that says what is left, where Ctrl-C leaves nothing to report.
    """
    from pose.video import open_source
    from pose.video.images import SizesDifferError

    assert config.video is not None
    outputs = plan_outputs(config.video, config.out, config.formats, config.overlay, npz=config.analyse)
    outputs = replace(outputs, warn=lambda message: host.warn([message]))
    if not config.overwrite:
        outputs.check_free()
    if outputs.exports:
        from pose_apps.support.exports import check_exports, write_exports

        check_exports(list(outputs.exports), outputs.folder, overwrite=config.overwrite)
    if config.analyse:
        check_analysis(outputs.folder, overwrite=config.overwrite)
    with (
        open_source(
            config.video,
            start=config.start,
            end=config.end,
            image_fps=config.image_fps,
            keep="overlay" in outputs.files,
        ) as source,
        outputs.ready_folder() as written,
    ):
        pipeline = networks()
        tally = Tally()
        try:
            finished, known = _process(source, pipeline, written, config, tally, host)
        except KeyboardInterrupt:
            raise _interruption(tally, source, outputs.settle(written, whole=False), outputs) from None
        except SizesDifferError:
            written.discard()  # of pictures that are no video nothing is kept
            raise
        whole = finished or source.info.is_live
        results = outputs.settle(written, whole=whole)
        files, notes = [path for path in results.files.values() if path.exists()], list[str]()
        problems = [f"{source.cut_short}; the results contain the frames before"] if source.cut_short else []
        if outputs.exports and whole and tally.frames:
            with pipeline.times.measure("exports"):
                exported, notes, failed = write_exports(
                    outputs, results.folder, config.video, config.space, config.trim
                )
            files, problems = files + exported, problems + failed
        if config.analyse and whole and tally.frames:
            with pipeline.times.measure("analysis"):
                tables, said, failed = analysed(results.files["npz"], results.folder, config.video, outputs.warn)
            files, notes, problems = files + tables, notes + said, problems + failed
    interruption = None if finished else _interruption(tally, source, results, outputs)
    return Done(tally, source, pipeline, files, notes, known, interruption, problems)


def _interruption(tally: Tally, source: "Source", results: Outputs, wanted: Outputs) -> KeyboardInterrupt:
    """What is raised after Ctrl-C: it says what is left of the work."""
    if tally.frames == 0:
        return KeyboardInterrupt("no frame finished; no results written")
    known = source.info.frame_count
    text = f"{tally.frames} of {known} frames" if known and known >= tally.frames else counted(tally.frames, "frame")
    missing = ", ".join([*({"overlay"} & wanted.files.keys()), *wanted.exports])
    how = "marked incomplete" if not tally.complete else f"without {missing}" if missing else "complete"
    where = "" if results is wanted else f" in {results.folder}; the earlier result is unchanged"
    return KeyboardInterrupt(f"{text} kept, {how}{where}")


def _process(
    source: "Source", pipeline: "Pipeline", outputs: Outputs, config: RunConfig, tally: Tally, host: Host
) -> tuple[bool, "Found"]:
    """Write the results as they come, then the overlay. Returns whether all was done (not where Ctrl-C ended it early),
    and what the cache knew.
    """
    from pose.camera_motion.log import MotionLog
    from pose.files import ResultSpool

    motion = MotionLog()
    info = _run_info(source, pipeline, config)
    with Interrupts(host.heard) as interrupts, ExitStack() as stack:
        stop = interrupts.stop
        spool = ResultSpool(outputs.folder, pipeline.skeleton)
        stack.callback(spool.close)
        placed: Iterable[FrameResult] = spool
        try:
            with pipeline.times.rest("threads of networks and codecs"), interrupts.raised_after(1):
                results, known = _results(source, pipeline, stop, host.cache)
                for result in host.shown(results, source, "poses"):
                    with pipeline.times.measure("write"):
                        spool.write(result)
                    tally.add(result, pipeline.skeleton)
                    motion.add(result.people)
            tally.complete = not stop.is_set()
        finally:  # whatever ended it, what was finished is kept
            if tally.frames:
                with pipeline.times.measure("world"):
                    placed, info = _into_world(
                        spool, info, config, pipeline, tally, outputs.folder, motion, host, stack
                    )
                with pipeline.times.measure("write"):
                    _write(placed, info, outputs, tally)
        host.warn(problem for problem in source.problems if problem != source.cut_short)
        # Ctrl-C is how one ends a live source.
        if "overlay" in outputs.files and (source.info.is_live or not stop.is_set()):
            times = pipeline.times
            with times.rest("overlay: threads of codecs"), times.measure("overlay"), interrupts.raised_after(0):
                draw_overlay(source, placed, info, outputs.files["overlay"], host, times, config.inset)
    return not stop.is_set(), known


def _into_world(
    spool: "ResultSpool",
    info: "RunInfo",
    config: RunConfig,
    pipeline: "Pipeline",
    tally: Tally,
    folder: Path,
    log: "MotionLog",
    host: Host,
    stack: ExitStack,
) -> tuple["Iterable[FrameResult]", "RunInfo"]:
    """The results in their world, if there is one, and the head of their files, which says what world that is."""
    from pose.camera_motion.decision import decide
    from pose.files import MotionInfo, WorldInfo
    from pose.world.footing import settle
    from pose.world.run import PlacedRun

    camera, run = decide(log, pipeline.config.camera), None
    if config.world and not (camera.problem and tally.ids):
        steps = replace(steps_of(config, pipeline.config.constant_bones, info.camera.known), path=camera.path)
        run = PlacedRun(spool, pipeline.skeleton, info.camera, steps, join=config.join_tracks, folder=folder)
        stack.callback(run.close)
        settled = settle(camera, run.footing)
        run, camera = (run if settled is camera else None), settled
    info = replace(info, motion=MotionInfo(camera.motion, run is not None and camera.path is not None))
    tally.motion = camera.motion.kind
    tally.world = [motion_line(camera)] if tally.ids else []
    if run is None:
        if config.world:
            host.warn([camera.problem])
        return spool, info
    world = WorldInfo.of(run)
    if run.heights:
        tally.world += [
            world_line(world, run.filled),
            joins_line(run.joined, run.dropped),
            doubtful_line(run.doubtful),
            *inconsistent_lines(run.inconsistent),
            contradictions_line(run.sizes, run.heights),
            unknown_heights(config, run.heights),
        ]
    tally.ids, tally.doubtful = set(run.heights), set(run.doubtful)
    return run, replace(info, world=world)


def _write(results: "Iterable[FrameResult]", info: "RunInfo", outputs: Outputs, tally: Tally) -> None:
    """The files of results, but for the overlay."""
    from pose.files import WRITERS

    with ExitStack() as stack:
        writers: list[ResultWriter] = [
            stack.enter_context(WRITERS[name](path, info)) for name, path in outputs.files.items() if name in WRITERS
        ]
        for result in results:
            tally.add_sigma(result)
            for writer in writers:
                writer.write(result)
        for writer in writers:
            writer.close(tally.complete)


def _results(
    source: "Source", pipeline: "Pipeline", stop: threading.Event, cache: "Cache | None"
) -> tuple["Iterator[FrameResult]", "Found"]:
    """The results of all frames, and what of them the cache knows."""
    if cache is None:
        return pipeline.run(source, stop=stop), "nothing"
    from pose.cache import CachedRun

    run = CachedRun(pipeline, source, cache)
    return run.results(stop), run.found


def _run_info(source: "Source", pipeline: "Pipeline", config: RunConfig) -> "RunInfo":
    span = {"start": config.start, "end": config.end if math.isfinite(config.end) else None}
    world = {entry.name: getattr(config, entry.name) for entry in fields(WorldConfig)}
    info = pipeline.run_info(source.name, source.info.fps, source.info.size, source.info.focal_35mm)
    return replace(info, settings={**span, **info.settings, **world})
