"""Networks that process whole images, compared with crops of tracked people.

    python benchmarks/one_pass.py results/dance/poses.npz=dance.mp4 ...

Each `poses.npz` is the result of `pose-run` with the default networks (RTMDet and BlazePose). In every N-th frame, a
network's people are matched to the tracked ones. Printed per clip and network: tracked people found, people without a
match, distance of body joints to those of BlazePose relative to the height of the box, share of joints within 5 %, and
processor time per frame. The reference is an estimate, not truth: the figures rank networks.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import av
import numpy as np

from pose.networks.options import StageOptions
from pose.registry import ONE_PASS, build
from pose.structures.skeletons import COCO17, get_skeleton
from pose.structures.stages import OnePass
from pose.structures.types import U8, Array

BODY = [name for name in COCO17.names if not name.endswith(("nose", "eye", "ear"))]
MIN_SCORE = 0.5  # of a joint of the reference
MIN_JOINTS = 6
MAX_DISTANCE = 0.15  # median over the joints, relative to the height of the box


@dataclass
class Tally:
    """Results of one network on one clip."""

    tracked: int = 0
    found: int = 0
    unmatched: int = 0
    seconds: list[float] = field(default_factory=list)
    distances: list[float] = field(default_factory=list)

    def row(self) -> str:
        d = np.array(self.distances or [np.nan]) * 100
        near = np.mean(d < 5) * 100
        people = f"{self.found} of {self.tracked} | {self.unmatched}"
        seconds = np.median(self.seconds)
        return f"{people} | {np.median(d):.1f} / {d.mean():.1f} % | {near:.0f} % | {seconds * 1e3:.0f} ms"


def frames(video: Path, wanted: set[int]) -> Iterator[tuple[int, U8]]:
    """Index and RGB image of the wanted frames."""
    with av.open(str(video)) as container:
        for index, frame in enumerate(container.decode(video=0)):
            if index in wanted:
                yield index, frame.to_ndarray(format="rgb24")


def compare(network: OnePass, image: U8, reference: Array, seen: Array, heights: Array, tally: Tally) -> None:
    """Match the network's people to the reference.

    Args:
        network: The network.
        image: (H, W, 3) uint8 RGB.
        reference: (P, J, 2) joints of the tracked people, px.
        seen: (P, J) whether a joint has a sufficient score.
        heights: (P,) heights of the boxes, px.
        tally: The results are added there.
    """
    start = time.process_time()
    _, people = network.find([image])[0]
    tally.seconds.append(time.process_time() - start)
    joints = people.xy[:, [COCO17.index(name) for name in BODY]]
    left = list(range(len(joints)))
    for points, valid, height in zip(reference, seen, heights, strict=True):
        tally.tracked += 1
        if not left:
            continue
        distances = np.linalg.norm(joints[left][:, valid] - points[valid], axis=2) / height
        best = int(np.median(distances, axis=1).argmin())
        if np.median(distances[best]) < MAX_DISTANCE:
            tally.found += 1
            tally.distances.extend(distances[best].tolist())
            left.pop(best)
    tally.unmatched += len(left)


def clip(networks: dict[str, OnePass], results: Path, video: Path, count: int) -> dict[str, Tally]:
    """Compare all networks on at most `count` frames of a clip."""
    tallies = {name: Tally() for name in networks}
    with np.load(results, allow_pickle=False) as data:
        skeleton = get_skeleton(str(data["skeleton"]))
        columns = [skeleton.index(name) for name in BODY]
        every = np.unique(data["frame_index"])
        chosen = set(every[:: max(1, len(every) // count)].tolist())
        points, scores, boxes, index = (data[key] for key in ("keypoints", "scores", "box", "frame_index"))
    for number, image in frames(video, chosen):
        rows = np.flatnonzero(index == number)
        seen = scores[rows][:, columns] > MIN_SCORE
        rows, seen = rows[seen.sum(axis=1) >= MIN_JOINTS], seen[seen.sum(axis=1) >= MIN_JOINTS]
        heights = np.maximum(boxes[rows, 3] - boxes[rows, 1], 1)
        for name, network in networks.items():
            compare(network, image, points[rows][:, columns], seen, heights, tallies[name])
    return tallies


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips", nargs="+", metavar="POSES.npz=VIDEO")
    parser.add_argument("--models", nargs="*", default=[], metavar="NAME=FILE", help="other weights of a network")
    parser.add_argument("--frames", type=int, default=60)
    args = parser.parse_args()
    files = dict(model.split("=", 1) for model in args.models)
    options = StageOptions(threads=1)
    networks = {name: build(ONE_PASS, name, options, files.get(name)) for name in ONE_PASS}
    print("| clip | network | found | others | distance, median / mean | within 5 % | time |")
    print("|---|---|---|---|---|---|---|")
    for entry in args.clips:
        results, video = (Path(part) for part in entry.split("=", 1))
        for name, tally in clip(networks, results, video, args.frames).items():
            print(f"| {video.stem} | {name} | {tally.row()} |", flush=True)


if __name__ == "__main__":
    main()
