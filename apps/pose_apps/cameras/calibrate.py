"""`pose-calibrate`: calibrate the cameras of several videos from the people in them."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pose.config import PipelineConfig
from pose.errors import UsageError
from pose.structures.defaults import CAMERAS_FILE
from pose.utils.options import argument, option, overwrite_option, quiet_option, same_option
from pose.utils.written_files import check_target, writing
from pose_apps.cameras.command import camera_lines, setup_of, tracked_cameras
from pose_apps.cameras.options import CamerasConfig, camera_videos
from pose_apps.clip import RunConfig
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.interrupts import Interrupts
from pose_apps.support.lifters import make_pipeline
from pose_apps.support.options import command_parser, config_first, config_of
from pose_apps.support.run_context import RunContext, open_cache_of, warn, with_progress_bar
from pose_apps.support.status import StatusLine
from pose_apps.support.summary import Tally, print_wrapped


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrateConfig(CamerasConfig):
    """Options of `pose-calibrate`."""

    videos: list[str] = argument([], "2 to 8 videos of the same moment, or a folder of them", metavar="VIDEO")
    cameras: str | None = option(None, "calibration file to start from; its intrinsics are kept, its poses are refined")
    out: str | None = option(
        None, "the file to write, or a folder for cameras.json; default: beside the first video", metavar="FILE"
    )
    height: str | None = option(None, "body height in m of the person seen longest, or by id, such as 1:1.40,2:1.72")
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
    """Calibrate the cameras of `config.videos` and write them; PoseError if that fails or the file exists."""
    from pose.results.cameras import write_cameras

    if not config.videos:
        raise UsageError("no videos: give 2 to 8 videos of the same moment, or a folder of them")
    videos = camera_videos(config.videos, "auto" if Path(config.videos[0]).is_dir() else None)
    target = Path(config.out) if config.out else Path(videos[0]).with_name(CAMERAS_FILE)
    target = target / CAMERAS_FILE if target.is_dir() else target
    check_target(target, videos, overwrite=config.overwrite)
    from pose.config import for_each_camera
    from pose.multiview.run import camera_workers

    workers = camera_workers(len(videos), networks.device)
    setup = setup_of(videos, config, config.height, refine=True)
    with open_cache_of(config.cache, config.cache_size) as cache, ExitStack() as stack:
        pipeline = make_pipeline(
            for_each_camera(networks, len(videos)), config.cache, quiet=config.quiet, loaded=loaded
        )
        context = RunContext(partial(with_progress_bar, quiet=config.quiet), warn, cache)
        interrupts = stack.enter_context(Interrupts(context.handles_interrupts))
        tallies = defaultdict[str, Tally](Tally)
        run = stack.enter_context(
            tracked_cameras(videos, pipeline, setup, context, interrupts, tallies, workers=workers)
        )
        with interrupts.raised_after(0):
            run.fuse()
        scene = run.scene
        context.warn(scene.rig.notes)
    with writing([target]):
        write_cameras(target, scene.cameras)
    if not config.quiet:
        for line in [*camera_lines(scene), f"cameras: {target}"]:
            print_wrapped(line)
    return 0
