"""Hands in two calibrated views, triangulated as by `pose-run --hands` with several cameras:
`python benchmarks/multi_camera_hands.py ../shared/videos/hands`.

The views are those of `benchmarks/hands.py`. No body is in view: the palm detector finds the hand, and the wrist of the
body is replaced by the triangulated wrist, moved by 20 mm, the distance between both wrists on other clips. A hand has
constant bones, and no reference is needed for that: the figure is the standard deviation of each bone over its mean,
in hands of equal length. The first half of the clip was used for `NOISE`, the second is reported too.
"""

import argparse
from pathlib import Path

import cv2
import numpy as np
from hands import HALF, HAND_MM, View, aligned, see, triangulate

from pose.multiview.hands import NOISE, SeenHands, fuse_hands
from pose.multiview.types import ViewCamera
from pose.networks.hands import HandNetwork, PalmDetector
from pose.structures.hand_points import BONES, HAND_PER_FOREARM, lengths

OFF_MM = 20.0  # between the wrist of the body and that of the hand


def pinhole(view: View, points: np.ndarray) -> np.ndarray:
    """Pixels (21, 2) without distortion, of a camera with square pixels."""
    flat = cv2.undistortPoints(points.reshape(-1, 1, 2).astype(float), view.matrix, view.distortion).reshape(-1, 2)
    return flat * view.matrix[0, 0] + view.matrix[:2, 2]


def fused(views: list[View], frame: int, unit: float, used: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, float]:
    """Shape (21, 3) and sigma (21,) in mm in the axes of the calibration, and the residual of pixels over `NOISE`."""
    there = unit / 1000
    cameras = [
        ViewCamera((720, 720), view.matrix[0, 0], view.matrix[:2, 2], view.rotation, there * view.translation)
        for view in views
    ]
    places = there * triangulate(views, frame, raw=False)[0]
    wrists = np.stack([places[0] + OFF_MM / 1000 * np.array([0.6, 0.64, 0.48])] * 2)
    seen = SeenHands.none(2, 2)
    for index in used:
        seen.pixels[index, 1] = pinhole(views[index], views[index].points[frame])
        seen.shapes[index, 1], seen.scores[index, 1] = views[index].shapes[frame], 1.0
    found = fuse_hands(seen, cameras, wrists, np.full(2, HAND_MM / 1000 / HAND_PER_FOREARM))
    return 1000 * found.shapes[1], found.sigma[1], residual_share(views, frame)


def residual_share(views: list[View], frame: int) -> float:
    """Standard deviation of a coordinate that the distance of two rays implies, in hand lengths in the image."""
    _, errors = triangulate(views, frame, raw=False)
    sizes = [np.linalg.norm(view.points[frame, 12] - view.points[frame, 0]) for view in views]
    # Two views have four coordinates for three unknowns: one degree of freedom a point.
    return float(np.sqrt(np.mean((errors**2).sum(axis=0)))) / max(float(np.mean(sizes)), 1.0)


def variation(shapes: np.ndarray) -> np.ndarray:
    """(20,) standard deviation over mean of the bones of shapes (F, 21, 3) of equal length."""
    shapes = shapes * (HAND_MM / lengths(shapes))[:, None, None]
    bones = np.stack([np.linalg.norm(shapes[:, b] - shapes[:, a], axis=-1) for a, b in BONES], axis=1)
    return bones.std(axis=0) / bones.mean(axis=0)


def report(views: list[View], frames: range, unit: float) -> None:
    known = [f for f in frames if all(np.isfinite(view.points[f]).all() for view in views)]
    found = [fused(views, frame, unit, (0, 1)) for frame in known]
    measured = np.array([np.isfinite(sigma).all() for _, sigma, _ in found])
    both = np.array([shape for shape, *_ in found])
    print(f"frames {frames.start} to {frames.stop - 1}: {measured.sum()} of {len(known)} hands measured by two views")
    shares = np.array([share for *_, share in found])
    print(f"  noise of a coordinate: median {np.median(shares):.3f} of the hand in the image; NOISE is {NOISE}")
    rays = np.array([unit * triangulate(views, frame, raw=False)[0] for frame in known])[measured]
    off = np.linalg.norm((both[measured] - both[measured][:, :1]) - (rays - rays[:, :1]), axis=-1)
    print(f"  distance from exact rays: median {np.median(off):.1f}, 90 % {np.percentile(off, 90):.1f} mm")
    print(f"  sigma: median {np.median([sigma[1:] for _, sigma, _ in found if np.isfinite(sigma).all()]):.1f} mm")
    rows = np.flatnonzero(measured)
    for name, shapes in (
        ("both views", both[measured]),
        ("rays alone", rays),
        *((f"view {at}", np.array([views[at].shapes[known[row]] for row in rows])) for at in range(2)),
    ):
        print(f"  bones vary, {name}: median {100 * np.median(variation(shapes)):.1f} % of their length")
    for at in range(2):
        one = np.array([fused(views, known[row], unit, (at,))[0] for row in rows])
        away = [aligned(a, b)[0] for a, b in zip(one, both[measured], strict=True)]
        print(f"  view {at} alone, from both after a similarity: median {np.median(away):.1f} mm")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    networks = HandNetwork(threads=1), PalmDetector(threads=1)
    views = [see(folder, camera, networks) for camera in range(2)]
    count = len(views[0].points)
    seen = [f for f in range(HALF) if all(np.isfinite(view.points[f]).all() for view in views)]
    unit = HAND_MM / float(np.median([lengths(triangulate(views, frame, raw=False)[0]) for frame in seen]))
    for frames in (range(HALF), range(HALF, count)):
        report(views, frames, unit)


if __name__ == "__main__":
    main()
