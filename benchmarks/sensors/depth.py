"""Distances and heights with and without depth images, on rendered characters that move as test people did.

    python -m benchmarks.sensors depth --mocap cmu.npz,ui-prmd.npz --clips 8 [--moving]

Each clip of 2 s moves a character of the body model in a room, seen from a random side by a camera at a random
height and pitch. The 2D keypoints have an error of 0.6 px at 320 x 240; depth images come from
`tests/depth_renderer.py`, every second clip with the errors of a time-of-flight camera, the others with those of a
structured-light camera. With `--moving`, the camera is carried about the person as a hand holds it, and its odometry
has a drift of 1 % of the path and 0.5 degrees, and noise.
"""

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from pose_datasets.mocap import Clip
from pose_datasets.sampling import resample

from benchmarks.common.views import add_mocap, clips_of
from pose.functions import LiftOptions, record_keypoints
from pose.lifting.load import load_lifter
from pose.structures.camera import Camera, project
from pose.structures.camera_rotations import to_matrix
from pose.structures.odometry import Odometry
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64
from pose.utils.device import resolve_device
from pose.world.clean import Steps
from pose.world.height import stature
from pose.world.measured import measure
from tests.depth_renderer import MATRIX, SIZE, Rendered, camera_of, disturb, render

FRAMES, FPS, EVERY = 60, 30.0, 2
OPTIONS = LiftOptions(lifter="offline", lookahead=0, repair=True, constant_bones=True, fit=True, world=False)


@dataclass
class Images:
    """Depth images of every second frame."""

    images: list[F32]
    odometry: Odometry | None = None
    matrix = MATRIX
    size = SIZE
    extrinsics = None

    def read(self, index: int) -> F32:
        """Return an image."""
        return self.images[index]

    def at(self, time: float) -> int | None:
        """Return the index of the image nearest to a time in s."""
        return min(len(self.images) - 1, round(time * FPS / EVERY))


class Errors(NamedTuple):
    """Errors of one clip."""

    distance: float  # median, % of the distance of the pelvis
    height: float  # % of the body height
    up: float  # degrees, of the vertical from the floor or the device; NaN if none was seen
    path: float  # cm, median error of the pelvis in the room, from the place where it began


def carried(
    pitch: float, height: float, distance: float, rng: np.random.Generator, moving: bool
) -> tuple[F64, F64, Odometry | None]:
    """Return rotations (T, 3, 3) and centres (T, 3) m of a camera, and what it says about them."""
    first, centre = camera_of(pitch, height, distance)
    t = np.arange(FRAMES) / FPS
    if not moving:
        return np.tile(first, (FRAMES, 1, 1)), np.tile(centre, (FRAMES, 1)), None
    side, sway = rng.choice([-1, 1]), rng.uniform(0, 6, 3)
    angle = side * np.radians(25) * t / t[-1]
    hand = np.radians(0.6) * np.sin(2 * np.pi * np.array([1.3, 0.9, 1.1]) * t[:, None] + sway)
    hand[:, 1] += angle
    turned = to_matrix(hand[:, [0, 1, 2]])
    away = np.stack([np.sin(angle), np.zeros(FRAMES), np.cos(angle)], axis=1) * (distance - 0.4 * t / t[-1])[:, None]
    centres = away + [0, height, 0] + 0.02 * np.sin(2 * np.pi * 1.8 * t[:, None] + sway)
    rotations = first @ np.swapaxes(turned, 1, 2)
    drift = to_matrix(np.radians(0.5) * t[:, None] / t[-1] * np.array([[0.0, 1, 0]]) + rng.normal(0, 4e-4, (FRAMES, 3)))
    world = to_matrix(np.array([0, rng.uniform(-3, 3), 0]))  # the device's world has another heading and origin
    tilt = to_matrix(np.radians(rng.normal(0, 0.3, 3)) * [1, 0, 1])  # its vertical is nearly that of the room
    places = (centres - centres[0]) * 1.01 + rng.normal(0, 0.001, (FRAMES, 3))
    seen = Odometry(
        t, world @ tilt @ drift @ np.swapaxes(rotations, 1, 2), places @ (world @ tilt).T, np.array([0.0, 1.0, 0.0])
    )
    return rotations, centres, seen


