"""Motion capture seen by fixed virtual cameras."""

import zlib
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pose_datasets import rotations
from pose_datasets.errors import ErrorConfig, add_errors
from pose_datasets.filming import observed_joints, project_batch, random_lenses
from pose_datasets.mocap import Clip, load_clips, split
from pose_datasets.sampling import resample
from pose_datasets.vectors import unit

from pose.structures.camera import Camera
from pose.structures.sequences import Sequence2D
from pose.structures.skeletons import COCO_NAMES, H36M17
from pose.structures.types import F32, F64

FPS = 30.0
MAX_PIECE_FRAMES = 900
_MIN_CAMERA_HEIGHT_M = 0.3  # above the floor
_MIN_INSIDE_FRACTION = 0.995  # of the points in the image
# COCO joint -> the observed Human3.6M joint; `to_h36m17` inverts this mapping.
_FACE = {"nose": "neck", "left_eye": "neck", "right_eye": "neck", "left_ear": "head", "right_ear": "head"}
COCO_ROWS = [H36M17.index(_FACE.get(name, name)) for name in COCO_NAMES]


def add_mocap(parser: ArgumentParser, part: bool = True) -> None:
    parser.add_argument("--mocap", required=True, help="files of pose-prepare, separated by commas")
    if part:
        parser.add_argument("--part", choices=("train", "validation", "test"), default="test")


def clips_of(given: Namespace, min_duration_s: float = 0.0) -> list[Clip]:
    """Return the clips of `--part` in the files of `--mocap` that are longer."""
    clips = [clip for file in given.mocap.split(",") for clip in split(load_clips(Path(file)), given.part)]
    return [clip for clip in clips if clip.times[-1] - clip.times[0] > min_duration_s]


def minutes(clips: list[Clip]) -> float:
    return sum(float(clip.times[-1] - clip.times[0]) for clip in clips) / 60


@dataclass(frozen=True, slots=True)
class FixedView:
    """One piece of a clip, and its camera: x_camera = rotation @ (x_world - centre).

    Attributes:
        name: Name of the clip, "#", and the number of the piece.
        subject: Subject of the clip.
        joints: (T, 17, 3) m, true Human3.6M joints in the world frame.
        seen: 2D joints (T, 17, 2) px with scores, times and the camera, as a detector gives them.
        rotation: (3, 3) rotation from the world to the camera frame.
        centre: (3,) m, camera position in the world frame.
    """

    name: str
    subject: str
    joints: F32
    seen: Sequence2D
    rotation: F64
    centre: F64

    @property
    def up(self) -> F64:
        """Direction (3,) against gravity, in the camera frame."""
        return self.rotation[:, 1]

    @property
    def camera_joints(self) -> F32:
        """Return the joints (T, 17, 3) m in the camera frame."""
        return ((self.joints - self.centre) @ self.rotation.T).astype(np.float32)


def fixed_views(clips: list[Clip], *, detector: bool, min_duration_s: float = 3.0) -> list[FixedView]:
    """Film all clips of at least `min_duration_s` in pieces of at most 30 s, with known cameras.

    The camera and the errors of a piece do not depend on the other pieces.
    """
    views = []
    for clip in clips:
        if clip.times[-1] - clip.times[0] < min_duration_s:
            continue
        points, times = resample(clip, FPS)
        parts = -(-len(points) // MAX_PIECE_FRAMES)
        for number, rows in enumerate(np.array_split(np.arange(len(points)), parts)):
            name = f"{clip.name}#{number}"
            rng = np.random.default_rng(zlib.crc32(f"{clip.subject} {name}".encode()))
            views.append(_film(rng, clip.subject, name, points[rows], times[rows] - times[rows[0]], detector))
    return views


def _film(rng: np.random.Generator, subject: str, name: str, points: F32, times: F64, detector: bool) -> FixedView:
    sizes, lenses = random_lenses(rng, 1)
    rotation, centre = _draw_tripod(rng, points, lenses, sizes[0])
    in_camera = ((points - centre) @ rotation.T).astype(np.float32)
    camera = Camera.of((int(sizes[0, 0]), int(sizes[0, 1])), lenses[0])
    if detector:
        seen = detected(rng, in_camera, times, camera)
    else:
        pixels = project_batch(in_camera[None, :, :17], lenses)[0]
        seen = Sequence2D(pixels, np.ones(pixels.shape[:2], np.float32), times, camera, "h36m17")
    return FixedView(name, subject, points[:, :17], seen, rotation, centre)


def detected(rng: np.random.Generator, in_camera: F32, times: F64, camera: Camera) -> Sequence2D:
    """What a detector with its errors reports of a person (T, 19, 3) m in the camera frame."""
    pixels = project_batch(observed_joints(in_camera)[None], camera.matrix[None])
    depth = in_camera[None, :, :17, 2] - in_camera[None, :, :1, 2]
    pixels, scores = add_errors(rng, pixels, times[None], np.array([camera.size], np.float32), depth, ErrorConfig())
    return Sequence2D(pixels[0][:, COCO_ROWS], scores[0][:, COCO_ROWS], times, camera, "coco17")


def _draw_tripod(rng: np.random.Generator, points: F32, lenses: F64, size: F32) -> tuple[F64, F64]:
    """Draw a camera that has almost all points in the image."""
    aim = (points.min(axis=(0, 1)) + points.max(axis=(0, 1))).astype(np.float64) / 2
    floor = float(np.percentile(points[..., 1], 1))
    elevation = np.radians(np.clip(rng.normal(10, 10), -10, 45))
    azimuth = rng.uniform(-np.pi, np.pi)
    away = np.array([np.cos(elevation) * np.sin(azimuth), np.sin(elevation), np.cos(elevation) * np.cos(azimuth)])
    roll = rotations.from_vector(np.array([0.0, 0.0, rng.normal(0, np.radians(2.5))], np.float32))
    distance = lenses[0, 0, 0] * 1.7 / (rng.uniform(0.3, 0.85) * size[1])
    for _ in range(60):
        centre = aim + away * distance
        centre[1] = max(centre[1], floor + _MIN_CAMERA_HEIGHT_M)
        forward = unit((aim - centre)[None])[0]
        right = unit(np.cross(forward, [0.0, 1.0, 0.0])[None])[0]
        rotation = (roll @ np.stack([right, np.cross(forward, right), forward])).astype(np.float64)
        seen = (points - centre) @ rotation.T
        pixels = project_batch(np.maximum(seen, [-np.inf, -np.inf, 0.1])[None].astype(np.float32), lenses)[0]
        inside = (pixels > 0).all(axis=-1) & (pixels < size - 1).all(axis=-1) & (seen[..., 2] > 0.5)
        if inside.mean() >= _MIN_INSIDE_FRACTION:
            break
        distance *= 1.08
    return rotation, centre
