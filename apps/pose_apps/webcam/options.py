"""Options of `pose-webcam`, apart from those of the pipeline.

`pose_apps.webcam.web.serve(config: WebcamConfig, pipeline: Pipeline) -> int` runs `--web` until Ctrl-C or until
`config.seconds` have passed, and returns the exit status. It makes a `LiveLoop` over `open_live_source(config)` where
`config.source` is given, else one over `PushedFrames` for each browser's camera; all of them share the pipeline.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pose.config import LiveConfig
from pose.options import option
from pose.web.settings import WebOptions
from pose_apps.support.world import LiveWorldConfig
from pose_apps.webcam.sinks import SinkConfig

if TYPE_CHECKING:
    from pose.live import LiveSource

CAMERA = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebcamConfig(SinkConfig, LiveConfig, WebOptions, LiveWorldConfig):
    """Options of a live run with its sinks.

    Raises:
        UsageError: If a value is invalid.
    """

    source: str | None = option(
        None, "a camera number, an RTSP or http(s) address, or a video file; default: camera 0 (--web: the browser's)"
    )
    demo: bool = option(False, "loop a short clip of two people (downloaded once) instead of a camera")
    loop: bool = option(False, "restart a video file at its end")
    seconds: float | None = option(None, "stop after this many seconds", minimum=0.1)
    intrinsics: str | None = option(
        None, "camera intrinsics: fx,fy,cx,cy in px, or a file with a 3x3 matrix; default: assumed field of view"
    )
    record: bool = option(False, "record from the start: video and poses, in a new folder in --out")
    headless: bool = option(False, "run without a window")
    report: str | None = option(None, "write measurements to this JSON file at the end")
    web: bool = option(False, "serve the live view to browsers")

    def __post_init__(self) -> None:
        LiveWorldConfig.__post_init__(self)


def check_live_source(config: WebcamConfig) -> None:
    """Check the source before networks are loaded, without connecting.

    Raises:
        PoseError: If it is invalid.
    """
    from pose.video import check_source

    check_source(config.source or CAMERA)


def open_live_source(config: WebcamConfig) -> "LiveSource":
    """Open the requested source; default the first camera.

    Raises:
        PoseError: If it cannot be opened.
    """
    from pose.live import open_live

    return open_live(config.source or CAMERA, loop=config.loop)
