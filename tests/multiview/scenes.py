"""Small scenes with an exact truth: people who wave, cameras around them, and a lifter that is nearly right."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "datasets"))
from motion import waving_clip
from pose_datasets.filming import observed_joints

from benchmarks.cameras.virtual import SceneConfig, VirtualCamera, given_camera, truth_at, virtual_cameras
from pose.multiview.bundle import start_body
from pose.multiview.types import POINTS, ViewCamera, ViewTrack
from pose.structures.lenses import RadialLens

RATE = 60.0


def person(seed: int, seconds: float = 5.0, away: tuple[float, float] = (0.0, 0.0)):
    """(T, 19, 3) m: a person who waves and turns individually."""
    rng = np.random.default_rng(seed)
    points = waving_clip(seconds=seconds, rate=RATE, speed=rng.uniform(0.6, 1.3)).points.copy()
    times = np.arange(len(points)) / RATE
    for joints, shoulder in (([12, 13], 11), ([15, 16], 14), ([2, 3], 1), ([5, 6], 4)):
        for _ in range(2):
            swing = rng.uniform(0.2, 0.6) * np.sin(2 * np.pi * (rng.uniform(0.3, 1.1) * times + rng.random()))
            axis = rng.integers(3)
            cos, sin = np.cos(swing), np.sin(swing)
            turn = np.tile(np.eye(3), (len(times), 1, 1))
            a, b = (axis + 1) % 3, (axis + 2) % 3
            turn[:, a, a], turn[:, a, b], turn[:, b, a], turn[:, b, b] = cos, -sin, sin, cos
            base = points[:, [shoulder]]
            points[:, joints] = base + (points[:, joints] - base) @ np.swapaxes(turn, -1, -2)
    points[..., 0] += away[0] - points[:, :1, 0].mean()
    points[..., 2] += away[1] - points[:, :1, 2].mean()
    return points.astype(np.float32)


def cameras(azimuths=(0.0, 90.0), people=None, seed: int = 0, seconds: float = 5.0, **changes) -> list[VirtualCamera]:
    people = [person(1)] if people is None else people
    config = SceneConfig(azimuths=azimuths, **{"fov": (55.0, 55.0), "offset": 0.0, "drift": 0.0, **changes})
    return virtual_cameras(np.random.default_rng(seed), people, seconds, config)


def track(
    camera: VirtualCamera, index: int, points, number: int = 1, noise_px: float = 0.0, seed: int = 0
) -> ViewTrack:
    """What a perfect detector and a nearly perfect lifter make of a person (T, 19, 3) m."""
    rng = np.random.default_rng(seed + 97 * index + number)
    world = truth_at(points, RATE, camera.world_times()).astype(np.float64)
    pixels = camera.project(observed_joints(world))
    pixels = pixels + noise_px * rng.standard_normal(pixels.shape)
    seen = world[:, :17] @ camera.rotation.T + camera.translation
    t = len(world)
    wrong = 0.03 * rng.standard_normal((1, 17, 3))
    return ViewTrack(
        index, number, camera.times, pixels.astype(np.float32), np.ones((t, 17), np.float32),
        (seen - seen[:, :1] + wrong - wrong[:, :1]).astype(np.float32), (1.1 * seen[:, 0]).astype(np.float32),
        np.full((t, 17), 60, np.float32),
    )  # fmt: skip


def told(views: list[VirtualCamera], known: bool = False) -> list[ViewCamera]:
    return [ViewCamera.of(given_camera(view, known)) for view in views]


def exact(views: list[VirtualCamera]) -> list[ViewCamera]:
    """The true cameras, in the frame of the first."""
    base = views[0]
    found = []
    for view, camera in zip(views, told(views, known=True), strict=True):
        rotation = view.rotation @ base.rotation.T
        found.append(
            replace(
                camera,
                rotation=rotation,
                translation=view.translation - rotation @ base.translation,
                lens=RadialLens((view.radial, 0.0)),
                offset=view.offset,
                drift=view.drift,
            )
        )
    return found


def degrees_between(one, other) -> float:
    return float(np.degrees(np.arccos(np.clip((np.trace(one @ other.T) - 1) / 2, -1, 1))))


def bones_of(world):
    """(B,) m, of a person at (T, 19, 3) m."""
    return start_body(observed_joints(world)[:, POINTS]).bones
