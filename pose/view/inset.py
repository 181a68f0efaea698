"""The small 3D picture beside or inside the overlay: the people on a floor, seen from the side and a little above.

Limbs have the colours of the 2D skeleton and pale with distance; shadows, trails and a ring in the person's colour show
where each one stands; the haze around a joint is its uncertainty. The viewpoint sways slowly: parallax shows depth.
"""

import math
from collections import deque

import cv2
import numpy as np

from pose.skeletons import H36M17
from pose.types import F32, U8, FrameResult
from pose.view import draw
from pose.view.colours import INK, PAPER, RGB, SIDE_COLOURS, mix, person_colour
from pose.view.upright import Upright

_TOP: RGB = (30, 34, 42)
_BOTTOM: RGB = (44, 50, 60)
_FLOOR: RGB = (58, 66, 78)
_GRID: RGB = (112, 124, 140)
_SHADOW: RGB = (34, 39, 48)

_ELEVATION = math.radians(16)
_AZIMUTH = math.radians(35)
_SWAY = math.radians(22)
_SWAY_SECONDS = 12.0
_HALF_FOV = math.radians(16)
_MIDDLE = 0.86  # m above the floor, where the view points
_LEAST_RADIUS = 1.12  # m around the middle that is always in view: one standing person
_FOLLOW_SECONDS = 0.7
_TRAIL_SECONDS = 2.5
_MOST_PEOPLE = 6
_LIMB_WIDTH = 0.075  # m
_HEAD_RADIUS = 0.095  # m

_HEAD = H36M17.index("head")
_LEFT_RIGHT = [H36M17.side(child) if H36M17.side(child) != "centre" else H36M17.side(a) for a, child in H36M17.edges]


class _View:
    """A perspective camera that looks at `middle` (3,) on the stage so that a ball of `radius` m fills the picture."""

    def __init__(self, size: tuple[int, int], middle: F32, radius: float, azimuth: float) -> None:
        width, height = size
        self.middle = middle
        self.centre = np.array([width / 2, height * 0.53])
        self.focal = min(width, height * 0.94) / 2 / math.tan(_HALF_FOV)
        self.distance = radius / math.sin(_HALF_FOV)
        right = np.array([math.cos(azimuth), math.sin(azimuth), 0])
        ahead = np.array(
            [-math.sin(azimuth) * math.cos(_ELEVATION), math.cos(azimuth) * math.cos(_ELEVATION), -math.sin(_ELEVATION)]
        )
        self.axes = np.stack([right, -np.cross(right, ahead), ahead])

    def project(self, points: F32) -> tuple[F32, F32]:
        """(..., 3) m on the stage -> (..., 2) px and (...) px a metre."""
        seen = (points - self.middle) @ self.axes.T
        scale = self.focal / np.maximum(seen[..., 2] + self.distance, 0.3)
        return seen[..., :2] * scale[..., None] + self.centre, scale


