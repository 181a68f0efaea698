"""`pose-view`: show a result in 3D, in a window or as a video."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import PoseError, UsageError
from pose.utils.options import REQUIRED, Options, argument, depth_offset_option, option, overwrite_option
from pose.utils.progress import progress_bar
from pose.utils.shown import shown
from pose.utils.written_files import check_target, writing
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import command_parser, config_of
from pose_apps.support.status import StatusLine
from pose_apps.webcam.options import SEND_HELP

if TYPE_CHECKING:
    from pose.view.scene import SceneData


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewOptions(Options):
    """Options of `pose-view`."""

    poses: str = argument(REQUIRED, "a poses.npz of pose-run or pose-lift", metavar="POSES.npz")
    save: str | None = option(None, "render into this video instead of opening a window", metavar="CLIP.mp4")
    size: str | None = option(None, "size of the video in px; default: 1280x720", metavar="WxH")
    fps: float | None = option(None, "frame rate of the video to write, in frames/s; default: that of the result")
    speed: float | None = option(None, "playback speed of the video or of --send; 2 is twice as fast")
    send: str | None = option(
        None, SEND_HELP.replace("send poses", "play the result in real time"), metavar="NAME[=ADDRESS],..."
    )
    depth: str | None = option(None, "also show these depth images, as of pose-run --depth", metavar="PATH")
    depth_offset: float = depth_offset_option()
    studio: bool = option(False, "open the result with its video in pose-studio, to correct it")
    browser: bool = option(True, "with --studio: open the page in a browser")
    loop: bool = option(False, "with --send: start over at the end, until Ctrl-C")
    overwrite: bool = overwrite_option("an existing video")

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        if self.send is not None and self.save is not None:
            raise UsageError("--send and --save: give only one")
        if self.studio and (self.send is not None or self.save is not None):
            raise UsageError("--studio: applies neither to --send nor to --save")
        if not self.browser and not self.studio:
            raise UsageError("--no-browser applies only to --studio")
        if self.depth is not None and (self.send is not None or self.studio):
            raise UsageError("--depth: applies neither to --send nor to --studio")
        if self.depth is None and self.depth_offset:
            raise UsageError("--depth-offset applies only to --depth")
        if self.loop and self.send is None:
            raise UsageError("--loop applies only to --send")
        if self.save is None:
            for name, value in (("size", self.size), ("fps", self.fps), ("speed", self.speed)):
                if value is not None and not (name == "speed" and self.send is not None):
                    raise UsageError(f"--{name} applies only to --save; the window has its own controls")
        for name, number in (("fps", self.fps), ("speed", self.speed)):
            if number is not None and not 0 < number <= 1000:
                raise UsageError(f"--{name} {number}: must be above 0, at most 1000")


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-view`."""
    parser = command_parser("pose-view", "Show a poses.npz of pose-run or pose-lift in 3D.", ViewOptions)
    options = config_of(ViewOptions, parse_arguments(parser, argv))
    if options.send is not None:
        play(Path(options.poses), options.send, options.speed or 1.0, options.loop)
        return 0
    if options.studio:
        from pose_apps.studio.command import open_result

        return open_result(Path(options.poses), browser=options.browser)
    if options.save is None:
        show(options)
        return 0
    target = _target(Path(options.save), Path(options.poses), options.overwrite)
    render(options, target)
    return 0


def show(options: ViewOptions) -> None:
    """Show a result in a window, and return when the user closes the window."""
    with StatusLine("loading the viewer"):
        from pose.view.open3d_scene import check_window
        from pose.view.open3d_window import open_window

        stage = _stage(options)
        check_window()
    open_window(stage, Path(options.poses).name)


def play(poses: Path, send: str, speed: float, again: bool) -> None:
    """Send a result to other programs in real time."""
    from pose.live.links import check_links, open_links
    from pose.live.links.playback import Playback
    from pose.results import load_poses, result_file
    from pose_apps.webcam.report import ProblemLog

    check_links(send)
    table = load_poses(result_file(poses), mapped=True)
    if len(table) == 0:
        raise PoseError(f"{poses}: contains no frame")
    playback, log = Playback(table, speed), ProblemLog()
    links = open_links(playback, send)
    try:
        with progress_bar("send", len(table), " frames") as bar:

            def shown(position: int) -> None:
                bar.update(position + 1 - bar.n)
                for link in links:
                    log.update(f"--send {link.name}", link.problem or link.trouble, link.lost)

            playback.run(shown, again)
    finally:
        for link in links:
            link.close()
    failures = [f"--send {link.name}: {link.problem}" for link in links if link.problem is not None]
    if failures:
        raise PoseError("; ".join(failures))


def render(options: ViewOptions, target: Path) -> None:
    """Render a result to a video file."""
    with StatusLine("loading the viewer"):
        from pose.view.open3d_scene import check_off_screen, save_video

        size = _size(options.size or "1280x720")
        stage = _stage(options)
        check_off_screen()
    with writing([target]):
        save_video(stage, target, size, fps=options.fps, speed=options.speed or 1.0, progress=_progress)
    print(shown(target))


def _stage(options: ViewOptions) -> "SceneData":
    from pose.results import load_poses
    from pose.view.scene import DepthCloud, SceneData

    table = load_poses(Path(options.poses))
    if len(table) == 0:
        raise PoseError(f"{options.poses}: contains no frame")
    if options.depth is None:
        return SceneData(table)
    if table.world_info is None:
        raise PoseError(f"{options.poses}: has no world coordinates, in which depth images are shown")
    from pose.video.depth import open_depth

    return SceneData(table, DepthCloud(open_depth(Path(options.depth), options.depth_offset), table))


def _target(path: Path, poses: Path, overwrite: bool) -> Path:
    if path.suffix.lower() != ".mp4":
        raise UsageError(f"--save {path}: the name of the video must end in .mp4")
    check_target(path, [poses], overwrite=overwrite)
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--save {path}: no such folder: {path.parent}")
    return path


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{2,4})x(\d{2,4})", text)
    if not found or min(int(found[1]), int(found[2])) < 64:
        raise UsageError(f"--size {text!r}: expected width x height in px, 64 to 9999, such as 1280x720")
    return int(found[1]), int(found[2])


def _progress(shots: list[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    with progress_bar("view", len(shots), " frames") as bar:
        for shot in shots:
            yield shot
            bar.update()