def motion(clip: Clip, rng: np.random.Generator) -> F64:
    """Return the joints (T, 17, 3) m of the middle of a clip, turned at random; people who walk away stay in place."""
    points = resample(clip, FPS)[0][:, :17].astype(np.float64)
    first = (len(points) - FRAMES) // 2
    turn = rng.uniform(-np.pi, np.pi)
    c, s = np.cos(turn), np.sin(turn)
    points = points[first : first + FRAMES] @ np.array([[c, 0, -s], [0, 1, 0], [s, 0, c]])
    points -= [points[:, 0, 0].mean(), points[:, 3:7:3, 1].min() - 0.08, points[:, 0, 2].mean()]
    if np.ptp(points[:, 0, [0, 2]], axis=0).max() > 1.6:
        points -= points[:, :1] * [1, 0, 1]
    return points


def errors(clip: Clip, number: int, moving: bool) -> tuple[Errors, Errors]:
    """Return the errors without and with depth images of one clip."""
    rng = np.random.default_rng(number)
    rendered = Rendered.of(motion(clip, rng))
    views = float(rng.uniform(-15, 5)), float(rng.uniform(0.8, 1.8)), float(rng.uniform(2.8, 4.2))
    rotations, centres, odometry = carried(*views, rng, moving)
    truth = np.einsum("tij,tkj->tki", rotations, rendered.joints - centres[:, None])
    family = ("structured light", "time of flight")[number % 2]
    every = range(0, FRAMES, EVERY)
    images = [disturb(render(rendered.surfaces[at], rotations[at], centres[at]), family, rng) for at in every]
    keypoints = (project(truth, MATRIX) + rng.normal(0, 0.6, (*truth.shape[:2], 2))).astype(np.float32)
    times, scores = np.arange(len(truth)) / FPS, np.ones(truth.shape[:2], np.float32)
    seen = {1: Sequence2D(keypoints, scores, times, Camera(MATRIX, True, SIZE), "h36m17")}
    bones = [np.median(np.linalg.norm(rendered.joints[:, b] - rendered.joints[:, a], axis=1)) for a, b in H36M17.edges]
    height, distance = stature(np.array(bones)), np.linalg.norm(truth[:, 0], axis=-1)
    lifter = load_lifter("offline", resolve_device("cpu"))
    found = []
    for with_depth in (False, True):
        with record_keypoints(clip.name, seen, lifter, OPTIONS, None) as recorded:
            steps, up = Steps(fill=False), np.nan
            if with_depth:
                measured = measure(recorded.lifted, Images(images, odometry), recorded.info.camera, recorded.times)
                steps = replace(steps, measured=measured.people, up=measured.up, path=measured.path)
                if measured.up is not None:
                    up = float(np.degrees(np.arccos(np.clip(measured.up @ rotations[0, :, 1], -1, 1))))
            recorded.place(steps, join=False)
            info = recorded.info.world
            assert info is not None
            results = [result for result in recorded.results if result.placed is not None]
            roots = np.stack([result.poses.root[0] for result in results])
            off = np.abs(np.linalg.norm(roots, axis=-1) / distance - 1)
            room = np.stack([result.placed.joints[0, 0] for result in results if result.placed is not None])
            wanted = (rendered.joints[:, 0] - centres[0]) @ rotations[0].T
            wanted = wanted @ info.world.rotation.T  # with the vertical that was found, up to the place of the first
            lost = room - wanted
            lost = np.linalg.norm(lost - np.median(lost[:5], axis=0), axis=1)
            found.append(
                Errors(
                    100 * float(np.median(off)),
                    100 * (info.heights[1][0] / height - 1),
                    up,
                    100 * float(np.median(lost)),
                )
            )
    return found[0], found[1]


def add_options(parser: ArgumentParser) -> None:
    add_mocap(parser)
    parser.add_argument("--clips", type=int, default=8)
    parser.add_argument("--moving", action="store_true", help="a carried camera with odometry")


def main(given: Namespace) -> None:
    """Print the errors of each clip, and their medians and maxima."""
    known = clips_of(given, min_duration_s=FRAMES / FPS + 0.1)
    rows = []
    for number, at in enumerate(np.linspace(0, len(known) - 1, given.clips).astype(int)):
        rows.append(errors(known[at], number, given.moving))
        without, with_depth = rows[-1]
        print(f"{known[at].name}: {without.distance:.1f} % and {without.height:+.1f} % without", end="; ")
        print(
            f"{with_depth.distance:.1f} % and {with_depth.height:+.1f} % with, vertical {with_depth.up:.2f},",
            f"path {without.path:.1f} and {with_depth.path:.1f} cm",
            flush=True,
        )
    table = np.abs(np.array(rows))
    for name, column in (("without", table[:, 0]), ("with", table[:, 1])):
        print(f"{name}: median {np.median(column, axis=0).round(2)}, greatest {column.max(axis=0).round(2)}")
