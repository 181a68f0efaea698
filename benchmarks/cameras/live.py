"""Rate, latency and processor time of live cameras that film the same people: docs/studies/cameras.md.

    python -m benchmarks.cameras live [--seconds 30] [--source A B] [--cameras FILE]

Two files are played at their own rate in a loop, as `pose-webcam --source A --source B --cameras FILE` does: by default
the two views of two people at 60 frames/s and 1088 x 1920 px with their calibration. The first five seconds do not
count. Latency is that from the time at which a frame is due to its fused people. Estimates of the clocks and the scene
are part of the run. Times mean something on an idle machine only, so the load is printed, too.
"""

import pose_apps.webcam  # noqa: F401, I001 - as in the command, before NumPy is imported

import os
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

import numpy as np

from benchmarks.common.command import VIDEOS
from pose.config import PipelineConfig, for_each_camera
from pose.live import open_live
from pose.live.several.loop import SeveralLoop
from pose.pipeline import Pipeline

WARM_UP_S, WITHIN_MS = 5.0, 250.0


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--videos", type=Path, default=VIDEOS)
    parser.add_argument("--source", nargs="+", help="videos of one moment")
    parser.add_argument("--cameras", type=Path, help="calibration file; with --source and without it, people calibrate")
    parser.add_argument("--seconds", type=float, default=30.0)


def main(given: Namespace) -> None:
    folder = given.videos / "two-people"
    sources = given.source or [str(folder / f"view-{name}.mp4") for name in "ab"]
    cameras = given.cameras if given.source else folder / "calibration.json"
    pipeline = Pipeline(for_each_camera(PipelineConfig(lifter="sliding"), len(sources)), live=True)
    opened = [open_live(source, loop=True) for source in sources]
    begin = time.monotonic()
    with SeveralLoop(pipeline, opened, world=True, cameras=cameras) as loop:
        latencies, people, used, since = [], [], 0.0, 0.0
        for live in loop.subscribe():
            now = time.monotonic()
            if now - begin < WARM_UP_S:
                used, since, before = time.process_time(), now, loop.status()
                continue
            latencies.append(1000 * live.latency)
            people.append(len(live.result.people))
            if now - begin > WARM_UP_S + given.seconds:
                break
        seconds, used, after = time.monotonic() - since, time.process_time() - used, loop.status()
    times = np.array(latencies)
    arrived, dropped = after.frames_in - before.frames_in, after.dropped - before.dropped
    print(
        f"{len(sources)} cameras, {np.mean(people):.1f} people, load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores"
    )
    print(f"{len(times) / seconds:.1f} results/s, {1000 * used / len(times):.0f} ms of processor time per result")
    print(f"latency {np.median(times):.0f} ms, 95 % within {np.percentile(times, 95):.0f} ms, ", end="")
    print(f"{100 * np.mean(times <= WITHIN_MS):.0f} % within {WITHIN_MS:.0f} ms")
    print(f"{arrived / seconds:.0f} frames/s arrived, {100 * dropped / arrived:.0f} % of them dropped; {after.cameras}")
