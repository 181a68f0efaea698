"""Options of `pose-webcam`, apart from those of the pipeline, and construction of its sinks.

With `--web`, `pose_apps.webcam.web.serve` runs the server until Ctrl-C or until `config.seconds` have passed. The
server makes one of three kinds of loops:

- `LiveLoop` over one source, if `config.source` has one, or `config.depth` is a depth camera.
- `SeveralLoop`, if `config.source` has several sources.
- `LiveLoop` over `PushedFrames` for the camera of each browser, if `config.source` is empty.

All loops share the pipeline.

To add a sink, implement `Sink` in a new module of `pose.live`. Then add an option to `SinkConfig`, and open the sink in
`open_sinks`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from pose.config import LiveConfig, LiveWorldConfig, PipelineConfig
from pose.errors import PoseError, UsageError
from pose.live.web.settings import WebOptions
from pose.multiview.videos import MAX_CAMERAS, repeated, source_names
from pose.utils.options import option
from pose.world.given import read_heights

if TYPE_CHECKING:
    from pose.live import LiveSource, Loop
    from pose.pipeline import Pipeline
    from pose.structures.camera import Camera
    from pose.world.clean import Steps
    from pose.world.measured import DepthImages

SEND_HELP = (
    "send poses to vmc, vrchat, osc, lsl, mqtt, mcap, foxglove or camera, such as vmc=192.168.1.5:39539 (extra [links])"
)


class Sink(Protocol):
    """Protocol of an output that sends or shows the results of a live loop until it is closed."""

    @property
    def lost(self) -> int:
        """Number of messages or frames that could not be sent or shown."""
        ...

    @property
    def trouble(self) -> str:
        """Reason why results are currently lost; empty if none are lost."""
        ...

    @property
    def problem(self) -> str | None:
        """Reason why the sink stopped; None while it runs."""
        ...

    def close(self) -> None:
        """Send the results that are still waiting, and release the resources."""
        ...


@dataclass(frozen=True, kw_only=True)  # no slots, because of multiple inheritance
class SinkConfig:
    """Options of the sinks. All sinks are off by default."""

    udp: str | None = option(None, "send each pose as a JSON message to HOST:PORT")
    ws: str | None = option(
        None,
        "serve each pose as JSON to WebSocket clients at [HOST:]PORT; see --host",
    )
    rerun: bool = option(False, "show poses in Rerun (extra [rerun])")
    send: str | None = option(None, SEND_HELP, metavar="NAME[=ADDRESS],...")


def check_sinks(config: SinkConfig, token: str | None) -> None:
    """Check the addresses of the sinks, and whether they need a token, before networks are loaded."""
    from pose.live.access import check_token, token_from
    from pose.live.sinks import LOOPBACK, find_receiver, read_address

    if config.udp is not None:
        find_receiver(*read_address("udp", config.udp))
    if config.send is not None:
        from pose.live.links import check_links

        check_links(config.send)
    if config.ws is not None:
        check_token("ws", read_address("ws", config.ws, LOOPBACK)[0], token_from(token))


def open_sinks(loop: "Loop", config: SinkConfig, token: str | None) -> Iterator[tuple[str, Sink]]:
    """Open the requested sinks, and yield each with the name of its option."""
    from pose.live.sinks import LOOPBACK, UdpSink, read_address

    if config.udp is not None:
        yield "--udp", UdpSink(loop, *read_address("udp", config.udp))
    if config.ws is not None:
        from pose.live.access import token_from
        from pose.live.websocket import WebSocketSink

        host, port = read_address("ws", config.ws, LOOPBACK)
        websocket = WebSocketSink(loop, host, port, token_from(token))
        print(f"poses at ws://{host}:{websocket.port}", flush=True)
        yield "--ws", websocket
    if config.rerun:
        from pose.live.rerun_sink import RerunSink

        yield "--rerun", RerunSink(loop)
    if config.send is not None:
        from pose.live.links import open_links

        for link in open_links(loop, config.send):
            yield f"--send {link.name}", link


CAMERA = "0"
REALSENSE = "realsense"  # --depth realsense[:SERIAL]


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
    depth: str | None = option(
        None,
        "realsense[:SERIAL] or its .bag, which contain colour and depth, or the depth images of a video file; "
        "see docs/guides/sensors.md",
        metavar="PATH",
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
        if self.depth is not None:
            if not self.world:
                raise UsageError("depth: needs world coordinates; leave out --no-world")
            if len(self.source) > 1:
                raise UsageError("depth: not available with several sources")
            from_camera = self.depth.partition(":")[0] == REALSENSE
            if from_camera and self.source:
                raise UsageError("depth: this camera delivers the colour images, too; leave out --source")
            if not from_camera and not Path(self.depth).exists():
                raise UsageError(f"depth: {self.depth}: no such file or folder")
            if not (from_camera or is_live_depth(self)) and not (self.source and Path(self.source[0]).exists()):
                raise UsageError("depth: recorded depth images need --source with the video file recorded with them")
        if self.body and self.headless:
            raise UsageError("--body: cannot be combined with --headless, which draws nothing")


def check_live_source(config: WebcamConfig) -> None:
    """Check the sources and their calibration before networks are loaded, without connecting."""
    from pose.video import check_source

    if is_live_depth(config):
        return
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


def is_live_depth(config: WebcamConfig) -> bool:
    """Return whether the depth images come with the colour images, from a camera or its recording."""
    if config.depth is None or config.source:
        return False
    return config.depth.partition(":")[0] == REALSENSE or config.depth.lower().endswith(".bag")


def open_source_and_depth(config: WebcamConfig) -> "tuple[LiveSource, DepthImages | None]":
    """Open the first of the requested sources, or the first camera if no source is given, and its depth images."""
    from pose.live import open_live

    if is_live_depth(config):
        from pose.live.depth_camera import DepthCamera

        assert config.depth is not None
        both = DepthCamera(config.depth)
        return both, both
    depth = None
    if config.depth is not None:
        from pose.video.depth import open_depth

        depth = open_depth(Path(config.depth))
    return open_live((config.source or [CAMERA])[0], loop=config.loop), depth


def live_camera(config: WebcamConfig) -> "str | Camera | None":
    """Return the intrinsics of the colour camera that the user or the depth images state."""
    if config.intrinsics is not None or config.depth is None:
        return config.intrinsics
    if is_live_depth(config):
        from pose.live.depth_camera import DepthCamera

        opened = DepthCamera(config.depth)
        opened.close()
        return opened.colour_camera
    from pose.video.depth import open_depth

    return open_depth(Path(config.depth)).colour_camera


def open_loop(config: WebcamConfig, pipeline: "Pipeline", world: "Steps | None") -> "Loop":
    """Make a loop over the requested sources. When the loop is stopped, it closes the sources."""
    from pose.live import LiveLoop, open_live
    from pose.live.several import SeveralLoop

    if len(config.source) < 2:
        source, depth = open_source_and_depth(config)
        return LiveLoop(pipeline, source, config, world=world, depth=depth)
    sources: list[LiveSource] = []
    try:
        for name in config.source:
            sources.append(open_live(name, loop=config.loop))
        height = read_heights(config.height).get(None)
        return SeveralLoop(pipeline, sources, world=world, cameras=config.cameras, height=height)
    except PoseError:
        for opened in sources:
            opened.close()
        raise