class Inset:
    """Renders the 3D of frame after frame. It follows the people smoothly, so it must see the frames in order."""

    def __init__(self, size: tuple[int, int]) -> None:
        """size: (width, height) px."""
        self.size = size
        self._upright = Upright()
        self._background = _background(size)
        self._middle: F32 | None = None
        self._radius = _LEAST_RADIUS
        self._time = 0.0
        self._trails: dict[int, deque[tuple[float, float, float]]] = {}

    def render(self, result: FrameResult) -> U8:
        """(H, W, 3) uint8 RGB."""
        ids, placed, sigma = self._main_people(result)
        self._follow(placed, result.time)
        self._remember(ids, placed, result.time)
        image = self._background.copy()
        azimuth = _AZIMUTH + _SWAY * math.sin(2 * math.pi * result.time / _SWAY_SECONDS)
        middle = np.zeros(3, np.float32) if self._middle is None else self._middle
        view = _View(self.size, middle + np.array([0, 0, _MIDDLE], np.float32), self._radius, azimuth)
        unit = min(self.size) / 300
        _draw_floor(image, view, middle, self._radius, unit)
        self._draw_trails(image, view, unit)
        _draw_marks(image, view, ids, placed, unit)
        _draw_haze(image, view, placed, sigma)
        _draw_bodies(image, view, placed)
        _draw_labels(image, view, ids, placed, unit)
        _draw_caption(image, unit)
        return image

    def _main_people(self, result: FrameResult) -> tuple[list[int], F32, F32]:
        """Ids, stage coordinates (P, 17, 3) m and sigma (P, 17) m of the people nearest to the camera."""
        poses = result.poses
        known = np.isfinite(poses.joints).all(axis=(1, 2)) & np.isfinite(poses.root).all(axis=1)
        rows = np.flatnonzero(known)
        rows = rows[np.argsort(poses.root[rows, 2], kind="stable")][:_MOST_PEOPLE]
        ids = result.people.ids[rows].tolist()
        placed = self._upright.place(ids, poses.joints[rows], poses.root[rows], result.time)
        return ids, placed, np.nan_to_num(poses.sigma[rows]) / np.float32(1000)

    def _follow(self, placed: F32, time: float) -> None:
        elapsed, self._time = max(0.0, time - self._time), time
        if len(placed) == 0:
            return
        low, high = placed[..., :2].min(axis=(0, 1)), placed[..., :2].max(axis=(0, 1))
        middle = np.append((low + high) / 2, 0).astype(np.float32)
        radius = max(_LEAST_RADIUS, float(np.linalg.norm(high - low)) / 2 + 0.25)
        if self._middle is None:
            self._middle, self._radius = middle, radius
            return
        share = 1 - math.exp(-elapsed / _FOLLOW_SECONDS)
        self._middle = self._middle + (middle - self._middle) * np.float32(share)
        self._radius += (radius - self._radius) * share

    def _remember(self, ids: list[int], placed: F32, time: float) -> None:
        for person, body in zip(ids, placed, strict=True):
            trail = self._trails.setdefault(person, deque())
            trail.append((time, float(body[0, 0]), float(body[0, 1])))
        for person, trail in list(self._trails.items()):
            while trail and trail[0][0] < time - _TRAIL_SECONDS:
                trail.popleft()
            if not trail:
                del self._trails[person]

    def _draw_trails(self, image: U8, view: _View, unit: float) -> None:
        for person, trail in self._trails.items():
            points = np.array([(x, y, 0) for _, x, y in trail], np.float32)
            pixels, _ = view.project(points)
            colour = person_colour(person)
            for i in range(1, len(points)):
                age = (self._time - trail[i][0]) / _TRAIL_SECONDS
                faded = mix(colour, _FLOOR, 0.25 + 0.75 * min(1.0, age))
                draw.stroke(image, tuple(pixels[i - 1]), tuple(pixels[i]), faded, 1.6 * unit)


def _background(size: tuple[int, int]) -> U8:
    width, height = size
    share = np.linspace(0, 1, height)[:, None, None]
    column = np.array(_TOP) * (1 - share) + np.array(_BOTTOM) * share
    return np.ascontiguousarray(np.broadcast_to(column, (height, width, 3)).round().astype(np.uint8))


def _draw_floor(image: U8, view: _View, middle: F32, radius: float, unit: float) -> None:
    """A round floor with lines every metre that fade towards its rim."""
    reach = 1.75 * radius + 0.4
    turn = np.linspace(0, 2 * math.pi, 72, endpoint=False)
    rim = np.stack([middle[0] + reach * np.cos(turn), middle[1] + reach * np.sin(turn), np.zeros(72)], axis=1)
    draw.polygon(image, view.project(rim.astype(np.float32))[0], _FLOOR)
    steps = np.linspace(-1, 1, 15)
    for axis in (0, 1):
        for line in range(math.ceil(middle[axis] - reach), math.floor(middle[axis] + reach) + 1):
            offset = line - middle[axis]
            half = math.sqrt(max(reach**2 - offset**2, 0))
            points = np.zeros((len(steps), 3), np.float32)
            points[:, axis] = line
            points[:, 1 - axis] = middle[1 - axis] + half * steps
            away = np.hypot(offset, half * (steps[1:] + steps[:-1]) / 2) / reach
            pixels, _ = view.project(points)
            for i, share in enumerate(away.tolist()):
                colour = mix(_GRID, _FLOOR, min(1.0, share**1.5))
                draw.stroke(image, tuple(pixels[i]), tuple(pixels[i + 1]), colour, unit)


