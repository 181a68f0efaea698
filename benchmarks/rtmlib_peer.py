"""How long our detector and keypoint stage takes beside `rtmlib`, which sends one crop at a time through the network.

    python benchmarks/rtmlib_peer.py --detector rtmdet-nano-person-320.onnx [--pose end2end.onnx] [--threads 1 2]

Runs in an environment with rtmlib (`pip install --no-deps rtmlib`) beside this project. One image of 8 people, tiled
from the first frame of a clip; the same ONNX files and threads on both sides, runs taking turns, the median of each.
Both find the people with the detector; the keypoint networks then get the same 8 boxes. Without --pose, RTMPose t, s
and m with random weights are timed: what is computed takes as long as with trained ones.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from pose_detectors.rtmdet import RTMDetDetector
from rtmlib import RTMDet
from rtmlib import RTMPose as PeerPose
from rtmpose_weights import export_onnx, random_network

from pose.networks.estimators.rtmpose import RTMPose
from pose.networks.options import StageOptions
from pose.structures.types import F32, U8, Boxes
from pose.video import open_source

TILES = (2, 4)  # rows, columns of the one dancer
BOX = np.array([110, 50, 270, 430], np.float32)  # around the dancer in the first frame


def eight_people(video: str) -> tuple[U8, F32]:
    """The image, RGB, and a box around each of the people in it."""
    with open_source(video) as source:
        frame = next(iter(source)).image
    height, width = frame.shape[:2]
    corners = [(column * width, row * height) for row in range(TILES[0]) for column in range(TILES[1])]
    return np.tile(frame, (*TILES, 1)), BOX + np.array(corners, np.float32)[:, [0, 1, 0, 1]]


def peer_with_threads(make: Callable[[], Any], threads: int) -> Any:
    """What `make` makes; rtmlib has no option for threads, so its sessions get them here."""
    session = onnxruntime.InferenceSession

    def limited(path_or_bytes: str, providers: list[str]) -> Any:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        return session(path_or_bytes, options, providers=providers)

    onnxruntime.InferenceSession = limited
    try:
        return make()
    finally:
        onnxruntime.InferenceSession = session


def medians(ours: Callable[[], Any], theirs: Callable[[], Any], rounds: int) -> tuple[float, float]:
    """Median ms of both, taking turns."""
    taken: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 2):
        for times, function in zip(taken, (ours, theirs), strict=True):
            time.sleep(0.05)  # until the other side's threads wait in peace
            start = time.perf_counter()
            function()
            if turn >= 2:
                times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken[0]), statistics.median(taken[1])


def pose_files(given: Path | None, folder: Path) -> Iterator[tuple[str, Path]]:
    """Names and files of the keypoint networks to time."""
    if given:
        yield given.name, given
        return
    for size in "tsm":
        export_onnx(random_network(size, 17), folder / f"{size}.onnx")
        yield f"random {size}", folder / f"{size}.onnx"


def compare(name: str, files: tuple[Path, Path], picture: tuple[U8, F32], threads: int, rounds: int) -> None:
    """Print one row: ms of both sides and the ratio."""
    image, boxes = picture
    bgr = np.ascontiguousarray(image[..., ::-1])
    detector = RTMDetDetector(model=files[0], options=StageOptions(device="cpu", threads=threads))
    estimator = RTMPose(model=files[1], options=StageOptions(device="cpu", threads=threads))
    people = Boxes(boxes, np.ones(len(boxes), np.float32))
    peer_detector = peer_with_threads(lambda: RTMDet(str(files[0]), (320, 320)), threads)
    peer_pose = peer_with_threads(lambda: PeerPose(str(files[1]), estimator._network.crop), threads)

    def ours() -> Any:
        detector.detect([image])
        return estimator.estimate([image], [estimator.regions(people)])

    def theirs() -> Any:
        peer_detector(bgr)
        return peer_pose(bgr, boxes)

    own, peer = medians(ours, theirs, rounds)
    print(f"{name:14} {threads:7} {own:8.1f} {peer:8.1f} {own / peer:6.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--detector", type=Path, required=True, help="RTMDet for people, ONNX, 320 px")
    parser.add_argument("--pose", type=Path, help="RTMPose, ONNX; default: random weights")
    parser.add_argument("--video", default="../shared/videos/dance.mp4")
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    picture = eight_people(options.video)
    with tempfile.TemporaryDirectory() as folder:
        files = list(pose_files(options.pose, Path(folder)))
        print(f"{'network':14} {'threads':>7} {'ours ms':>8} {'peer ms':>8} {'ratio':>6}")
        for threads in options.threads:
            for name, file in files:
                compare(name, (options.detector, file), picture, threads, options.rounds)


if __name__ == "__main__":
    main()
