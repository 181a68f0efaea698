"""Run time of tracking two people who touch, without the networks, by kind of frame.

    python benchmarks/tracking_cost.py --shared ../shared [--runs 15]

The clips are the two views of `two-people`, a man and a woman on and beside a treadmill. Detector and estimator run
once; then their outputs are replayed, so that neither their time nor their threads and caches count. What is left is
all of `PeopleTracker.step`. Every run must give bit-identical people. The time is processor time of the thread, the
minimum over all runs for each frame. Kinds of frames: `masks` where a person is masked to search for another one,
`detects` with a detection pass.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pose_detectors.blazepose import BlazePoseDetector
from pose_detectors.rtmdet import RTMDetDetector

from pose.networks.estimators.blazepose import BlazePose
from pose.structures.stages import Detector
from pose.structures.types import F64, U8, Boxes, Frame, Keypoints2D, People, Regions
from pose.tracking.people_tracker import PeopleTracker
from pose.video import open_source

VIEWS = ("view-a", "view-b")
DETECTORS = ("rtmdet", "blazepose")
KINDS = {
    (False, False): "follows",
    (False, True): "detects",
    (True, False): "masks",
    (True, True): "masks and detects",
}


class Played:
    """A network that answers once, and then says the same again."""

    def __init__(self, network: Any, asked: Callable[[Sequence[U8]], None]) -> None:
        """asked: is told of the images while answers are recorded."""
        self._network, self._asked = network, asked
        self._answers: list[Any] = []
        self._next: int | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._network, name)

    def rewind(self) -> None:
        self._next = 0

    def _answer(self, compute: Callable[[], Any], images: Sequence[U8]) -> Any:
        if self._next is None:
            self._asked(images)
            self._answers.append(compute())
            return self._answers[-1]
        self._next += 1
        return self._answers[self._next - 1]

    def detect(self, images: Sequence[U8]) -> list[Boxes]:
        return self._answer(lambda: self._network.detect(images), images)

    def estimate(self, images: Sequence[U8], regions: Sequence[Regions]) -> list[Keypoints2D]:
        return self._answer(lambda: self._network.estimate(images, regions), images)


def follow(stage: PeopleTracker, frames: list[Frame]) -> tuple[F64, list[People]]:
    """Seconds of the thread (T,), and who was found."""
    spent, found = [], []
    for frame in frames:
        began = time.thread_time()
        found.append(stage.step(frame.image, frame.index, frame.time))
        spent.append(time.thread_time() - began)
    return np.array(spent), found


def same(a: People, b: People) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in ("ids", "boxes", "keypoints", "scores"))


def detector_of(name: str, weights: Path) -> Detector:
    if name == "rtmdet":
        return RTMDetDetector(model=weights / "rtmdet-nano-person-320.onnx")
    return BlazePoseDetector(model=weights / "blazepose-detector.tflite")


def cost(frames: list[Frame], detects: Detector, estimates: BlazePose, runs: int) -> tuple[F64, list[str]]:
    """Milliseconds (T,) of each frame, and its kind."""
    kinds: list[str] = []
    masks = detected = False

    def on_detection(_: Sequence[U8]) -> None:
        nonlocal detected
        detected = True

    def on_estimate(images: Sequence[U8]) -> None:
        nonlocal masks
        masks = masks or images[0] is not frame.image

    detector, estimator = Played(detects, on_detection), Played(estimates, on_estimate)
    stage, first = PeopleTracker(detector, estimator), []
    for frame in frames:
        masks = detected = False
        first.append(stage.step(frame.image, frame.index, frame.time))
        kinds.append(KINDS[masks, detected])
    best = np.full(len(frames), np.inf)
    for _ in range(runs):
        detector.rewind()
        estimator.rewind()
        spent, found = follow(PeopleTracker(detector, estimator), frames)
        assert all(map(same, first, found)), "the same answers of the networks gave other people"
        best = np.minimum(best, spent)
    return 1e3 * best, kinds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--views", nargs="+", choices=VIEWS, default=VIEWS)
    parser.add_argument("--detectors", nargs="+", choices=DETECTORS, default=DETECTORS)
    parser.add_argument("--runs", type=int, default=15, help="the best of so many counts for each frame")
    options = parser.parse_args()
    weights, names = options.shared / "weights", list(KINDS.values())
    estimator = BlazePose(model=weights / "blazepose-landmark-full.tflite")
    print("ms a frame: mean (frames)")
    print("| view | detector | all | " + " | ".join(names) + " |\n|" + "---|" * (3 + len(names)))
    for view in options.views:
        with open_source(str(options.shared / "videos" / "two-people" / f"{view}.mp4")) as source:
            frames = list(source)
        for name in options.detectors:
            spent, kinds = cost(frames, detector_of(name, weights), estimator, options.runs)
            parts = [spent, *(spent[[kind == wanted for kind in kinds]] for wanted in names)]
            cells = [f"{part.mean():.2f} ({len(part)})" if len(part) else "-" for part in parts]
            print("| " + " | ".join([view, name, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