def _draw_marks(image: U8, view: _View, ids: list[int], placed: F32, unit: float) -> None:
    """A ring in the person's colour on the floor, and the shadow of a light above."""
    turn = np.linspace(0, 2 * math.pi, 33)
    ring = np.stack([0.34 * np.cos(turn), 0.34 * np.sin(turn), np.zeros(33)], axis=1).astype(np.float32)
    for person, body in zip(ids, placed, strict=True):
        flat = body * np.array([1, 1, 0], np.float32)
        pixels, scale = view.project(flat)
        for a, b in H36M17.edges:
            draw.stroke(image, tuple(pixels[a]), tuple(pixels[b]), _SHADOW, _LIMB_WIDTH * 1.3 * float(scale[b]))
        pixels, _ = view.project(ring + flat[0])
        points = np.round(pixels * 16).astype(np.int32)
        cv2.polylines(image, [points], False, person_colour(person), max(1, round(1.7 * unit)), cv2.LINE_AA, 4)


def _draw_haze(image: U8, view: _View, placed: F32, sigma: F32) -> None:
    """A translucent disc of radius sigma around every joint whose sigma reaches out of the limb."""
    clear = image.copy()
    pixels, scale = view.project(placed)
    for body in range(len(placed)):
        for joint in np.flatnonzero(sigma[body] > _LIMB_WIDTH / 2).tolist():
            radius = min(float(sigma[body, joint]), 0.5) * float(scale[body, joint])
            draw.disc(image, tuple(pixels[body, joint]), radius, SIDE_COLOURS[H36M17.side(joint)])
    cv2.addWeighted(image, 0.22, clear, 0.78, 0, dst=image)


def _draw_bodies(image: U8, view: _View, placed: F32) -> None:
    """All limbs of all people, the far ones first."""
    pixels, scale = view.project(placed)
    shade = _shades(scale)
    pieces = []
    for body in range(len(placed)):
        for edge, (a, b) in enumerate(H36M17.edges):
            pieces.append((float(scale[body, a] + scale[body, b]) / 2, body, edge))
    for size, body, edge in sorted(pieces):
        a, b = H36M17.edges[edge]
        start, end = tuple(pixels[body, a]), tuple(pixels[body, b])
        pale = float(shade[body, b])
        width = _LIMB_WIDTH * size
        draw.stroke(image, start, end, mix(INK, _BOTTOM, pale), width + max(2.0, 0.35 * width))
        colour = mix(SIDE_COLOURS[_LEFT_RIGHT[edge]], _BOTTOM, pale)
        draw.stroke(image, start, end, colour, width)
        if b == _HEAD:
            draw.disc(image, end, _HEAD_RADIUS * size * 1.12, mix(INK, _BOTTOM, pale))
            draw.disc(image, end, _HEAD_RADIUS * size, colour)


def _shades(scale: F32) -> F32:
    """How much each joint pales, 0 for the nearest in view to 0.55 for the farthest."""
    if scale.size == 0:
        return scale
    depth = 1 / scale
    span = max(float(np.ptp(depth)), float(depth.min()) * 0.1)
    return (depth - depth.min()) / span * 0.55


def _draw_labels(image: U8, view: _View, ids: list[int], placed: F32, unit: float) -> None:
    for person, body in zip(ids, placed, strict=True):
        top = body[_HEAD] + np.array([0, 0, 0.16], np.float32)
        pixels, _ = view.project(top)
        draw.label(image, str(person), tuple(pixels), 7.5 * unit, person_colour(person))


def _draw_caption(image: U8, unit: float) -> None:
    size = max(6.0, 7 * unit)
    draw.text(image, "3D", (size, 1.6 * size), size, PAPER)
    words = "grid 1 m"
    small = max(5.0, 5.5 * unit)
    x = image.shape[1] - draw.text_width(words, small) - size
    draw.text(image, words, (x, image.shape[0] - 1.5 * small), small, _GRID)
