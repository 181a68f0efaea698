"""`pose-webcam`: live poses from a camera, in a window, in a browser (--web), or without display (--headless)."""

import signal
from collections.abc import Sequence
from dataclasses import fields, replace

from pose.config import PipelineConfig, for_each_camera
from pose.errors import UsageError
from pose.live.web.settings import WebOptions
from pose_apps.support.command import parse_arguments, run_command
from pose_apps.support.interrupts import interrupt_on_hangup
from pose_apps.support.options import command_parser, config_first, config_of, gathered
from pose_apps.support.status import StatusLine
from pose_apps.webcam.options import SinkConfig, WebcamConfig, check_several

NOT_WITH_WEB = ("headless", "record", "report", *(sink.name for sink in fields(SinkConfig)))
ONLY_WITH_WEB = tuple(entry for entry in fields(WebOptions) if entry.name not in ("mirror", "out"))


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `pose-webcam`."""
    purpose = "Track people live: in a window, in a browser (--web), or without display (--headless)."
    parser = command_parser("pose-webcam", purpose, WebcamConfig, PipelineConfig, presets=True)
    parsed = parse_arguments(parser, gathered(config_first(argv), "--source"))
    config, pipeline_config = config_of(WebcamConfig, parsed), config_of(PipelineConfig, parsed)
    if config.demo:
        config = _of_demo_clip(config)
    check_several(config, pipeline_config)
    if len(config.source) > 1:
        pipeline_config = for_each_camera(pipeline_config, len(config.source))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # also end gracefully on signals of the system
    interrupt_on_hangup()
    if not config.web:
        for entry in ONLY_WITH_WEB:
            if getattr(config, entry.name) != entry.default:
                raise UsageError(f"--{entry.name.replace('_', '-')}: applies only to --web")
    if config.web:
        return _serve(config, pipeline_config)
    if config.headless:
        with StatusLine("loading"):
            from pose_apps.webcam.run import run_headless

        return run_headless(config, pipeline_config)
    with StatusLine("loading"):
        from pose_apps.webcam.window import run_window

    return run_window(config, pipeline_config)


def _of_demo_clip(config: WebcamConfig) -> WebcamConfig:
    from pose_apps.support.demo import demo_clip

    if config.source:
        raise UsageError("--demo and --source: give only one")
    return replace(config, source=[demo_clip()], loop=True)


def _serve(config: WebcamConfig, pipeline_config: PipelineConfig) -> int:
    for name in NOT_WITH_WEB:
        if getattr(config, name):
            raise UsageError(f"--{name}: cannot be combined with --web")
    if config.once and not config.source:
        raise UsageError("--once: needs --source; the camera of a browser does not end")
    with StatusLine("loading the networks"):
        from pose.live.horizon import Horizon
        from pose_apps.webcam.live_outputs import load_pipeline
        from pose_apps.webcam.options import check_live_source, live_camera
        from pose_apps.webcam.web import check_library, serve, web_settings

        check_library()  # check before the networks are loaded
        Horizon.parse(config.ahead, pipeline_config.lookahead)
        web_settings(config)
        if config.source or config.depth:
            check_live_source(config)
        pipeline = load_pipeline(pipeline_config, live_camera(config))
    return serve(config, pipeline)
