"""Options of `pose-webcam`, apart from those of the pipeline.

With `--web`, `pose_apps.webcam.web.serve` runs the server until Ctrl-C or until `config.seconds` have passed. The
server makes one of three kinds of loops:

- `LiveLoop` over `open_live_source(config)`, if `config.source` has one source.
- `SeveralLoop`, if `config.source` has several sources.
- `LiveLoop` over `PushedFrames` for the camera of each browser, if `config.source` is empty.

All loops share the pipeline.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pose.config import LiveConfig, LiveWorldConfig, PipelineConfig
from pose.errors import PoseError, UsageError
from pose.live.web.settings import WebOptions
from pose.multiview.videos import MAX_CAMERAS, repeated, source_names
from pose.utils.options import option
from pose.world.given import read_heights
from pose_apps.webcam.sinks import SinkConfig

if TYPE_CHECKING:
    from pose.live import LiveSource, Loop
    from pose.pipeline import Pipeline
    from pose.world.clean import Steps

CAMERA = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebcamConfig(SinkConfig, LiveConfig, WebOptions, LiveWorldConfig):
    """Options of a live run with its sinks."""

    source: list[str] = option(
        [],
        "a camera number, an RTSP or http(s) address, or a video file; repeat for 2 to 8 cameras of one scene; "
        "default: camera 0 (--web: the browser's)",
    )
    cameras: str | None = option(
        None, "calibration of several sources, such as cameras.json; default: calibrate from people"
    )
    demo: bool = option(False, "loop a short clip of two people (downloaded once) instead of a camera")
    loop: bool = option(False, "restart a video file at its end")
    seconds: float | None = option(None, "stop after this many seconds", minimum=0.1)
    intrinsics: str | None = option(
        None,
        "camera: fx,fy,cx,cy in px, or a file with a matrix or a calibration; default: assumed field of view",
    )
    record: bool = option(False, "record from the start: video and poses, in a new folder in --out")
    headless: bool = option(False, "run without a window")
    report: str | None = option(None, "write measurements to this JSON file at the end")
    web: bool = option(False, "serve the live view to browsers")
    body: bool = option(
        False, "draw shaded bodies of the people nearest to the camera, in the window or the page's 3D view"
    )

    def __post_init__(self) -> None:
        LiveWorldConfig.__post_init__(self)
        if self.body and self.headless:
            raise UsageError("--body: cannot be combined with --headless, which draws nothing")


def check_live_source(config: WebcamConfig) -> None:
    """Check the sources and their calibration before networks are loaded, without connecting."""
    from pose.video import check_source

    names = [check_source(source) for source in config.source or [CAMERA]]
    if config.cameras is not None:
        from pose.multiview.calibration_files import check_cameras

        check_cameras(Path(config.cameras), source_names(names))


def check_several(config: WebcamConfig, pipeline: PipelineConfig) -> None:
    """Check that the other options fit the number of sources."""
    if len(config.source) < 2:
        if config.cameras is not None:
            raise UsageError("--cameras: needs several cameras; give --source for each")
        return
    if len(config.source) > MAX_CAMERAS:
        raise UsageError(f"--source: got {len(config.source)}; allowed: 1 to {MAX_CAMERAS}")
    if (source := repeated(config.source)) is not None:
        raise UsageError(f"--source {source}: given twice; each camera needs its own source")
    chosen = {
        "ahead": config.ahead is not None,
        "bridge": config.bridge not in (0, LiveConfig.bridge),
        "body": config.body,
        "hands": pipeline.hands,
        "face": pipeline.face,
    }
    for name in (name for name, is_chosen in chosen.items() if is_chosen):
        raise UsageError(f"--{name}: not available with several sources")
    if config.height is not None and list(read_heights(config.height)) != [None]:
        raise UsageError(f"height: several sources take one height, of the person seen longest; got {config.height!r}")
    if config.height is not None and config.cameras is not None:
        raise UsageError(f"height: the calibration in {config.cameras} already sets the scale")
    if config.cameras is not None and not Path(config.cameras).is_file():
        raise UsageError(f"--cameras {config.cameras}: no such file")


def open_live_source(config: WebcamConfig) -> "LiveSource":
    """Open the first of the requested sources, or the first camera if no source is given."""
    from pose.live import open_live

    return open_live((config.source or [CAMERA])[0], loop=config.loop)


def open_loop(config: WebcamConfig, pipeline: "Pipeline", world: "Steps | None") -> "Loop":
    """Make a loop over the requested sources. When the loop is stopped, it closes the sources."""
    from pose.live import LiveLoop, open_live
    from pose.live.several import SeveralLoop

    if len(config.source) < 2:
        return LiveLoop(pipeline, open_live_source(config), config, world=world)
    sources: list[LiveSource] = []
    try:
        for source in config.source:
            sources.append(open_live(source, loop=config.loop))
        height = read_heights(config.height).get(None)
        return SeveralLoop(pipeline, sources, world=world, cameras=config.cameras, height=height)
    except PoseError:
        for opened in sources:
            opened.close()
        raise
