"""What the bodies of the overlay (`--body`) cost: processor time for each person and frame.

    python benchmarks/bodies.py dance/poses.npz [...] [--passes 7]

Posing and drawing are timed on portions of frames, several times, and the fastest pass of each portion counts: other
work on the machine only adds time. The shapes of the people, once for each, are fitted before.
"""

import argparse
import time
from pathlib import Path

import cv2
import numpy as np

from pose.results import load_poses
from pose.view.bodies import draw_bodies
from pose.view.draw import Canvas
from pose.view.mesh_overlay import BATCH_FRAMES, BodyMeshes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--passes", type=int, default=7)
    args = parser.parse_args()
    cv2.setNumThreads(1)
    for path in args.results:
        table = load_poses(path)
        results, bodies = list(table), BodyMeshes(table.camera, table.skeleton)
        bodies_drawn = sum(len(bodies.of(result)) for result in bodies.in_batches(results))
        canvas = Canvas(np.zeros((*table.camera.size[::-1], 3), np.uint8))
        best = np.full((-(-len(results) // BATCH_FRAMES), 2), np.inf)
        for _ in range(args.passes):
            for number in range(len(best)):
                portion = results[number * BATCH_FRAMES : (number + 1) * BATCH_FRAMES]
                begun = time.process_time()
                meshes = [bodies.of(result) for result in bodies.in_batches(portion)]
                posed = time.process_time()
                for of_frame in meshes:
                    draw_bodies(canvas, of_frame)
                best[number] = np.minimum(best[number], [posed - begun, time.process_time() - posed])
        pose, draw = 1000 * best.sum(axis=0) / max(1, bodies_drawn)
        print(
            f"{path}: {bodies_drawn} bodies in {len(results)} frames; posing {pose:.2f} ms, drawing {draw:.2f} ms each"
        )


if __name__ == "__main__":
    main()
