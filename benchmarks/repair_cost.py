"""What repair costs beside the networks: processor time for each person and frame.

    python benchmarks/repair_cost.py --shared ../shared [--runs 9]

BlazePose lite follows the dancer of `dance.mp4`. What it saw is pushed frame by frame, live and as `pose-run` repairs
(`FULL_LOOKAHEAD_S`), in the estimator's own joints and in Human3.6M-17. Processor time, the least of all runs: what
else the machine does only adds. Frames in which it saw no person are left out.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from pose_detectors.blazepose import BlazePoseDetector

from pose.lifting.repair.person import FULL_LOOKAHEAD_S, PersonRepair
from pose.networks.estimators.blazepose import BlazePose
from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import BLAZEPOSE33, get_skeleton, to_h36m17
from pose.tracking.config import TrackingConfig
from pose.tracking.people_tracker import PeopleTracker
from pose.video import open_source

LOOKAHEADS = {"live": 0.0, f"{FULL_LOOKAHEAD_S:.1f} s late": FULL_LOOKAHEAD_S}


def seen(shared: Path) -> Sequence2D:
    """The dancer as BlazePose lite sees him."""
    weights = shared / "weights"
    tracker = PeopleTracker(
        BlazePoseDetector(model=weights / "blazepose-detector.tflite"),
        BlazePose(model=weights / "blazepose-landmark-lite.tflite", variant="lite"),
        TrackingConfig(max_people=1),
    )
    with open_source(str(shared / "videos" / "dance.mp4")) as source:
        people = [tracker.step(frame.image, frame.index, frame.time) for frame in source]
    people = [found for found in people if len(found.ids) == 1]
    times = np.array([found.time for found in people])
    keypoints, scores = (
        np.concatenate(parts) for parts in zip(*((p.keypoints, p.scores) for p in people), strict=True)
    )
    return Sequence2D(keypoints, scores, times, Camera.of((1, 1)), BLAZEPOSE33.name)


def milliseconds(sequence: Sequence2D, lookahead: float) -> float:
    """Of processor time for each frame."""
    person = PersonRepair(get_skeleton(sequence.skeleton), lookahead)
    frames = list(zip(sequence.keypoints, sequence.scores, sequence.times.tolist(), strict=True))
    begun = time.process_time()
    for keypoints, scores, when in frames:
        person.push(keypoints, scores, when)
        person.take(when)
    return 1e3 * (time.process_time() - begun) / len(frames)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=Path("../shared"))
    parser.add_argument("--runs", type=int, default=9, help="default: %(default)s")
    options = parser.parse_args()
    own = seen(options.shared)
    xy, scores = to_h36m17(own.keypoints, own.scores, BLAZEPOSE33)
    for sequence in (own, Sequence2D(xy, scores, own.times, own.camera, "h36m17")):
        for name, lookahead in LOOKAHEADS.items():
            least = min(milliseconds(sequence, lookahead) for _ in range(options.runs))
            print(
                f"{sequence.skeleton}, {name}: {least:.3f} ms a person and frame ({len(sequence)} frames)", flush=True
            )


if __name__ == "__main__":
    main()
