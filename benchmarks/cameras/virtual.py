"""Virtual cameras around people of motion capture, and what a detector finds in them.

World: metres, y up, floor at y = 0. Each camera has its own pose, intrinsics, frame rate, clock offset and drift.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pose_datasets.errors import ErrorConfig, add_errors
from pose_datasets.filming import observed_joints
from pose_datasets.sampling import interpolate

from benchmarks.cameras.networks import Library
from pose.structures.camera import Camera
from pose.structures.skeletons import COCO17, H36M17
from pose.structures.types import F32, F64, People

_H36M_OF_COCO = np.array(
    [
        H36M17.index({"nose": "neck"}.get(name, "head" if "eye" in name or "ear" in name else name))
        for name in COCO17.names
    ]
)
_BONES = np.array(H36M17.edges)
_BODY_RADIUS = 0.1  # radius of limbs for occlusion, m


@dataclass(frozen=True, kw_only=True)
class VirtualCamera:
    """Virtual camera with its own clock. World time is the clock of the scene.

    Attributes:
        size: (width, height) of the images, px.
        matrix: (3, 3) px, true camera matrix.
        rotation: (3, 3) rotation: x_camera = rotation @ x_world + translation.
        translation: (3,) m, position of the world origin in the camera frame.
        start: World time at which the recording starts, s.
        end: World time at which the recording ends, s.
        fps: Frame rate on the clock of the camera, frames/s.
        offset: World time at which the clock of the camera is 0, s.
        drift: Duration of one second of the camera's clock in world time, s, minus 1.
        radial: Coefficient k1 of radial distortion.
    """

    size: tuple[int, int]
    matrix: F64
    rotation: F64
    translation: F64
    start: float
    end: float
    fps: float = 30.0
    offset: float = 0.0
    drift: float = 0.0
    radial: float = 0.0

    @property
    def times(self) -> F64:
        """Times (T,) s of the frames on the clock of the camera; the first is 0."""
        count = int((self.end - self.start) / (1 + self.drift) * self.fps) + 1
        return np.arange(count) / self.fps

    def world_times(self) -> F64:
        """Return the times (T,) s of the frames on the clock of the scene."""
        return self.times * (1 + self.drift) + self.offset

    def project(self, points: NDArray[np.floating]) -> F64:
        """Project points (..., 3) m in the world frame to (..., 2) px, with lens distortion."""
        seen = points @ self.rotation.T + self.translation
        ray = seen[..., :2] / np.maximum(seen[..., 2:], 0.1)
        ray = ray * (1 + self.radial * (ray * ray).sum(axis=-1, keepdims=True))
        result: F64 = ray * self.matrix[[0, 1], [0, 1]] + self.matrix[:2, 2]
        return result


@dataclass(frozen=True, kw_only=True)
class SceneConfig:
    """Settings of random cameras around people. Values are drawn for each camera, except for `azimuths`.

    azimuths: degrees about the vertical, relative to each other, one for each camera. distance: m from the middle of
    the people; a camera moves back until all are in view. height: m above the floor. fov: degrees of the longer side;
    55 are assumed of an uncalibrated camera. sizes: (width, height) px. rates: frames/s. offset, drift: s, and s per
    second of either sign, at most; the first camera has none. radial: k1 of either sign, at most. errors: of the
    detector, simulated or measured; None for exact keypoints.
    """

    azimuths: Sequence[float] = (0.0, 90.0)
    distance: tuple[float, float] = (3.5, 5.5)
    height: tuple[float, float] = (0.8, 2.2)
    fov: tuple[float, float] = (50.0, 70.0)
    sizes: Sequence[tuple[int, int]] = ((1920, 1080), (1080, 1920), (1280, 720))
    rates: Sequence[float] = (30.0, 25.0, 60.0)
    offset: float = 3.0
    drift: float = 100e-6
    radial: float = 0.0
    errors: ErrorConfig | Library | None = field(default_factory=ErrorConfig)


def virtual_cameras(
    rng: np.random.Generator, people: Sequence[F32], seconds: float, config: SceneConfig
) -> list[VirtualCamera]:
    """Place cameras around people so that at least 97 % of the points are in each image.

    World time is the time on the clock of the first camera.
    """
    points = np.concatenate([one.reshape(-1, 3) for one in people])
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    cameras = []
    turn = rng.uniform(0, 2 * np.pi)
    for index, azimuth in enumerate(config.azimuths):
        size = config.sizes[int(rng.integers(len(config.sizes)))]
        focal = max(size) / 2 / np.tan(np.radians(rng.uniform(*config.fov)) / 2)
        matrix = np.array([[focal, 0, (size[0] - 1) / 2], [0, focal, (size[1] - 1) / 2], [0, 0, 1]])
        angle = np.radians(azimuth) + turn
        away = np.array([np.sin(angle), 0, np.cos(angle)])
        distance = rng.uniform(*config.distance)
        offset = 0.0 if index == 0 else rng.uniform(0, config.offset)
        drift = 0.0 if index == 0 else rng.uniform(-1, 1) * config.drift
        height = rng.uniform(*config.height)
        for _ in range(30):  # move back until all people are in view
            place = np.array([middle[0], height, middle[2]]) + away * distance
            rotation = _look_at(place, middle + rng.normal(0, 0.1, 3))
            camera = VirtualCamera(
                size=size, matrix=matrix, rotation=rotation, translation=-rotation @ place, start=offset, end=seconds,
                fps=config.rates[int(rng.integers(len(config.rates)))], offset=offset, drift=drift,
                radial=rng.uniform(-1, 1) * config.radial,
            )  # fmt: skip
            pixels = camera.project(points)
            if ((pixels > 0) & (pixels < np.array(size) - 1)).all(axis=-1).mean() > 0.97:
                break
            distance *= 1.12
        cameras.append(camera)
    return cameras


def _look_at(place: F64, aim: F64) -> F64:
    forward = (aim - place) / np.linalg.norm(aim - place)
    right = np.cross(forward, [0.0, 1.0, 0.0])
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(forward, right), forward])


def truth_at(points: F32, rate: float, times: F64) -> F32:
    """Interpolate the motion of a person, and return points (K, 19, 3) m at K times.

    Before the first and after the last frame, points are constant.
    """
    flat = points.reshape(len(points), -1)
    found = interpolate(flat, np.zeros(1, np.int64), np.array([len(flat)]), times[None] * rate)[0]
    result: F32 = found.reshape(-1, *points.shape[1:])
    return result


def film_scene(
    rng: np.random.Generator,
    people: Sequence[F32],
    rate: float,
    camera: VirtualCamera,
    config: ErrorConfig | Library | None,
) -> list[People]:
    """Simulate the detected people in every frame of a camera, with COCO-17 keypoints.

    People have ids 1, 2, ... in the order of `people`. A person with fewer than 4 visible keypoints is not detected.
    """
    times = camera.times
    world = np.stack([truth_at(one, rate, camera.world_times()) for one in people])  # (P, T, 19, 3)
    joints = observed_joints(world)
    pixels = camera.project(joints).astype(np.float32)
    scores = np.ones(pixels.shape[:3], np.float32)
    if isinstance(config, Library):
        pixels, scores = config.add(rng, pixels, times)
    elif config is not None:
        depth = (joints @ camera.rotation[2]).astype(np.float32)
        clocks = np.tile(times, (len(people), 1))
        sizes = np.tile(np.array(camera.size, np.float32), (len(people), 1))
        pixels, scores = add_errors(rng, pixels, clocks, sizes, depth - depth[:, :, :1], config)
    if config is not None:
        hidden = np.stack([_occluded_by_others(joints, row, camera) for row in range(len(people))])
        scores = np.where(hidden & (rng.random(hidden.shape) < 0.6), 0, np.where(hidden, 0.3 * scores, scores))
    inside = ((pixels >= 0) & (pixels < np.array(camera.size))).all(axis=-1)
    scores = np.where(inside, scores, 0).astype(np.float32)
    coco, coco_scores = pixels[:, :, _H36M_OF_COCO], scores[:, :, _H36M_OF_COCO]
    frames = []
    for index, moment in enumerate(times.tolist()):
        rows = np.flatnonzero((coco_scores[:, index] > 0).sum(axis=-1) >= 4)
        spots = coco[rows, index]
        boxes = [_box(spots[i][coco_scores[row, index] > 0]) for i, row in enumerate(rows)]
        frames.append(
            People(
                index,
                moment,
                rows + 1,
                np.array(boxes, np.float32).reshape(-1, 4),
                np.ones(len(rows), np.float32),
                spots.astype(np.float32),
                coco_scores[rows, index],
            )
        )
    return frames


def _box(points: F32) -> list[float]:
    low, high = points.min(axis=0), points.max(axis=0)
    return [float(low[0]), float(low[1]), float(high[0]), float(high[1])]


def _occluded_by_others(joints: F32, row: int, camera: VirtualCamera) -> NDArray[np.bool_]:
    """Return a mask (T, 17) of the joints of person `row` that a limb of another person occludes."""
    seen = joints @ camera.rotation.T + camera.translation
    mine = seen[row]
    hidden = np.zeros(mine.shape[:2], bool)
    for other in range(len(seen)):
        if other == row:
            continue
        start, end = seen[other][:, _BONES[:, 0]], seen[other][:, _BONES[:, 1]]
        for share in (0.0, 0.25, 0.5, 0.75, 1.0):
            spot = start + share * (end - start)  # (T, B, 3)
            scale = mine[:, :, None, 2:] / np.maximum(spot[:, None, :, 2:], 0.1)
            miss = np.linalg.norm(mine[:, :, None, :2] / scale - spot[:, None, :, :2], axis=-1)
            hidden |= ((miss < _BODY_RADIUS) & (scale[..., 0] > 1.02)).any(axis=-1)
    return hidden


def given_camera(camera: VirtualCamera, known: bool = False) -> Camera:
    """Return the camera as it is given to a calibration, without its pose."""
    return Camera.of(camera.size, camera.matrix if known else None)
