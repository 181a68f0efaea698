"""Rendered rooms and courts, whose straight lines show gravity and focal length, for `scene --lines`.

Lines are projected without distortion. A room has walls, doors, windows, skirting and tiles; a court has the lines of a
tennis court only. Segments in random directions, and blur and noise, are added.
"""

import cv2
import numpy as np

from pose.structures.types import F64, U8

_ROOM_M = 14.0  # side of the room; the camera is in the middle
_NEAR_M = 0.3  # minimum depth that is drawn


def image_of(
    rng: np.random.Generator, kind: str, rotation: F64, camera_height: float, matrix: F64, size: tuple[int, int]
) -> U8:
    """Return an RGB image of a 'room' or 'court' with a random heading, seen with `rotation` from world to camera."""
    heading = rng.uniform(-np.pi / 4, np.pi / 4)
    turn = np.array([[np.cos(heading), 0, np.sin(heading)], [0, 1, 0], [-np.sin(heading), 0, np.cos(heading)]])
    lines = _room(rng, max(3.0, camera_height + 1.2)) if kind == "room" else _court(camera_height)
    image = np.full((size[1], size[0], 3), rng.integers(90, 170), np.uint8)
    for ends in lines:
        in_camera = (ends @ turn.T - [0, camera_height, 0]) @ rotation.T
        drawn = _clipped(in_camera)
        if drawn is not None:
            pixels = drawn[:, :2] / drawn[:, 2:] * [matrix[0, 0], matrix[1, 1]] + matrix[:2, 2]
            _draw(image, pixels, rng)
    for _ in range(15 if kind == "room" else 8):  # clutter
        start = rng.uniform(0, size)
        angle, length = rng.uniform(0, np.pi), rng.uniform(0.05, 0.2) * max(size)
        _draw(image, np.stack([start, start + length * np.array([np.cos(angle), np.sin(angle)])]), rng)
    noisy = cv2.GaussianBlur(image, (0, 0), 1.0) + rng.normal(0, 4, image.shape)
    return np.asarray(noisy.clip(0, 255), np.uint8)


def _room(rng: np.random.Generator, height: float) -> list[F64]:
    """Return segments (2, 3) m of walls with doors and windows, skirting and some tiles."""
    half, lines = _ROOM_M / 2, []
    for side in range(4):
        turn = np.array([[0, 0, 1], [0, 1, 0], [-1, 0, 0]], float)
        place = np.linalg.matrix_power(turn, side)

        def wall(x0: float, y0: float, x1: float, y1: float, place: F64 = place) -> F64:
            return np.array([[x0, y0, -half], [x1, y1, -half]]) @ place.T

        lines += [wall(-half, 0, half, 0), wall(-half, height, half, height), wall(-half, 0, -half, height)]
        for _ in range(int(rng.integers(1, 4))):
            left, low = rng.uniform(-half, half - 1.5), float(rng.choice([0.0, 0.9]))
            right, high = left + rng.uniform(0.8, 1.5), rng.uniform(1.8, 2.2)
            lines += [wall(left, low, left, high), wall(right, low, right, high), wall(left, high, right, high)]
            lines += [wall(left, low, right, low)] if low else []
    for at in np.arange(-half, half, 2.0):
        lines += [np.array([[at, 0, -half], [at, 0, half]]), np.array([[-half, 0, at], [half, 0, at]])]
    return lines


def _court(camera_height: float) -> list[F64]:
    """Return segments (2, 3) m of a tennis court ahead of the camera."""
    away = 3 + camera_height
    across = [away, away + 5.49, away + 18.28, away + 23.77]
    lines = [np.array([[-5.485, 0, -z], [5.485, 0, -z]]) for z in (across[0], across[3])]
    lines += [np.array([[-4.115, 0, -z], [4.115, 0, -z]]) for z in across[1:3]]
    lines += [np.array([[x, 0, -across[0]], [x, 0, -across[3]]]) for x in (-5.485, -4.115, 4.115, 5.485)]
    return [*lines, np.array([[0, 0, -across[1]], [0, 0, -across[2]]])]


def _clipped(ends: F64) -> F64 | None:
    """Return the part of a segment (2, 3) before the camera."""
    near = ends[:, 2] < _NEAR_M
    if near.all():
        return None
    if near.any():
        share = (_NEAR_M - ends[0, 2]) / (ends[1, 2] - ends[0, 2])
        ends = ends.copy()
        ends[int(near.argmax())] = ends[0] + share * (ends[1] - ends[0])
    return ends


def _draw(image: U8, pixels: F64, rng: np.random.Generator) -> None:
    shift = 6
    limit = 2**30 / 2**shift / 4
    if np.abs(pixels).max() > limit:  # a far end outside the image
        middle = np.array(image.shape[1::-1]) / 2
        direction = pixels - middle
        pixels = middle + direction * np.minimum(
            1, limit / 2 / np.maximum(np.abs(direction).max(axis=1, keepdims=True), 1)
        )
    one, other = (np.round(pixels * 2**shift).astype(int)).tolist()
    shade = int(rng.choice([20, 40, 220, 240]))
    cv2.line(image, one, other, (shade, shade, shade), int(rng.integers(2, 6)), cv2.LINE_AA, shift)
