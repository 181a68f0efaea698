"""The steps of `pose-run` for one video: track, lift, transform to world coordinates, write, draw and export."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pose.config import WorldConfig
from pose.errors import UsageError
from pose.structures.defaults import CACHE_GIGABYTES, CAMERA, CAMERAS_FILE, IMAGE_FPS, SPACES, WORLD
from pose.utils.options import depth_offset_option, option, overwrite_option, quiet_option
from pose.utils.progress import hidden_progress
from pose.utils.written_files import check_not_input
from pose.view.insets import INSETS
from pose_apps.support.analysis import analysed, check_analysis
from pose_apps.support.drawn_overlay import draw_overlay
from pose_apps.support.interrupts import Interrupts
from pose_apps.support.outputs import DEFAULT_FORMATS, Outputs, plan_outputs
from pose_apps.support.run_context import RunContext, RunOutcome
from pose_apps.support.summary import Tally, interruption, motion_line
from pose_apps.support.world import (
    SPACE_HELP,
    TRIM_HELP,
    contradictions_line,
    doubtful_line,
    inconsistent_lines,
    joins_line,
    scenes_line,
    solutions_line,
    steps_of,
    unknown_heights,
    world_line,
)

if TYPE_CHECKING:
    from pose.pipeline import Pipeline
    from pose.results.cache.run import Found
    from pose.results.recorded import RecordedRun
    from pose.results.run import FindWorn
    from pose.structures.types import FrameResult
    from pose.utils.progress import StageTimes
    from pose.video import Source
    from pose.video.depth_video import DepthVideo


VIDEO = "a video file, a folder or glob of images, an http(s) or RTSP URL, or a camera number"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig(WorldConfig):
    """Options of `pose-run`."""

    video: str | None = option(None, f"{VIDEO}; also without --video")
    demo: bool = option(False, "process a short clip of two people (downloaded once); results go to ./demo")
    out: str | None = option(None, "folder for the results; default: beside the video, with its name")
    formats: str = option(
        ",".join(DEFAULT_FORMATS),
        "output formats, separated by commas; others: docs/guides/exports.md",
    )
    overlay: bool = option(True, "draw the overlay video")
    inset: str = option(
        INSETS[0],
        "corner of the 3D inset in the overlay, or off; auto: the corner that covers no heads and the fewest people",
        choices=INSETS,
        metavar="PLACE",
    )
    body: bool = option(False, "draw shaded bodies in the overlay")
    analyse: bool = option(False, "also compute movement measures; see docs/guides/analysis.md")
    edits: str | None = option(None, "file of corrections, such as one of pose-studio; see docs/reference/edits.md")
    space: str | None = option(None, SPACE_HELP, choices=SPACES)
    trim: bool = option(True, TRIM_HELP)
    stills: bool = option(False, "process each image on its own")
    start: float = option(0.0, "start at this second of the video", minimum=0.0)
    end: float = option(math.inf, "stop at this second of the video", minimum=0.0)
    stream: int | None = option(
        None, "video stream of a file with several, numbered from 0; default: the largest", minimum=0
    )
    image_fps: float = option(IMAGE_FPS, "frame rate of a folder or glob of images", minimum=0.001, maximum=1000.0)
    intrinsics: str | None = option(
        None,
        "camera: fx,fy,cx,cy in px, or a file with a matrix or a calibration; default: assumed field of view",
    )
    depth: str | None = option(
        None, "folder of depth images of the same camera, see docs/guides/sensors.md", metavar="DIR"
    )
    depth_offset: float = depth_offset_option()
    imu: str | None = option(
        None, "recording of inertial sensors that one person wears, see docs/guides/sensors.md", metavar="PATH"
    )
    imu_offset: float | None = option(
        None, "second of the video at which the time of the sensors is 0; default: found from the motion",
        minimum=-1e10, maximum=1e10,
    )  # fmt: skip
    cache: str = option(
        "off",
        "folder for cached 2D and 3D results; off: no cache",
    )
    cache_size: float = option(
        CACHE_GIGABYTES, "maximum size of the cache in GB; least recently used entries are deleted first", minimum=0.0
    )
    overwrite: bool = overwrite_option()
    quiet: bool = quiet_option("warnings and errors")
    verbose: bool = option(False, "print details: cameras, world, confidence, every file")
    profile: bool = option(False, "print wall-clock and processor time of each stage")

    def __post_init__(self) -> None:
        WorldConfig.__post_init__(self)
        if self.space == WORLD and not self.world:
            raise UsageError(f"space: --no-world computes no world to export; give --space {CAMERA}")
        for name in ("depth", "imu"):
            if getattr(self, name) is not None and (not self.world or self.stills):
                raise UsageError(f"{name}: needs world coordinates of a video; leave out --no-world and --stills")
            if getattr(self, name) is not None and self.edits is not None:
                raise UsageError(f"{name}: not with --edits")
        if self.imu is None and self.imu_offset is not None:
            raise UsageError("imu_offset: only with --imu")
        if self.depth is None and self.depth_offset:
            raise UsageError("depth_offset: only with --depth")
        if self.analyse and not self.world:
            raise UsageError("analyse: needs world coordinates; leave out --no-world")

    def opened_depth(self) -> "DepthVideo | None":
        """Open the depth images, if the options name any."""
        from pose.video.depth import open_depth

        return None if self.depth is None else open_depth(Path(self.depth), self.depth_offset)

    def opened_imus(self) -> "FindWorn | None":
        """Read the recording of inertial sensors, if the options name one."""
        from pose.body.imu import find_worn, read_imus

        if self.imu is not None and not Path(self.imu).exists():
            raise UsageError(f"imu: {self.imu}: no such file or folder")
        return None if self.imu is None else find_worn(read_imus(Path(self.imu)), self.imu_offset)

    def opened(self, video: str, *, keep: bool = False) -> "Source":
        """Open a video as the options say."""
        from pose.video import open_source

        return open_source(
            video, start=self.start, end=self.end, image_fps=self.image_fps, keep=keep, stream=self.stream
        )


def run_any(config: RunConfig, networks: "Callable[[], Pipeline]", context: RunContext) -> RunOutcome:
    """Process the input of `pose-run` as one video, or as single images."""
    # Images are single if `config.stills` is set, if there is one file, or if they differ in size. `networks` may be
    # called twice.
    from pose.video.images import SizesDifferError, is_still
    from pose_apps.stills import ImagesRequest, run_stills

    assert config.video is not None
    one = Path(config.video)
    if not config.stills and not is_still(one):
        try:
            return run_clip(config, networks, context)
        except SizesDifferError:
            context.warn([f"{config.video}: images differ in size and are processed one by one, as with --stills"])
    if config.analyse:
        raise UsageError("analyse: not available for single images, which show no movement")
    if config.edits is not None:
        raise UsageError("edits: not available for single images")
    if config.start > 0 or config.end < math.inf:
        name = "start" if config.start > 0 else "end"
        raise UsageError(f"{name}: not available for single images, which have no times")
    for name in ("pitch", "roll", "height"):
        if getattr(config, name) is not None:
            raise UsageError(f"{name}: not available for single images; use pose-convert --{name} on their results")
    request = ImagesRequest(
        config.video, config.out, config.formats, config.overlay, config.overwrite, config.inset, config.body
    )
    return run_stills(request, networks, context)


def run_clip(config: RunConfig, networks: "Callable[[], Pipeline]", context: RunContext) -> RunOutcome:
    """Process one video and write its result files; networks load once it is open and the folder exists."""
    from pose.video.images import SizesDifferError

    assert config.video is not None
    wanted = planned_outputs(config, [config.video], context)
    keep = wanted.overlay is not None
    with (
        config.opened(config.video, keep=keep) as source,
        wanted.ready_folder() as written,
    ):
        pipeline, tally = networks(), Tally()
        try:
            finished, cached = _process(config, source, pipeline, written, context, tally)
        except KeyboardInterrupt:
            raise interruption(tally, source, wanted.settle(written, complete=False), wanted) from None
        except SizesDifferError:
            written.discard()  # results of images that are not a video are not kept
            raise
        complete = finished or source.info.is_live
        results = wanted.settle(written, complete=complete and source.cut_short is None)
        files = [path for path in results.files.values() if path.exists()]
        problems = [f"{source.cut_short}; the results contain the frames before"] if source.cut_short else []
        derived = Derived()
        if complete and tally.frames:
            derived = derive(config, config.video, results, wanted, pipeline.times)
    interrupted = None if finished else interruption(tally, source, results, wanted)
    return RunOutcome(
        tally, source, pipeline, files + derived.files, derived.lines, cached, interrupted, problems + derived.problems,
        notes=derived.notes,
    )  # fmt: skip


def planned_outputs(config: RunConfig, videos: Sequence[str], context: RunContext) -> Outputs:
    """Return the files to write. They are checked before any work."""
    outputs = plan_outputs(videos[0], config.out, config.formats, config.overlay, npz=config.analyse)
    further = [outputs.folder / CAMERAS_FILE] if len(videos) > 1 else []
    check_not_input([*outputs.files.values(), *further], videos)
    if not config.overwrite:
        outputs.check_free()
    if outputs.exports:
        from pose_apps.support.exports import check_exports

        check_exports(list(outputs.exports), outputs.folder, overwrite=config.overwrite)
    if config.analyse:
        check_analysis(outputs.folder, overwrite=config.overwrite)
    return replace(outputs, warn=lambda message: context.warn([message]))


@dataclass(frozen=True, slots=True)
class Derived:
    """What was made of poses.npz."""

    files: list[Path] = field(default_factory=list)  # written files
    lines: list[str] = field(default_factory=list)  # lines of text for the summary
    notes: list[str] = field(default_factory=list)  # details, for --verbose
    problems: list[str] = field(default_factory=list)  # reasons why files are missing


def derive(config: RunConfig, video: str, results: Outputs, wanted: Outputs, times: "StageTimes") -> Derived:
    """Write exports and analysis tables from poses.npz."""
    files, lines, notes, problems = list[Path](), list[str](), list[str](), list[str]()
    if config.analyse:
        beside = "html" in wanted.exports
        with times.measure("analysis"):
            found = analysed(results.files["npz"], results.folder, video, wanted.warn, beside=beside)
        files, lines, problems = found
    if wanted.exports:  # after the analysis, to which the page of the poses links
        from pose_apps.support.exports import write_exports

        with times.measure("exports"):
            exported, missing, notes, failed = write_exports(wanted, results.folder, video, config.space, config.trim)
        files, lines, problems = exported + files, missing + lines, failed + problems
    return Derived(files, lines, notes, problems)


def _process(
    config: RunConfig, source: "Source", pipeline: "Pipeline", outputs: Outputs, context: RunContext, tally: Tally
) -> tuple[bool, "Found"]:
    """Run all steps up to the overlay; return whether all frames were processed, and what the cache contained."""
    from pose.results.edits import read_edits
    from pose.results.recorded import write_results
    from pose.results.run import record_video
    from pose.utils.device import opencv_threads  # with more, it is not faster, but takes processor time from networks

    times, settings = pipeline.times, {entry.name: getattr(config, entry.name) for entry in fields(WorldConfig)}
    if config.stream is not None:
        settings["stream"] = config.stream
    with Interrupts(context.handles_interrupts) as interrupts, hidden_progress(config.quiet), opencv_threads(1):
        stop = interrupts.stop

        def watched(results: "Iterable[FrameResult]", source: "Source", what: str) -> "Iterator[FrameResult]":
            with interrupts.raised_after(1):
                for result in context.with_progress(results, source, what):
                    yield result
                    tally.add(result, pipeline.skeleton)

        with record_video(
            pipeline, source, steps_of(config) if config.world else None, join=config.join_tracks,
            span=(config.start, config.end), settings=settings, cache=context.cache, stop=stop, progress=watched,
            images=not source.info.is_live or outputs.overlay is not None, folder=outputs.folder, keep=True,
            depth=config.opened_depth(), sensors=config.opened_imus(),
            edits=read_edits(config.edits) if config.edits else (),
        ) as recorded:  # fmt: skip
            if tally.frames:
                tally.complete = recorded.error is None and not stop.is_set() and source.cut_short is None
                context.warn(recorded.problems)
                _report_world(config, recorded, tally, context)
                with times.measure("write"):
                    kept = recorded.results, recorded.info, outputs.files
                    write_results(*kept, complete=tally.complete, seen=tally.add_sigma)
            if recorded.error is not None:
                raise recorded.error
            context.warn(problem for problem in source.problems if problem != source.cut_short)
            # Live sources are ended with Ctrl-C.
            if outputs.overlay is not None and (source.info.is_live or not stop.is_set()):
                drawing = config.inset, config.body, tally.doubtful
                with times.rest("overlay: threads of codecs"), times.measure("overlay"), interrupts.raised_after(0):
                    draw_overlay(source, recorded.results, recorded.info, outputs.overlay, context, times, *drawing)
    return not stop.is_set(), recorded.cached


def _report_world(config: RunConfig, recorded: "RecordedRun", tally: Tally, context: RunContext) -> None:
    """Report and count what the transformation to world coordinates found."""
    camera, run, world = recorded.decision, recorded.world, recorded.info.world
    assert camera is not None
    tally.motion = camera.motion
    tally.world = [motion_line(camera)] if tally.ids else []
    tally.decisions += [one.line for one in (recorded.measured, recorded.worn) if one is not None]
    if run is None or world is None:
        if config.world:
            context.warn([camera.problem])
        tally.doubtful = set(recorded.info.doubtful)
        tally.world += [doubtful_line(tally.doubtful)]
        return
    if camera.translation:
        context.warn([f"the camera's translation is not compensated: {camera.translation}"])
    context.warn(camera.notices)
    if run.heights:
        tally.world += [
            world_line(world, run.filled),
            scenes_line(world),
            joins_line(run.joined, run.dropped),
            doubtful_line(run.doubtful),
            *inconsistent_lines(run.inconsistent),
        ]
        tally.decisions += [
            contradictions_line(run.sizes, run.heights),
            solutions_line(run.sizes, run.heights, run.world.second_degrees),
            unknown_heights(config, run.heights),
        ]
    tally.ids, tally.doubtful = set(run.heights) | run.unplaced, set(run.doubtful)
