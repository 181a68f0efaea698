"""Images of a textured scene, far away, through a camera that turns and zooms; and what is measured of them."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import cv2
import numpy as np

from pose.structures.camera import Camera
from pose.structures.camera_rotations import to_matrix
from pose.structures.skeletons import H36M17
from pose.structures.types import U8, People
from pose.world.camera_motion.log import MotionLog
from pose.world.camera_motion.measure import BackgroundMotion
from pose.world.camera_motion.path import CameraPath
from pose.world.camera_motion.verdict import CameraMotion

SIZE = 384, 216
CAMERA = Camera.of(SIZE)
FPS = 30.0
_WIDE = 3  # times the image, of the scene


def texture(seed: int, size: tuple[int, int] = (SIZE[0] * _WIDE, SIZE[1] * _WIDE), grain: float = 2.0) -> U8:
    """(h, w, 3) of smooth random spots, with corners everywhere."""
    rng = np.random.default_rng(seed)
    total = np.zeros((size[1], size[0]), np.float32)
    for width in (grain, 3 * grain, 12 * grain):
        noise = cv2.GaussianBlur(rng.standard_normal(total.shape).astype(np.float32), (0, 0), width)
        total += noise / noise.std()
    grey = np.clip(128 + 35 * total, 0, 255).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=2)


def seen(scene: U8, vector: Iterable[float] = (0, 0, 0), zoom: float = 1.0) -> U8:
    """The image of a camera whose axes are turned by a rotation vector (degrees), from its own to the scene's."""
    turn = to_matrix(np.radians(np.asarray(list(vector), np.float64)))
    focal = CAMERA.matrix.copy()
    focal[0, 0] *= zoom
    focal[1, 1] *= zoom
    there = CAMERA.matrix.copy()
    there[:2, 2] = (scene.shape[1] - 1) / 2, (scene.shape[0] - 1) / 2
    # Pixels of the scene for those of the image.
    back = there @ turn @ np.linalg.inv(focal)
    return np.asarray(cv2.warpPerspective(scene, back, SIZE, flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP), np.uint8)


def people(index: int, boxes: Iterable[tuple[float, float, float, float]] = (), cut: bool = False) -> People:
    """Standing people who fill these boxes."""
    corners = np.array(list(boxes), np.float32).reshape(-1, 4)
    rows = np.linspace(0, 1, len(H36M17), dtype=np.float32)
    x = (corners[:, 0] + corners[:, 2]) / 2
    joints = np.stack(
        [np.repeat(x[:, None], len(rows), 1), corners[:, 1, None] + rows * (corners[:, 3] - corners[:, 1])[:, None]], 2
    )
    count = len(corners)
    ids, scores = np.arange(1, count + 1), np.ones(count, np.float32)
    shown = np.ones((count, len(rows)), np.float32)
    return People(index, index / FPS, ids, corners, scores, joints.astype(np.float32), shown, cut=cut)


def measured(
    images: Iterable[U8], who: Callable[[int], People] = people, noise: float = 2.0
) -> tuple[CameraPath, CameraMotion]:
    """What a run finds. noise: grey levels, of every pixel."""
    stage, log, rng = BackgroundMotion(float(CAMERA.matrix[0, 0]), H36M17), MotionLog(), np.random.default_rng(5)
    for index, image in enumerate(images):
        if noise:
            grain = cv2.resize(rng.normal(0, noise, image.shape[:2]).astype(np.float32), image.shape[1::-1])
            image = np.clip(image + grain[..., None], 0, 255).astype(np.uint8)
        found = who(index)
        log.add(replace(found, background=stage.step(image, found)))
    return log.solve()


def off_degrees(path: CameraPath, vectors: np.ndarray) -> np.ndarray:
    """(F,) by how much the path's rotations are off those of rotation vectors (F, 3) degrees, the first as its own."""
    true = to_matrix(np.radians(vectors))
    apart = np.swapaxes(path.rotations, 1, 2) @ (true[0].T @ true)
    return np.degrees(np.arccos(np.clip((np.trace(apart, axis1=1, axis2=2) - 1) / 2, -1, 1)))
