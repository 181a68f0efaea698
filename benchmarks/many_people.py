"""What each further person costs, with 1, 4, 8 and 16 people in images of one size, beside the loop of `rtmlib`.

    python benchmarks/many_people.py [--people 1 4 8 16] [--frames 60] [--peer]

The people are copies of the one in a clip, each some frames behind the last, on a grid of fixed size, so that what a
image costs stays the same. First our pipeline with the preset `fast`, 2D and 3D. With --peer (`pip install --no-deps
rtmlib`, and torch to make the network) also RTMDet-nano and RTMPose-t with random weights, which takes as long as a
trained one: rtmlib's loop, the detector in every frame and one crop after the other, and our stages with the same files
and the same boxes. All on one thread, in ms of processor time a frame, which other work on the machine changes little.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
from pose_detectors.rtmdet import RTMDetDetector

from pose.config import PipelineConfig, load_preset
from pose.networks.estimators.rtmpose import RTMPose
from pose.networks.options import StageOptions
from pose.pipeline import Pipeline
from pose.structures.types import F32, U8, Boxes, Frame
from pose.video import open_source

GRID = (4, 4)
DELAY = 7  # frames between two copies
BOX = np.array([110, 50, 270, 430])  # around the person in a cell, for the networks that get the same boxes


def images(video: str, people: int, count: int) -> Iterator[U8]:
    """`count` images with so many people: the clip in the first cells of a grid, the rest empty."""
    with open_source(video) as source:
        clip = [frame.image for _, frame in zip(range(count + DELAY * people), source, strict=False)]
    height, width = clip[0].shape[:2]
    for number in range(count):
        picture = np.full((height * GRID[0], width * GRID[1], 3), 128, np.uint8)
        for person in range(people):
            row, column = divmod(person, GRID[1])
            cell = np.s_[row * height : (row + 1) * height, column * width : (column + 1) * width]
            picture[cell] = clip[number + DELAY * person]
        yield picture


def per_frame(step: Callable[[U8, int], object], scene: list[U8]) -> float:
    """ms of processor time an image, the first ten left out."""
    begun = 0.0
    for number, picture in enumerate(scene):
        if number == 10:
            begun = time.process_time()
        step(picture, number)
    return 1e3 * (time.process_time() - begun) / (len(scene) - 10)


def ours(config: PipelineConfig, scene: list[U8]) -> tuple[float, float, float]:
    """ms a frame of 2D and of 3D; people found in the last frames, in the mean."""
    pipeline = Pipeline(config)
    height, width = scene[0].shape[:2]
    session = pipeline.session((width, height))
    found = []

    def track(picture: U8, number: int) -> None:
        found.append(session.track(Frame(picture, number, number / 30)))

    in_2d = per_frame(track, scene)
    begun = time.process_time()
    for people in found:
        session.lift(people)
    session.flush()
    return in_2d, 1e3 * (time.process_time() - begun) / len(scene), float(np.mean([len(p) for p in found[10:]]))


def peer(scene: list[U8], files: tuple[Path, Path], boxes: F32) -> tuple[float, float]:
    """ms a frame of rtmlib's loop and of our stages: the detector, and the keypoints in the same boxes (N, 4)."""
    from rtmlib import RTMDet
    from rtmlib import RTMPose as PeerPose
    from rtmlib_peer import peer_with_threads

    one = StageOptions(device="cpu", threads=1)
    detector, estimator = RTMDetDetector(model=files[0], options=one), RTMPose(model=files[1], options=one)
    peer_detector = peer_with_threads(lambda: RTMDet(str(files[0]), (320, 320)), 1)
    peer_pose = peer_with_threads(lambda: PeerPose(str(files[1]), estimator._network.crop), 1)
    regions = estimator.regions(Boxes(boxes, np.ones(len(boxes), np.float32)))

    def theirs(picture: U8, _: int) -> None:
        bgr = np.ascontiguousarray(picture[..., ::-1])
        peer_detector(bgr)
        peer_pose(bgr, boxes)

    def own(picture: U8, _: int) -> None:
        detector.detect([picture])
        estimator.estimate([picture], [regions])

    return per_frame(theirs, scene), per_frame(own, scene)


def further(people: list[int], spent: list[float]) -> str:
    """What each further person costs between two rows, ms."""
    rows = zip(pairwise(people), pairwise(spent), strict=True)
    return ", ".join(f"{(b - a) / (n - m):.1f} ({m} to {n})" for (m, n), (a, b) in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--video", default="../shared/videos/dance.mp4")
    parser.add_argument("--people", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--peer", type=Path, metavar="RTMDET", help="compare with rtmlib: RTMDet-nano's ONNX file")
    options = parser.parse_args()
    config = load_preset("fast", max_people=max(options.people), threads=1)
    spent: dict[str, list[float]] = {"2D": [], "3D": []}
    print(f"{'people':>6}{'found':>7}{'2D ms':>8}{'3D ms':>8}{'rtmlib ms':>11}{'our stages ms':>15}")
    with tempfile.TemporaryDirectory() as folder:
        pose_file = Path(folder) / "pose.onnx"
        if options.peer:
            from rtmpose_weights import export_onnx, random_network

            export_onnx(random_network("t", 17), pose_file)
        for people in options.people:
            scene = list(images(options.video, people, options.frames))
            cell = np.array(scene[0].shape[1::-1]) // GRID[::-1]
            in_2d, in_3d, found = ours(config, scene)
            spent["2D"].append(in_2d)
            spent["3D"].append(in_3d)
            row = f"{people:>6}{found:>7.1f}{in_2d:>8.1f}{in_3d:>8.1f}"
            if options.peer:
                corners = np.array([divmod(person, GRID[1])[::-1] for person in range(people)]) * cell
                boxes = (BOX + corners[:, [0, 1, 0, 1]]).astype(np.float32)
                loop, own = peer(scene, (options.peer, pose_file), boxes)
                spent.setdefault("rtmlib's loop", []).append(loop)
                spent.setdefault("our stages", []).append(own)
                row += f"{loop:>11.1f}{own:>15.1f}"
            print(row, flush=True)
    for name, values in spent.items():
        print(f"{name}, each further person, ms: {further(options.people, values)}")


if __name__ == "__main__":
    main()
