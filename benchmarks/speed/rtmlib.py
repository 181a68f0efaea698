"""Detector and keypoints of eight people in one image, beside rtmlib (`pip install --no-deps rtmlib`).

    python -m benchmarks.speed rtmlib --detector rtmdet-nano-person-320.onnx [--threads 1 2]

Both use the same ONNX files and threads; rtmlib sends one crop at a time through the network. Without --pose, RTMPose
t, s and m with random weights are timed, which compute as much as trained ones.
"""

import statistics
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime
from pose_detectors.rtmdet import RTMDetDetector

from benchmarks.common.command import VIDEOS
from pose.networks.estimators.rtmpose import RTMPose
from pose.networks.options import StageOptions
from pose.structures.types import Boxes
from pose.video import open_source
from tests.networks.estimators.rtmpose_weights import export_onnx, random_network

TILES = (2, 4)  # rows, columns of the one dancer
BOX = np.array([110, 50, 270, 430], np.float32)  # around the dancer in the first frame


def with_threads(make: Callable[[], Any], threads: int) -> Any:
    """Return `make()`; its ONNX sessions get this number of threads, for which rtmlib has no option."""
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
    """Return the median ms of both, which run alternately."""
    taken: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 2):
        for times, function in zip(taken, (ours, theirs), strict=True):
            time.sleep(0.05)  # until the threads of the other side are idle
            start = time.perf_counter()
            function()
            if turn >= 2:
                times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken[0]), statistics.median(taken[1])


def keypoint_networks(given: Path | None, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield names and files of the keypoint networks to time."""
    if given:
        yield given.name, given
        return
    for size in "tsm":
        export_onnx(random_network(size, 17), folder / f"{size}.onnx")
        yield f"random {size}", folder / f"{size}.onnx"


def compare_rtmlib(detector_file: Path, pose_file: Path, clip: Path, threads: int, rounds: int) -> tuple[float, float]:
    """Return the median ms of our stages and of rtmlib's."""
    from rtmlib import RTMDet
    from rtmlib import RTMPose as PeerPose

    with open_source(str(clip)) as source:
        frame = next(iter(source)).image
    height, width = frame.shape[:2]
    corners = [(column * width, row * height) for row in range(TILES[0]) for column in range(TILES[1])]
    image, boxes = np.tile(frame, (*TILES, 1)), BOX + np.array(corners, np.float32)[:, [0, 1, 0, 1]]
    bgr = np.ascontiguousarray(image[..., ::-1])
    stage_options = StageOptions(device="cpu", threads=threads)
    detector = RTMDetDetector(model=detector_file, options=stage_options)
    estimator = RTMPose(model=pose_file, options=stage_options)
    people = Boxes(boxes, np.ones(len(boxes), np.float32))
    peer_detector = with_threads(lambda: RTMDet(str(detector_file), (320, 320)), threads)
    peer_pose = with_threads(lambda: PeerPose(str(pose_file), estimator._network.crop), threads)

    def ours() -> Any:
        detector.detect([image])
        return estimator.estimate([image], [estimator.regions(people)])

    def theirs() -> Any:
        peer_detector(bgr)
        return peer_pose(bgr, boxes)

    return medians(ours, theirs, rounds)


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("--clip", type=Path, default=VIDEOS / "dance.mp4")
    parser.add_argument("--detector", type=Path, required=True, help="RTMDet for people, ONNX, 320 px")
    parser.add_argument("--pose", type=Path, help="RTMPose, ONNX; default: random weights")
    parser.add_argument("--threads", type=int, nargs="+", default=[2])
    parser.add_argument("--rounds", type=int, default=20)


def main(given: Namespace) -> None:
    print(f"{'network':14} {'threads':>7} {'ours ms':>8} {'peer ms':>8} {'ratio':>6}")
    with TemporaryDirectory() as folder:
        networks = list(keypoint_networks(given.pose, Path(folder)))
        for threads in given.threads:
            for name, file in networks:
                own, peer = compare_rtmlib(given.detector, file, given.clip, threads, given.rounds)
                print(f"{name:14} {threads:7} {own:8.1f} {peer:8.1f} {own / peer:6.2f}", flush=True)
