"""Accuracy of hands in two calibrated views: `python -m benchmarks.cameras hands`.

The views are those of TemugeB/handpose3d (`cam0_test.mp4`, `cam1_test.mp4`, `c0.dat`, ...). No body is in view, so the
palm detector finds the hand. Points of both views are triangulated: reprojection says how consistent the 2D is, and
the triangulated hand is the reference for the 3D of one view. The unit of the calibration is not documented; lengths
are given for a hand of 180 mm. The second half of the clip is reported; the filter and sigma were chosen on the first.
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np

from benchmarks.common.command import VIDEOS
from benchmarks.world.steps import fit
from pose.networks.hands import HandNetwork, PalmDetector
from pose.structures.hand_points import SIGMA, lengths
from pose.tracking.hands.free import FreeHandTracker
from pose.video import open_source

HAND_MM = 180.0
NOISE = 4.0  # grey levels, standard deviation
FRAMES = 30  # in which one frame is repeated
HALF = 189


class View(NamedTuple):
    """matrix, distortion, rotation, translation of a camera; and what was seen: points (F, 21, 2) px, raw (F, 21, 2) px
    without the filter, shapes (F, 21, 3) m."""

    matrix: np.ndarray
    distortion: np.ndarray
    rotation: np.ndarray
    translation: np.ndarray
    points: np.ndarray
    raw: np.ndarray
    shapes: np.ndarray


def read_dat(path: Path) -> dict[str, np.ndarray]:
    """The blocks of a calibration file, up to its comment."""
    blocks: dict[str, list[list[float]]] = {}
    rows: list[list[float]] = []
    for line in path.read_text().split("#")[0].splitlines():
        if line.strip().endswith(":"):
            rows = blocks.setdefault(line.strip()[:-1], [])
        elif line.strip():
            rows.append([float(word) for word in line.split()])
    return {name: np.array(values) for name, values in blocks.items()}


def see(folder: Path, camera: int, networks: tuple[HandNetwork, PalmDetector]) -> View:
    inner, outer = read_dat(folder / f"c{camera}.dat"), read_dat(folder / f"rot_trans_c{camera}.dat")
    tracker, seen = FreeHandTracker(*networks, max_hands=1), []
    with open_source(str(folder / f"cam{camera}_test.mp4")) as source:
        for frame in source:
            hands = tracker.step(frame.image, frame.time)
            parts = [(hands.points, hands.raw, hands.shapes)] if len(hands.presence) else []
            seen.append([part[0] for part in parts[0]] if parts else [np.full((21, n), np.nan) for n in (2, 2, 3)])
    arrays = (np.array([row[at] for row in seen]) for at in range(3))
    return View(inner["intrinsic"], inner["distortion"].ravel(), outer["R"], outer["T"].ravel(), *arrays)


def triangulate(views: list[View], frame: int, raw: bool) -> tuple[np.ndarray, np.ndarray]:
    """(21, 3) in the calibration's unit, and the reprojection errors (2, 21) px."""
    seen = [view.raw[frame] if raw else view.points[frame] for view in views]
    flat = [
        cv2.undistortPoints(points.reshape(-1, 1, 2).astype(float), view.matrix, view.distortion).reshape(-1, 2).T
        for view, points in zip(views, seen, strict=True)
    ]
    poses = [np.hstack([view.rotation, view.translation[:, None]]) for view in views]
    found = cv2.triangulatePoints(poses[0], poses[1], flat[0], flat[1])
    places = (found[:3] / found[3]).T
    errors = []
    for view, points in zip(views, seen, strict=True):
        turn = cv2.Rodrigues(view.rotation)[0]
        shown, _ = cv2.projectPoints(places, turn, view.translation, view.matrix, view.distortion)
        errors.append(np.linalg.norm(shown.reshape(-1, 2) - points, axis=1))
    return places, np.array(errors)


