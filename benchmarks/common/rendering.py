"""Rendered rooms of textured planes, seen by a moving camera.

World axes: x right, y down, z forward, metres; the camera begins 1.5 m above the floor.
"""

from collections.abc import Callable
from dataclasses import dataclass

import cv2
import numpy as np

from pose.structures.camera import intrinsics_from_fov
from pose.structures.camera_rotations import to_matrix
from pose.structures.types import F32, F64, U8

SIZE = 384, 216
FLOOR = 1.5  # m below the camera
TEXELS = 60.0  # per metre of a texture
_FINEST = 2.0  # texels


@dataclass(frozen=True, slots=True)
class Panel:
    """A textured rectangle. corner, across, down: (3,) m in the world. texture: (h, w) grey levels."""

    corner: F64
    across: F64
    down: F64
    texture: U8


def spots(rng: np.random.Generator, size: tuple[int, int], finest: float = _FINEST, contrast: float = 32.0) -> U8:
    """(h, w) smooth random spots with corners everywhere; size: (w, h)."""
    total = np.zeros((size[1], size[0]), np.float32)
    for width in (finest, 3 * finest, 12 * finest):
        small = max(1, int(width / 2))
        noise = rng.standard_normal((size[1] // small + 8, size[0] // small + 8)).astype(np.float32)
        noise = cv2.GaussianBlur(noise, (0, 0), width / small)
        noise = cv2.resize(noise, None, fx=small, fy=small, interpolation=cv2.INTER_LINEAR)[: size[1], : size[0]]
        total += (noise - noise.mean()) / noise.std()
    return np.asarray(np.clip(128 + rng.uniform(-30, 30) + contrast * total, 0, 255), np.uint8)


def panel(
    rng: np.random.Generator,
    corner: object,
    across: object,
    down: object,
    texels: float = TEXELS,
    finest: float = _FINEST,
) -> Panel:
    """A panel with a texture of its own."""
    one, other = np.asarray(across, np.float64), np.asarray(down, np.float64)
    size = [max(16, int(texels * np.linalg.norm(side))) for side in (one, other)]
    return Panel(np.asarray(corner, np.float64), one, other, spots(rng, (size[0], size[1]), finest))


def box(rng: np.random.Generator, middle: tuple[float, float], size: tuple[float, float, float]) -> list[Panel]:
    """The four sides of a box on the floor. middle: (x, z) m. size: width, height, depth m."""
    (x, z), (wide, high, deep) = middle, size
    left, right, near, top = x - wide / 2, x + wide / 2, z - deep / 2, FLOOR - high
    tall = (0, high, 0)
    return [
        panel(rng, (left, top, near), (wide, 0, 0), tall),
        panel(rng, (left, top, near), (0, 0, deep), tall),
        panel(rng, (right, top, near), (0, 0, deep), tall),
        panel(rng, (left, top, near), (wide, 0, 0), (0, 0, deep)),
    ]


@dataclass(frozen=True, slots=True)
class Pose:
    """Of a camera. place: (3,) m. turn: (3, 3), from its axes to the world's. zoom: of its focal length."""

    place: F64
    turn: F64
    zoom: float = 1.0


def lens(zoom: float = 1.0, size: tuple[int, int] = SIZE, fov: float = 55.0) -> F64:
    """(3, 3) px. fov: degrees of the longer side without zoom."""
    matrix = intrinsics_from_fov(size, fov)
    matrix[[0, 1], [0, 1]] *= zoom
    return matrix


def render(panels: list[Panel], pose: Pose, matrix: F64, size: tuple[int, int] = SIZE) -> U8:
    """(H, W, 3) RGB. matrix: (3, 3) px, of the camera."""
    width, height = size
    image = np.full((height, width), 90, np.uint8)
    nearest = np.full((height, width), 1e-3, np.float32)
    back = pose.turn @ np.linalg.inv(matrix)  # pixels to rays in the world, z = 1 in the camera
    for item in panels:
        normal = _cross(item.across, item.down)
        offset = normal @ (item.corner - pose.place)
        part = _part_of_image(item, pose, matrix, size)
        if abs(offset) < 1e-9 or part is None:
            continue
        rows, columns = (np.arange(side.start, side.stop, dtype=np.float32) for side in part)

        def plane(form: F64, rows: F32 = rows, columns: F32 = columns) -> F32:
            a, b, c = (form @ back).astype(np.float32)
            return np.asarray(a * columns + (b * rows + c)[:, None], np.float32)

        inverse = plane(normal / offset)
        across = item.across / (item.across @ item.across)
        down = item.down / (item.down @ item.down)
        away, safe = pose.place - item.corner, np.maximum(inverse, 1e-6)
        u = (plane(across) + np.float32(across @ away) * inverse) / safe
        v = (plane(down) + np.float32(down @ away) * inverse) / safe
        shown = (inverse > nearest[part]) & (u > 0) & (u < 1) & (v > 0) & (v < 1)
        high, wide = item.texture.shape
        drawn = cv2.remap(item.texture, u * np.float32(wide - 1), v * np.float32(high - 1), cv2.INTER_LINEAR)
        image[part][shown], nearest[part][shown] = drawn[shown], inverse[shown]
    return np.repeat(image[..., None], 3, axis=2)


def _cross(one: F64, other: F64) -> F64:
    """(3,), without the cost of NumPy's."""
    (a, b, c), (x, y, z) = one.tolist(), other.tolist()
    return np.array([b * z - c * y, c * x - a * z, a * y - b * x])


def _part_of_image(item: Panel, pose: Pose, matrix: F64, size: tuple[int, int]) -> tuple[slice, slice] | None:
    """Rows and columns in which a panel may lie; None outside the image."""
    corners = item.corner + np.array([[a, b] for a in (0, 1) for b in (0, 1)]) @ np.stack([item.across, item.down])
    seen = (corners - pose.place) @ pose.turn
    if (seen[:, 2] < 0.1).all():
        return None
    if (seen[:, 2] < 0.1).any():
        return slice(0, size[1]), slice(0, size[0])
    pixels = seen @ matrix.T
    pixels = pixels[:, :2] / pixels[:, 2:]
    low, high = np.floor(pixels.min(axis=0)).clip(0), np.ceil(pixels.max(axis=0) + 1).clip(max=size)
    if (low >= high).any():
        return None
    return slice(int(low[1]), int(high[1])), slice(int(low[0]), int(high[0]))


def turned(tilt: float = 0.0, pan: float = 0.0, roll: float = 0.0) -> F64:
    """(3, 3) of degrees about x, y and z."""
    return to_matrix(np.radians(np.array([tilt, pan, roll])))


def shake(seed: int, degrees: float = 0.3) -> Callable[[float], F64]:
    """Of a hand: (3,) degrees at a time, sines of 0.5 to 4 Hz, so many degrees rms about each axis."""
    rng = np.random.default_rng(seed)
    hertz, phase = rng.uniform(0.5, 4, (3, 8)), rng.uniform(0, 2 * np.pi, (3, 8))
    return lambda time: np.asarray(degrees / 2 * np.sin(2 * np.pi * hertz * time + phase).sum(axis=1))
