"""`pose-calibrate`: calibrate the cameras of several videos from the people in them."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pose.config import PipelineConfig
from pose.errors import UsageError
from pose.utils.options import argument, option, overwrite_option, quiet_option, same_option
from pose.utils.progress import hidden_progress
from pose.utils.written_files import check_target, writing
from pose_apps.cameras.options import CamerasConfig, camera_names, camera_videos
from pose_apps.clip import RunConfig
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.interrupts import Interrupts
from pose_apps.support.options import command_parser, config_first, config_of
from pose_apps.support.progress import open_cache_of, warn, with_progress_bar
from pose_apps.support.run_context import RunContext
from pose_apps.support.status import StatusLine
from pose_apps.support.summary import print_wrapped


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateConfig(CamerasConfig):
    """Options of `pose-calibrate`."""

    videos: list[str] = argument([], "2 to 8 videos of the same moment, or a folder of them", metavar="VIDEO")
    cameras: str | None = option(None, "calibration file to start from; its intrinsics are kept, its poses are refined")
    out: str | None = option(
        None, "the file to write, or a folder for cameras.json; default: beside the first video", metavar="FILE"
    )
    height: str | None = option(None, "body height in m of the person seen longest, which sets the scale")
    cache: str = same_option(RunConfig, "cache")
    cache_size: float = same_option(RunConfig, "cache_size")
    overwrite: bool = overwrite_option("an existing file")
    quiet: bool = quiet_option("warnings and errors")


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-calibrate`."""
    purpose = "Calibrate and synchronise several cameras by the people in their videos."
    parser = command_parser("pose-calibrate", purpose, CalibrateConfig, PipelineConfig, presets=True)
    parsed = parse_arguments(parser, config_first(argv))
    config = config_of(CalibrateConfig, parsed)
    with StatusLine("loading the networks", hidden=config.quiet) as status:
        return calibrate(config, config_of(PipelineConfig, parsed), status.end)


def calibrate(config: CalibrateConfig, networks: PipelineConfig, loaded: Callable[[], None] = lambda: None) -> int:
    """Calibrate the cameras of `config.videos`, write them to a file, and return the exit status.

    Raises:
        PoseError: If the cameras cannot be calibrated, or the output file exists already.
    """
    from pose.results.cameras import CAMERAS_FILE, write_cameras
    from pose_apps.cameras.run import CamerasRequest, camera_lines, check_request, check_videos, find_scene
    from pose_apps.cameras.tracking import track_cameras

    if not config.videos:
        raise UsageError("no videos: give 2 to 8 videos of the same moment, or a folder of them")
    videos = camera_videos(config.videos, "auto" if Path(config.videos[0]).is_dir() else None)
    target = Path(config.out) if config.out else Path(videos[0]).with_name(CAMERAS_FILE)
    target = target / CAMERAS_FILE if target.is_dir() else target
    check_target(target, videos, overwrite=config.overwrite)
    from pose.cameras import camera_workers, with_threads

    names, workers = camera_names(videos), camera_workers(len(videos), networks.device)
    request = CamerasRequest(videos, config, config.height, None, None, refine=True)
    check_request(request, names)
    check_videos(videos)
    from pose.pipeline import Pipeline
    from pose_apps.support.lifters import allow_research_lifters

    allow_research_lifters(networks.lifter)
    with open_cache_of(config.cache, config.cache_size) as cache, ExitStack() as stack:
        with hidden_progress(config.quiet):
            pipeline = Pipeline(with_threads(networks, workers), lazy=config.cache != "off")
        loaded()
        context = RunContext(partial(with_progress_bar, quiet=config.quiet), warn, cache)
        interrupts = stack.enter_context(Interrupts(context.handles_interrupts))
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="pose-")))
        with interrupts.raised_after(1):
            seen = track_cameras(videos, pipeline, folder, stack, context, interrupts.stop, workers)
        if interrupts.stop.is_set():
            raise KeyboardInterrupt("no cameras written")
        with interrupts.raised_after(0):
            scene = find_scene(request, names, seen, context)
    with writing([target]):
        write_cameras(target, scene.cameras)
    if not config.quiet:
        for line in [*camera_lines(scene), f"cameras: {target}"]:
            print_wrapped(line)
    return 0
