"""`pose-view`: look at a result in 3D, in a window or as a video."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import PoseError, UsageError
from pose.system.progress import progress_bar
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.status import Status

if TYPE_CHECKING:
    from jsonargparse import ArgumentParser

    from pose.view.scene import Stage


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `pose-view`."""
    arguments = parse_arguments(_parser(), argv)
    if arguments.save is None:
        for name in ("size", "fps", "speed"):
            if arguments[name] is not None:
                raise UsageError(f"--{name} is for the video of --save; the window has its own controls")
        show(Path(arguments.poses))
        return 0
    for name in ("fps", "speed"):
        if arguments[name] is not None and not 0 < arguments[name] <= 1000:
            raise UsageError(f"--{name} {arguments[name]}: must be above 0, at most 1000")
    target = _target(Path(arguments.save), arguments.overwrite)
    render(Path(arguments.poses), target, _size(arguments.size or "1280x720"), arguments.fps, arguments.speed or 1.0)
    return 0


def show(poses: Path) -> None:
    """Open a window on a result, until the user closes it."""
    with Status("loading the viewer"):
        from pose.view.open3d_scene import check_window
        from pose.view.open3d_window import open_window

        stage = _stage(poses)
        check_window()
    open_window(stage, poses.name)


def render(poses: Path, target: Path, size: tuple[int, int], fps: float | None, speed: float) -> None:
    """Render a result into the video `target`."""
    with Status("loading the viewer"):
        from pose.view.open3d_scene import check_off_screen, save_video

        stage = _stage(poses)
        check_off_screen()
    save_video(stage, target, size, fps=fps, speed=speed, progress=_progress)
    print(target)


def _stage(poses: Path) -> "Stage":
    from pose.files import load_poses
    from pose.view.scene import Stage

    table = load_poses(poses)
    if len(table) == 0:
        raise PoseError(f"{poses}: holds no frame")
    return Stage(table)


def _parser() -> "ArgumentParser":
    from jsonargparse import ArgumentParser

    parser = ArgumentParser(
        prog="pose-view", description="Look at a poses.npz of pose-run or pose-lift in 3D.", exit_on_error=False
    )
    parser.add_argument("poses", metavar="POSES.npz", help="what pose-run or pose-lift wrote")
    parser.add_argument("--save", metavar="CLIP.mp4", help="render into this video instead of opening a window")
    parser.add_argument("--size", metavar="WxH", help="of the video, px; default: 1280x720")
    parser.add_argument("--fps", type=float, help="of the video; default: the time stamps of the result")
    parser.add_argument("--speed", type=float, help="2 lets the video play twice as fast")
    parser.add_argument("--overwrite", action="store_true", help="replace an existing video")
    return parser


def _target(path: Path, overwrite: bool) -> Path:
    if path.suffix.lower() != ".mp4":
        raise UsageError(f"--save {path}: the name of the video must end in .mp4")
    if path.exists() and not overwrite:
        raise UsageError(f"--save {path} exists already; add --overwrite to replace it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--save {path}: there is no folder {path.parent}")
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
