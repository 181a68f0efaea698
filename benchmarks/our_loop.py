"""Our side of `mediapipe_speed.py`: one clip in a process of its own.

    python our_loop.py 2d|all CLIP.mp4 OUT.json

2d: decode, find and track people. all: also 3D, and OUT.json written. Prints the seconds of the loop, loading excluded.
"""

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from pose.config import load_preset
from pose.pipeline import Pipeline
from pose.results import JsonWriter
from pose.utils.prefetch import prefetch
from pose.utils.times import StageTimes
from pose.video import open_source


def loop_2d(clip: str, _: Path) -> Callable[[], None]:
    """Load the 2D stages; the loop to time."""
    from pose.networks.options import DEFAULT_OPTIONS
    from pose.registry import DETECTORS, ESTIMATORS, build
    from pose.tracking.config import TrackingConfig
    from pose.tracking.people_tracker import PeopleTracker

    config = load_preset("fast")
    stage = PeopleTracker(
        build(DETECTORS, "blazepose", DEFAULT_OPTIONS),
        build(ESTIMATORS, "blazepose", DEFAULT_OPTIONS),
        TrackingConfig(tracker=config.tracker, max_people=config.max_people, detection_interval_s=config.detect_every),
    )

    def loop() -> None:
        with open_source(clip) as source:
            for frame in prefetch(source, StageTimes(), threading.Event()):
                stage.step(frame.image, frame.index, frame.time)

    return loop


def loop_all(clip: str, out: Path) -> Callable[[], None]:
    """Load the whole pipeline; the loop to time."""
    pipeline = Pipeline.from_preset("fast")

    def loop() -> None:
        with open_source(clip) as source:
            size = source.info.size
            info = pipeline.run_info(source.name, source.info.fps, size)
            with JsonWriter(out, info) as writer:
                for result in pipeline.run(source):
                    writer.write(result)
                writer.close()

    return loop


def main(stages: str, clip: str, out: str) -> None:
    loop = {"2d": loop_2d, "all": loop_all}[stages](clip, Path(out))
    start = time.perf_counter()
    loop()
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main(*sys.argv[1:])
