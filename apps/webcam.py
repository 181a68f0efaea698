"""`pose-webcam`: live poses of a camera, in a window, in a browser (--web), or without either (--headless)."""

import math
import signal
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import ArgumentParser

from apps.common import parse_arguments, run_command
from apps.options import add_config_option, add_options, config_of
from apps.webcam_options import WebcamConfig, open_live_source
from pose.config import PipelineConfig
from pose.errors import PoseError, UsageError

if TYPE_CHECKING:
    from apps.webcam_report import Watch
    from pose.live import LiveLoop

LOOK_SECONDS = 0.5


@run_command
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `pose-webcam`."""
    parser = ArgumentParser(
        prog="pose-webcam",
        description="Live poses of a camera: in a window, in a browser (--web), or without either (--headless).",
        exit_on_error=False,
    )
    add_config_option(parser)
    add_options(parser, WebcamConfig)
    add_options(parser, PipelineConfig)
    parsed = parse_arguments(parser, argv)
    config, pipeline_config = config_of(WebcamConfig, parsed), config_of(PipelineConfig, parsed)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # finish in good order when the system asks, too
    if config.web:
        if config.headless:
            raise UsageError("--web and --headless: choose one of them")
        return _serve(config, pipeline_config)
    if config.headless:
        return run_headless(config, pipeline_config)
    from apps.webcam_window import run_window

    return run_window(config, pipeline_config)


def _serve(config: WebcamConfig, pipeline_config: PipelineConfig) -> int:
    from apps.webcam_extras import load_pipeline
    from apps.webcam_web import serve, web_settings

    web_settings(config)  # says what is wrong before the networks are loaded
    return serve(config, load_pipeline(pipeline_config))


def run_headless(config: WebcamConfig, pipeline_config: PipelineConfig) -> int:
    """The loop alone, at the source's pace; the exit status. Ctrl-C ends it in good order."""
    from apps.webcam_extras import live_extras, load_pipeline
    from apps.webcam_report import Watch, summary, write_report
    from pose.live import LiveLoop
    from pose.live.subscriber import Subscriber

    interrupted = False
    with closing(open_live_source(config)) as source:
        loop = LiveLoop(load_pipeline(pipeline_config), source)
        watch = Watch(loop)
        try:
            with live_extras(loop, config), Subscriber(loop, watch.see, maxlen=64), loop:
                _watch(loop, watch, config.seconds)
        except KeyboardInterrupt:
            interrupted = True
        report = watch.report()
    print(summary(report))
    if config.report is not None:
        write_report(Path(config.report), report)
    if interrupted:
        raise KeyboardInterrupt
    if not report["processed"]:
        raise PoseError(f"{report['source']}: no frame was processed")
    return 0


def _watch(loop: "LiveLoop", watch: "Watch", seconds: float | None) -> None:
    """Until the source or the time ends."""
    end = math.inf if seconds is None else time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not loop.wait(min(left, LOOK_SECONDS)):
        watch.look()