def aligned(points: np.ndarray, truth: np.ndarray) -> tuple[np.ndarray, float]:
    """Distances (21,) after the best similarity, and the angle of its rotation, degrees."""
    turn, scale, shift = fit(points, truth, scale=True)
    angle = np.degrees(np.arccos(np.clip((np.trace(turn) - 1) / 2, -1, 1)))
    return np.linalg.norm(scale * points @ turn + shift - truth, axis=1), float(angle)


def report(views: list[View], frames: range) -> None:
    known = [f for f in frames if all(np.isfinite(view.points[f]).all() for view in views)]
    print(f"frames {frames.start} to {frames.stop - 1}: {len(known)} of {len(frames)} with the hand in both views")
    for raw in (True, False):
        errors = np.concatenate([triangulate(views, f, raw)[1].ravel() for f in known])
        percentiles = ", ".join(f"{value:.2f}" for value in np.percentile(errors, [50, 68, 90]))
        print(f"  reprojection {'without' if raw else 'with'} filter: 50, 68, 90 %: {percentiles} px of 720")
    own, shares, angles = [], [], []
    for frame in known:
        places, _ = triangulate(views, frame, raw=False)
        unit = HAND_MM / lengths(places)
        for view in views:
            there = (places @ view.rotation.T + view.translation) * unit
            shape = view.shapes[frame] * HAND_MM / lengths(view.shapes[frame])
            away, angle = aligned(shape, there)
            own.append(away)
            angles.append(angle)
            shares.append(np.linalg.norm((shape - shape[0]) - (there - there[0]), axis=1) / HAND_MM)
    print(f"  3D after a similarity: median {np.median(own):.1f} mm, mean {np.mean(own):.1f} mm")
    wrist = HAND_MM * np.array(shares)
    print(
        f"  3D wrist on wrist, camera axes: median {np.median(wrist[:, 1:]):.1f} mm, mean {wrist[:, 1:].mean():.1f} mm"
    )
    print(f"  orientation: median {np.median(angles):.1f}, 90 % {np.percentile(angles, 90):.1f} degrees")
    print(f"  inside sigma: {100 * (np.array(shares) <= SIGMA)[:, 1:].mean():.0f} % (68 is meant)")
    print(f"  68 % of each point, hand lengths: {np.round(np.percentile(shares, 68, axis=0), 2).tolist()}")
    for at, view in enumerate(views):
        moved = np.nanmedian(np.linalg.norm(view.points - view.raw, axis=-1)[frames])
        print(f"  view {at}: the filter moves points by {moved:.1f} px in the median")


def still(folder: Path, networks: tuple[HandNetwork, PalmDetector]) -> None:
    """Jitter of hands at rest. The hand of the clip never rests, so single frames are repeated with new noise."""
    noise, raw, smooth = np.random.default_rng(0), [], []
    with open_source(str(folder / "cam1_test.mp4")) as source:
        frames = [frame.image for frame in source][30::50]
    for image in frames:
        tracker, seen = FreeHandTracker(*networks, max_hands=1), []
        for index in range(FRAMES):
            noisy = np.clip(image + noise.normal(0, NOISE, image.shape), 0, 255).astype(np.uint8)
            seen.append(tracker.step(noisy, index / 30))
        if all(len(hands.presence) for hands in seen):
            raw.append([hands.raw[0] for hands in seen])
            smooth.append([hands.points[0] for hands in seen])
    figures = []
    for points in (raw, smooth):
        settled = np.array(points)[:, FRAMES // 2 :]
        away = np.linalg.norm(settled - settled.mean(axis=1, keepdims=True), axis=-1)
        figures.append(np.sqrt((away**2).mean()) / image.shape[1] * 1000)
    print(
        f"at rest ({len(raw)} frames repeated, noise of {NOISE} grey levels): jitter without and with filter "
        f"{figures[0]:.2f}, {figures[1]:.2f} px per 1000 px"
    )


def add_options(parser: ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, nargs="?", default=VIDEOS / "hands")


def main(given: Namespace) -> None:
    networks = HandNetwork(), PalmDetector()
    views = [see(given.folder, camera, networks) for camera in range(2)]
    for frames in (range(HALF), range(HALF, len(views[0].points))):
        report(views, frames)
    still(given.folder, networks)
