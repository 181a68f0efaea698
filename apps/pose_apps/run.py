"""`pose-run`: track the people in a video and estimate their 3D poses."""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

from jsonargparse import ArgumentParser

from pose.config import PipelineConfig
from pose.errors import PoseError, UsageError
from pose_apps.cameras.command import run_several
from pose_apps.cameras.options import CamerasConfig
from pose_apps.clip import VIDEO, RunConfig, run_any
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.lifters import make_pipeline
from pose_apps.support.options import add_config_option, add_options, config_first, config_of
from pose_apps.support.run_context import RunContext, open_cache_of, print_times, warn, with_progress_bar
from pose_apps.support.status import StatusLine
from pose_apps.support.summary import print_wrapped, report, report_stills


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-run`."""
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
    given = [f"--{entry.name}" for entry in fields(cameras) if getattr(cameras, entry.name) != entry.default]
    if given and len(clip.videos) == 1 and Path(clip.videos[0]).is_file():
        raise UsageError(f"{' and '.join(given)}: only for several cameras; {clip.videos[0]} is one video")
    if len(clip.videos) > 1 or given:
        videos = clip.videos or [config.video or ""]
        with StatusLine("loading the networks", hidden=config.quiet) as status:
            return run_several(videos, cameras, config, config_of(PipelineConfig, parsed), status.end)
    with StatusLine("loading the networks", hidden=config.quiet) as status:
        return run(config, config_of(PipelineConfig, parsed), status.end)


class _Video(argparse.Action):
    """The input video, positional or as an option; `videos` if more than one is given."""

    given: str | None = None  # the argument or option as typed
    videos: tuple[str, ...] = ()  # all input videos, if more than one is given

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
    """Process one video and return the exit status."""
    from pose.results.edits import read_edits
    from pose_apps.support.intrinsics import read_intrinsics

    if config.demo:
        config = _of_demo_clip(config)
    if not config.video:
        raise UsageError("no video: give a video file, a folder or glob of images, an address or a camera, or --demo")
    if config.intrinsics is not None:
        read_intrinsics(config.intrinsics)  # before any work
    if config.edits is not None:
        read_edits(config.edits)  # before any work
    depth = config.opened_depth()  # must be readable
    camera = config.intrinsics or (None if depth is None else depth.colour_camera)
    networks = partial(make_pipeline, pipeline_config, config.cache, camera, quiet=config.quiet, loaded=loaded)
    start = time.perf_counter()
    with open_cache_of(config.cache, config.cache_size) as cache:
        context = RunContext(partial(with_progress_bar, quiet=config.quiet), warn, cache)
        done = run_any(config, networks, context)
        warn([f"{cache.problem}; results are not cached"] if cache is not None and cache.problem else [])
    if not config.quiet:
        print_report = report_stills if done.stills else report
        seconds, verbose = time.perf_counter() - start, config.verbose
        print_report(done.tally, done.source, done.pipeline, done.files, seconds, done.cached, verbose=verbose)
        for line in [*done.lines, *(done.notes if verbose else [])]:
            print_wrapped(line)
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
