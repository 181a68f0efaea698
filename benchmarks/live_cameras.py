"""How much the fusion of several live cameras adds to the latency of one: docs/guides/live.md.

    python -m benchmarks.live_cameras a.mp4 b.mp4 --cameras calibration.json

Both videos run through the live pipeline frame by frame, then their results through the fusing stage. Printed are
processor times: of a frame in the pipeline of one camera, and of the fusing thread for a frame of the shown camera.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from pose.config import load_preset
from pose.live.result import LiveResult, Stream
from pose.live.several.rigging import Rigging
from pose.live.several.stage import FusionStage
from pose.multiview.calibration_files import read_cameras
from pose.multiview.types import ViewCamera
from pose.pipeline import Pipeline
from pose.video import open_source
from pose.world.clean import Steps

WARM = 10  # first frames, which are not counted


def seen(pipeline: Pipeline, video: str) -> tuple[list[LiveResult], list[float]]:
    """The results of one camera, and the processor seconds of each frame."""
    results, seconds = [], []
    with open_source(video) as source:
        session = pipeline.session(source.info.size)
        stream = Stream(pipeline, session, source.info.size)
        for frame in source:
            begun = time.process_time()
            found = session.lift(session.track(frame))
            seconds.append(time.process_time() - begun)
            results += [
                LiveResult(frame.image, one, pipeline.skeleton, one.time, one.time, stream, final=True) for one in found
            ]
    return results, seconds


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("videos", nargs="+")
    parser.add_argument("--cameras", required=True)
    args = parser.parse_args()
    pipeline = Pipeline(load_preset("fast"), live=True)
    runs = [seen(pipeline, video) for video in args.videos]
    names = [Path(video).stem for video in args.videos]
    rigging = Rigging(
        names,
        lambda size: ViewCamera.of(pipeline.camera(size)),
        lambda sizes: read_cameras(Path(args.cameras), names, sizes),
    )
    stage, added, people = FusionStage(rigging, Steps()), [], []
    for number in range(min(len(results) for results, _ in runs)):
        begun = time.thread_time()
        shown = stage.take([(index, results[number]) for index, (results, _) in enumerate(runs)])
        if number >= WARM and shown[0].stream is not None and shown[0].stream.cameras:
            added.append(time.thread_time() - begun)
            people.append(len(shown[0].result.people))
    own = np.concatenate([seconds[WARM:] for _, seconds in runs])
    print(f"{len(runs)} cameras, {len(added)} frames, {np.mean(people):.1f} people on average")
    print(f"one camera: median {1000 * np.median(own):.1f} ms of processor time for a frame")
    middle, high = np.percentile(added, [50, 95])
    print(f"fusion: median {1000 * middle:.1f} ms, 95th percentile {1000 * high:.1f} ms")
    print(f"ratio: {middle / np.median(own):.3f}")
    for count in sorted(set(people)):
        some = [1000 * one for one, number in zip(added, people, strict=True) if number == count]
        print(f"{count} people: median {np.median(some):.1f} ms ({len(some)} frames)")


if __name__ == "__main__":
    main()
