"""Steps of a live run that are common to all displays: source, networks, sinks, loop, and final report."""

import math
import time
from collections.abc import Callable
from pathlib import Path

from pose.config import PipelineConfig
from pose.errors import PoseError
from pose.live import Loop
from pose.live.horizon import Horizon
from pose_apps.support.status import StatusLine
from pose_apps.webcam.live_outputs import (
    LiveOutputs,
    finish_interrupted_recordings,
    load_pipeline,
    open_live_outputs,
    world_steps,
)
from pose_apps.webcam.options import WebcamConfig, check_live_source, check_sinks, live_camera, open_loop
from pose_apps.webcam.report import check_report, summary, watched, write_report

POLL_SECONDS = 0.5


def run_live(config: WebcamConfig, pipeline_config: PipelineConfig, show: Callable[[Loop, LiveOutputs], None]) -> int:
    """Run the live loop until `show` returns, and return the exit status."""
    interrupted = False
    check_sinks(config, config.token)
    check_live_source(config)
    check_report(config)
    Horizon.parse(config.ahead, pipeline_config.lookahead)
    finish_interrupted_recordings(config)
    with StatusLine("loading the networks"):
        pipeline = load_pipeline(pipeline_config, live_camera(config))
    loop = open_loop(config, pipeline, world_steps(config, pipeline))  # last, so that the first frames are not old
    try:
        with watched(loop) as watch:
            try:
                with open_live_outputs(loop, config) as watch.outputs, loop:
                    show(loop, watch.outputs)
            except KeyboardInterrupt:
                interrupted = True
        report = watch.report()
    finally:
        loop.close()
    print(summary(report))
    failures = [] if watch.outputs is None else watch.outputs.failures
    if config.report is not None:
        try:
            write_report(Path(config.report), report)
        except PoseError as error:
            failures.append(str(error))
    if failures:
        raise PoseError("; ".join(failures))
    if interrupted:
        raise KeyboardInterrupt
    if not report["processed"]:
        raise PoseError(f"{report['source']}: no frame was processed")
    return 0


def run_headless(config: WebcamConfig, pipeline_config: PipelineConfig) -> int:
    """Run the live loop without display, at the source's rate, until its end or limit; return the exit status."""

    def wait(loop: Loop, _outputs: LiveOutputs) -> None:
        end = math.inf if config.seconds is None else time.monotonic() + config.seconds
        while (left := end - time.monotonic()) > 0 and not loop.wait(min(left, POLL_SECONDS)):
            pass

    return run_live(config, pipeline_config, wait)
