"""What putting a run into its world takes, beside the networks: peak memory and time, by how long and how many.

    python benchmarks/world_memory.py [--minutes 1 20 60] [--people 1 4]

Made-up people walk to and fro before a camera with 30 frames a second, in the 33 joints of BlazePose. Their results go
through the spool of `pose-run`, into the world, and out again once, each combination in a process of its own.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pose.structures.camera import Camera, project
from pose.structures.frame_store import FrameStore
from pose.structures.skeletons import get_skeleton
from pose.structures.types import FrameResult, People, Poses3D
from pose.world.run import PlacedRun

FPS = 30
SKELETON = get_skeleton("blazepose33")
CAMERA = Camera.of((1280, 720))


def results(frames: int, people: int) -> Iterator[FrameResult]:
    rng = np.random.default_rng(0)
    body = rng.normal(0, 0.3, (17, 3)) * [0.5, 1, 0.5]
    body[[3, 6], 1] = 0.9
    places = rng.normal(0, 0.3, (len(SKELETON), 3))
    ids = np.arange(people)
    for index in range(frames):
        t = index / FPS
        root = np.stack([2 * np.sin(0.5 * t + ids), 0 * ids, 6 + np.cos(0.3 * t + ids)], axis=1)
        joints = body + 0.02 * rng.standard_normal((people, 17, 3))
        pixels = project(root[:, None] + places, CAMERA.matrix).astype(np.float32)
        boxes = np.concatenate([pixels.min(axis=1), pixels.max(axis=1)], axis=1)
        scores = np.ones(pixels.shape[:2], np.float32)
        seen = People(index, t, ids, boxes, scores[:, 0], pixels, scores)
        sigma = np.full((people, 17), 40, np.float32)
        yield FrameResult(seen, Poses3D(joints.astype(np.float32), root.astype(np.float32), sigma))


def measure(minutes: float, people: int) -> None:
    """Print MB at the start, the most MB, and s."""
    base = resident()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        spool = FrameStore(folder, SKELETON)
        for result in results(round(60 * minutes * FPS), people):
            spool.write(result)
        begun = time.process_time()
        with PlacedRun(spool, SKELETON, CAMERA, folder=folder) as run:
            placed = time.process_time() - begun
            rows = sum(len(result.people) for result in run)
        spool.close()
    print(f"{minutes:8g}{people:8}{base:10.0f}{resident():10.0f}{placed:10.1f}{1e3 * placed / rows:18.3f}", flush=True)


def resident() -> float:
    """MB, the most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, nargs="+", default=[1, 20, 60])
    parser.add_argument("--people", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options.minutes[0], options.people[0])
        return
    print(f"{'minutes':>8}{'people':>8}{'MB before':>10}{'peak MB':>10}{'s':>10}{'ms/frame, person':>18}", flush=True)
    for minutes in options.minutes:
        for people in options.people:
            words = ["--one", "--minutes", str(minutes), "--people", str(people)]
            subprocess.run([sys.executable, __file__, *words], check=True)


if __name__ == "__main__":
    main()
