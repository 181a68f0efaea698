"""`pose-studio`: watch, correct and export results in a browser."""

import asyncio
import secrets
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pose.errors import PoseError
from pose.utils.options import Options, argument, option
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.options import command_parser, config_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pose.utils.json_values import Json

RECORDED = "video.mp4"  # of a live recording, beside its poses.npz
NO_LIBRARY = 'pose-studio needs aiohttp: pip install "pose-run[web]"'


@dataclass(frozen=True, slots=True, kw_only=True)
class StudioOptions(Options):
    """Options of `pose-studio`."""

    folder: str = argument("pose-studio", "folder for videos, results and edits", metavar="FOLDER")
    port: int = option(0, "port to listen on; 0 chooses a free port", minimum=0, maximum=65535)
    browser: bool = option(True, "open the page in a browser")
    phone: bool = option(False, "let phones in the local network send videos: the page shows a code to scan")
    max_gigabytes: float = option(20.0, "maximum size of a video in GB", minimum=0.001, maximum=10000.0)


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-studio`."""
    about = "A page in the browser: drop a clip, watch it, correct it, take it away. It is for this computer only."
    options = config_of(StudioOptions, parse_arguments(command_parser("pose-studio", about, StudioOptions), argv))
    return serve(options)


def open_result(poses: Path, *, browser: bool = True) -> int:
    """Add a result with its video to the studio in the default folder, and serve; PoseError if it cannot be read.

    It is shown as it is. A correction computes with the preset of the result, or with the standard one for other
    networks.
    """
    import shutil

    from pose.results import load_poses, result_file
    from pose.results.cameras import result_cameras
    from pose_apps.studio.projects import DONE, FIRST, PRESETS, Projects, link_or_copy
    from pose_apps.studio.uploads import check_video

    file = result_file(poses)
    run = load_poses(file, mapped=True).run
    sources = [camera.video or "" for camera in result_cameras(run)] or ["" if run is None else run.source]
    videos = [next((path for path in (Path(each), file.parent / RECORDED) if path.is_file()), None) for each in sources]
    if run is None or None in videos:
        missing = sources[videos.index(None)]
        raise PoseError(f"{poses}: its video {missing} is not there; start pose-studio and choose the video")
    options = StudioOptions(browser=browser)
    projects = Projects(Path(options.folder))
    preset, height = _preset_of(run.settings, list(PRESETS)), run.settings.get("height")
    given = float(height) if isinstance(height, str) and height.replace(".", "").isdigit() else None
    first, *others = [video for video in videos if video is not None]
    project = projects.create(first.name, preset or "standard", given, len(videos))
    link_or_copy(first, project.clip)
    for video in others:
        link_or_copy(video, project.camera(video.name))
    check_video(project)
    shutil.copyfile(file, project.result(FIRST))
    project.state = DONE
    if preset is None:
        project.problem = "made with other networks; corrections compute with Standard"
    projects.add(project)
    return serve(options, project.id)


def _preset_of(settings: "Mapping[str, Json]", names: list[str]) -> str | None:
    """Return the preset whose networks the settings of a run name; None if none does."""
    from pose.config import choose_available, choose_networks, load_preset

    for name in names:
        config = choose_available(choose_networks(load_preset(name)))[0]
        if all(settings.get(key) == getattr(config, key) for key in ("detector", "estimator", "ensemble")):
            return name
    return None


def serve(options: StudioOptions, show: str = "") -> int:
    """Serve until Ctrl-C; `show` is the id of the project that the page opens."""
    try:
        import aiohttp  # noqa: F401
    except ModuleNotFoundError as error:
        raise PoseError(NO_LIBRARY) from error
    from pose.live.web.settings import WebSettings
    from pose_apps.studio.projects import Projects
    from pose_apps.studio.server import Studio, StudioSettings
    from pose_apps.webcam.web import run_until_signal

    token = secrets.token_urlsafe(24)
    settings = WebSettings(port=options.port, token=token)
    projects = Projects(Path(options.folder).expanduser())
    limits = StudioSettings(settings=settings, max_gigabytes=options.max_gigabytes, phone=options.phone)
    studio = Studio(limits, projects)

    def started(port: int) -> None:
        address = f"http://{settings.host}:{port}/#token={token}"
        if show:
            address += f"&project={show}"
        print(f"open {address} in a browser; Ctrl-C stops", flush=True)
        if options.browser:
            webbrowser.open(address)

    asyncio.run(run_until_signal(studio.run(started)))
    return 0
