"""What `pose-webcam` can be told, apart from the pipeline's options.

`pose_apps.webcam.web.serve(config: WebcamConfig, pipeline: Pipeline) -> int` runs `--web` until Ctrl-C or until
`config.seconds` have passed, and returns the exit status. It makes a `LiveLoop` over `open_live_source(config)` where
`config.source` is given, else one over `PushedFrames` for each browser's camera; all of them share the pipeline.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pose.config import PipelineConfig
from pose.errors import UsageError
from pose.options import option
from pose_apps.support.world import LiveWorldConfig
from pose_apps.webcam.sinks import SinkConfig

if TYPE_CHECKING:
    from pose.live import LiveSource
    from pose.live.horizon import Horizon

CAMERA = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebcamConfig(SinkConfig, LiveWorldConfig):
    """One live demo, with its sinks. Raises UsageError for a value that is not allowed."""

    source: str | None = option(
        None, "a camera number, an RTSP or http(s) address, or a video file; by default camera 0 (--web: the browser's)"
    )
    demo: bool = option(False, "show a short clip of two people (fetched once) again and again, instead of a camera")
    loop: bool = option(False, "begin a file again at its end")
    seconds: float | None = option(None, "end after so many seconds", least=0.1)
    ahead: str | None = option(
        None, "predict poses to the moment they are shown: auto (measured), or so many ms; not with lookahead"
    )
    bridge: float = option(
        0.5, "seconds for which somebody who is hidden is carried on by prediction; 0: not at all", least=0, most=1
    )
    intrinsics: str | None = option(
        None, "the camera: fx,fy,cx,cy in px, or a file with its 3x3 matrix; by default a field of view is assumed"
    )
    mirror: bool = option(False, "show the picture as a mirror does")
    out: str = option(".", "folder for recordings and snapshots")
    record: bool = option(False, "record from the start: video and poses, in a new folder in --out")
    headless: bool = option(False, "run without a window")
    report: str | None = option(None, "write what was measured into this JSON file at the end")
    web: bool = option(False, "serve it to a browser")
    host: str = option("127.0.0.1", "--web: the address to bind; another than this computer's own needs --token")
    port: int = option(8000, "--web: the port to bind; 0 takes a free one", least=0, most=65535)
    token: str | None = option(None, "--web: what a browser must show to be let in; or set POSE_WEB_TOKEN")
    cert: str | None = option(None, "--web: a certificate (PEM), for https")
    key: str | None = option(None, "--web: the certificate's key (PEM)")
    once: bool = option(False, "--web: exit when the source ends; by default the page offers to play it again")
    keep_hours: float = option(
        24.0, "--web: hours for which a recording is kept and offered for download", least=0.01, most=8760
    )
    clients: int = option(4, "--web: serve at most so many browsers at a time", least=1, most=64)

    def __post_init__(self) -> None:
        LiveWorldConfig.__post_init__(self)


def read_horizon(config: WebcamConfig, pipeline_config: PipelineConfig) -> "Horizon | None":
    """What `--ahead` says; None without it. Raises UsageError where it cannot be, or not with a look-ahead."""
    from pose.live.horizon import NOT_BOTH, Horizon

    if config.ahead is None:
        return None
    horizon = Horizon.read(config.ahead)
    if pipeline_config.lookahead:
        raise UsageError(NOT_BOTH)
    return horizon


def check_live_source(config: WebcamConfig) -> None:
    """Say what is wrong with it before networks are loaded; nothing is connected to. Raises PoseError."""
    from pose.video import check_source

    check_source(config.source or CAMERA)


def open_live_source(config: WebcamConfig) -> "LiveSource":
    """The source that was asked for, else the first camera. Raises PoseError when it cannot be opened."""
    from pose.live import open_live

    return open_live(config.source or CAMERA, loop=config.loop)
