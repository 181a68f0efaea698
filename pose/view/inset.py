"""The 3D inset: a small 3D view of the people on a floor, seen from the side and slightly above.

Limbs have the colours of the 2D skeleton and fade with distance. Outlines, heads, trails and rings have the colour of
the person. Shadows mark the position on the floor; a soft spot around a joint shows its uncertainty. The viewpoint
swings slowly, since parallax shows depth. Coordinates: x right, y away from the camera, z up, m.
"""

import math
from collections import deque
from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import NamedTuple

import cv2
import numpy as np

from pose.structures.colours import PAPER, RGB, SIDE_COLOURS, edge_side, mix, person_colour, rim_colour
from pose.structures.hand_points import BONES, ELBOWS, WRISTS
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64, I64, U8, FrameResult
from pose.video.planes import Colours
from pose.view import draw
from pose.view.draw import Canvas
from pose.view.hands import hands_in_scene
from pose.view.head import HEAD_RADIUS
from pose.view.heading import heading_arrow
from pose.world.upright import Upright, is_reliable

_TOP: RGB = (30, 34, 42)
_BOTTOM: RGB = (46, 52, 62)
_FLOOR: RGB = (60, 68, 80)
_GRID: RGB = (122, 134, 150)
_SHADOW: RGB = (36, 41, 50)

_ELEVATION = math.radians(16)
_AZIMUTH = math.radians(32)
_SWAY = math.radians(22)
_SWAY_PERIOD_S = 12.0
_HALF_FOV = math.radians(16)
_MAX_FILL = 0.97  # share of the view that people may fill
_MARGIN_PX = 4  # px for outlines and badges, which have a minimum size
_FOLLOW_TIME_S = 0.7
_ZOOM_OUT_TIME_S = 0.15  # time constant of zooming out
_ZOOM_OUT_MARGIN = 0.04  # margin added when zooming out, relative to the distance
_MIN_HOLD_S = 3.0  # delay of zooming in, so that repeated movements do not change the zoom
_ZOOM_IN_TIME_S = 2.0
_TRAIL_DURATION_S = 2.5
_TRAIL_STEP_S = 0.1  # s
_TRAIL_LEVELS = 10  # number of fading steps
_MAX_PEOPLE = 6
_MAX_DEPTH_M = 6.0  # depth behind the nearest person up to which people affect the zoom
_LIMB_WIDTH = 0.07  # m, for an average adult, as the other sizes
_MAX_SPOT_M = 0.5  # m, maximum sigma that is drawn
_SPOT_OPACITY = 0.55  # in the centre; half of this at a distance of sigma
_SPOT_REACH = 2.6  # radius of the spot, in sigmas
_SPOT_PIXELS = 64  # maximum side of the image of all spots, which is then enlarged
_FINGER_WIDTH = 0.012  # m
_BADGE_HEIGHT = 0.15  # m above the head
_OUTLINE_RATIO = 1.5  # width of a limb with its outline, relative to the limb
_RING_RADIUS = 0.34  # m
_FLOOR_REACH = 0.48  # radius of the floor, in distances of the viewpoint
_MAX_PALENESS = 0.5
_PALENESS_STEPS = 64

SIGMA_WORDS = "shaded: 68 % interval per joint"

_HEAD = H36M17.index("head")
_EDGES = np.array(H36M17.edges)
_FOREARMS = [H36M17.edges.index(ends) for ends in zip(ELBOWS, WRISTS, strict=True)]  # left, right
_FINGERS = np.array(BONES)
_TO_HEAD = [far for _, far in H36M17.edges].index(_HEAD)
_EDGE_COLOURS = [SIDE_COLOURS[edge_side(H36M17, a, b)] for a, b in H36M17.edges]
_SHADES = np.array([SIDE_COLOURS[H36M17.side(joint)] for joint in range(len(H36M17))], np.float32)
_HORIZONTAL, _UP = np.array([1, 1, 0], np.float32), np.array([0, 0, 1], np.float32)
_STEPS = np.linspace(-1, 1, 17)  # points along a line of the floor
_ANGLES = np.linspace(0, 2 * math.pi, 49)
_RING = np.stack([np.cos(_ANGLES), np.sin(_ANGLES), np.zeros(49)], axis=1).astype(np.float32)
_SPINE_AND_LEG = np.array([H36M17.index(name) for name in ("head", "thorax", "pelvis", "left_knee", "left_ankle")])
_ADULT_LENGTH_M = 1.6  # m, length of this chain of joints in an average adult
_HALF_HEIGHT_M = 0.97  # m, half the height of the cylinder below
# Cylinder around each person that must be visible, so that the zoom does not change with every squat.
_PERSON_CYLINDER = np.concatenate([_RING[::6] * _RING_RADIUS, _RING[::6] * 0.25 + [0, 0, 1.85]]).astype(np.float32)
# Radii around the joints, the badge and the points of the cylinder of a person that must be visible, m.
_REQUIRED_REACH = np.zeros(len(H36M17) + 1 + len(_PERSON_CYLINDER), np.float32)
_REQUIRED_REACH[: len(H36M17)] = _OUTLINE_RATIO * _LIMB_WIDTH / 2
_REQUIRED_REACH[[_HEAD, len(H36M17)]] = 1.2 * HEAD_RADIUS, _BADGE_HEIGHT / 2


class _View:
    """Perspective camera that looks at the point `middle` (3,), rotated by `azimuth` rad from the real camera."""

    def __init__(self, size: tuple[int, int], middle: F32, azimuth: float) -> None:
        self.middle = middle
        self.distance = 1.0
        self._half = np.array(size) / 2
        self._max_offset = np.maximum(_MAX_FILL * self._half - _MARGIN_PX, self._half / 2)
        self._focal = min(size) / 2 / math.tan(_HALF_FOV)
        right = np.array([math.cos(azimuth), math.sin(azimuth), 0])
        level = np.array([-math.sin(azimuth), math.cos(azimuth), 0])
        ahead = level * math.cos(_ELEVATION) - np.array([0, 0, math.sin(_ELEVATION)])
        self._axes = np.stack([right, np.cross(ahead, right), ahead])

    def fitting_distance(self, points: F32, reach: F32) -> float:
        """Return the distance from which balls of radius `reach` (N,) m around points (N, 3) m are visible."""
        seen = (points - self.middle) @ self._axes.T
        across = (np.abs(seen[:, :2]) + reach[:, None]) * self._focal / self._max_offset
        return float((across - seen[:, 2:]).max())

    def project(self, points: F32) -> tuple[F64, F64]:
        """Return the pixels (..., 2) of points (..., 3) m in the 3D view, and the scale (...) in px per metre."""
        seen = (points - self.middle) @ self._axes.T
        scale = self._focal / np.maximum(seen[..., 2] + self.distance, 0.3)
        return np.clip(
            seen[..., :2] * scale[..., None] + self._half, -draw.MAX_COORDINATE_PX, draw.MAX_COORDINATE_PX
        ), scale

    def project_each(self, parts: Sequence[F32]) -> tuple[list[F64], list[F64]]:
        """Project arrays (..., 3) m of points as `project` does, all at once."""
        pixels, scale = self.project(np.concatenate([part.reshape(-1, 3) for part in parts]))
        ends = list(accumulate(part.size // 3 for part in parts))
        slices = [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]
        return (
            [pixels[own].reshape(*part.shape[:-1], 2) for own, part in zip(slices, parts, strict=True)],
            [scale[own].reshape(part.shape[:-1]) for own, part in zip(slices, parts, strict=True)],
        )


class _People(NamedTuple):
    """The people of a frame in the 3D view, P of them, the nearest first."""

    ids: list[int]
    placed: F32  # (P, 17, 3) m
    heights: F32  # (P,), relative to an average adult
    sigma: F32  # (P, 17) m
    hands: F32 | None  # (P, 2, 21, 3) m
    pixels: F64  # (P, 17, 2) px of `placed`
    scale: F64  # (P, 17) px per metre

    @property
    def colours(self) -> list[RGB]:
        """The colour of each person."""
        return [person_colour(person) for person in self.ids]


class Inset:
    """Renderer of the 3D inset. The viewpoint follows the people smoothly, so frames must be rendered in order."""

    def __init__(self, size: tuple[int, int], colours: Colours | None = None) -> None:
        """Prepare the view without people."""
        self.size = size
        self._upright = Upright()
        self._unit = min(size) / 300
        self._captions = _captions(size, self._unit)
        self._code = colours.code if colours else draw.as_rgb
        self._shades = _SHADES @ colours.from_rgb[:, :3].T if colours else _SHADES
        self._empty = colours.coded(_background(size)) if colours else _background(size)
        self.background = self._empty.copy()  # (H, W, 3) uint8, the view without people
        for caption in self._captions:
            caption.draw(Canvas(self.background, self._code))
        self._middle = np.array([0, 0, _HALF_HEIGHT_M], np.float32)
        self._distance = 0.0  # 0 before the first person
        self._required: deque[tuple[float, float]] = deque()  # (time, distance required at that time)
        self._time = 0.0
        self._trails: dict[int, deque[tuple[float, float, float]]] = {}

    def render(self, result: FrameResult) -> U8:
        """Return an image (H, W, 3) uint8 of the people in a frame, in the colour encoding of the inset."""
        image = self.background.copy()
        self.render_on(image, result)
        return image

    def render_on(self, image: U8, result: FrameResult) -> tuple[int, int]:
        """Render into (H, W, 3) only pixel rows that differ from `background`; return the first and the end row."""
        rows = self._main_rows(result)
        ids, placed, sigma, hands = self._main_people(result, rows)
        heights = _relative_height(placed)
        reliable = is_reliable(result)[rows]
        shown = reliable if reliable.any() else slice(None)
        view = self._follow(placed[shown], heights[shown], result.time)
        self._remember(ids, placed, result.time)
        shadows = placed * _HORIZONTAL
        rings = _RING * (_RING_RADIUS * heights)[:, None, None] + shadows[:, :1]
        badges = placed[:, _HEAD] + _UP * (_BADGE_HEIGHT * heights)[:, None]
        trails = [np.array([(x, y, 0) for _, x, y in trail], np.float32) for trail in self._trails.values()]
        lines, distances = _floor_lines(view)
        heading = heading_arrow(result, view.middle, _FLOOR_REACH * view.distance)
        parts = [_floor_rim(view), placed, shadows, rings, badges, lines, heading, *trails]
        pixels, scale = view.project_each(parts)
        rim, joints, shadow, ring, badge, line, arrow, *trail = pixels
        people = _People(ids, placed, heights, sigma, hands, joints, scale[1])
        low, high = self._rows(people, [rim, shadow, *trail], [scale[0], scale[2], *scale[7:]])
        image[low:high] = self._empty[low:high]
        canvas = Canvas(image, self._code)
        draw.polygon(canvas, rim, _FLOOR)
        _draw_floor(canvas, line, distances, self._unit)
        draw.strokes(canvas, arrow, PAPER, 1.7 * self._unit)
        self._draw_trails(canvas, trail)
        _draw_marks(canvas, people, shadow, scale[2], ring, self._unit)
        _draw_uncertainty(image, people, self._shades)
        _draw_bodies(canvas, view, people)
        _draw_labels(canvas, people, badge, scale[4], self._unit)
        for caption in self._captions:
            if caption.rows[0] < high and caption.rows[1] > low:
                caption.draw(canvas)
        return low, high

    def _rows(self, people: _People, others: list[F64], scales: list[F64]) -> tuple[int, int]:
        """Return the (first, end) rows that contain the drawing. A caption is contained as a whole or not at all.

        others: (..., 2) px of the rim of the floor, of shadows and of trails. scales: (...) px per metre of each.
        """
        # m, radius of rings, limbs and heads
        reach = (_RING_RADIUS + HEAD_RADIUS) * float(people.heights.max(initial=0.0))
        spots = np.maximum(_SPOT_REACH * np.minimum(people.sigma, _MAX_SPOT_M), reach) * people.scale
        room = 30 * max(self._unit, 0.7)  # px, for badges and strokes
        rows = np.concatenate([people.pixels[..., 1].ravel(), *(part[..., 1].ravel() for part in others)])
        radii = [spots, 0 * scales[0], *(reach * scale for scale in scales[1:])]
        radius = np.concatenate([part.ravel() for part in radii])
        low = int(np.clip((rows - radius).min() - room, 0, self.size[1]))
        high = int(np.clip((rows + radius).max() + room + 1, 0, self.size[1]))
        for first, after in (caption.rows for caption in self._captions):
            if first < high and after > low:
                low, high = min(low, first), min(max(high, after), self.size[1])
        return low & ~1, min(high + (high & 1), self.size[1])  # even, because video has half as many rows of chroma

    def _main_rows(self, result: FrameResult) -> I64:
        """Return the rows (P,) of people near the camera, the nearest first."""
        poses = result.poses
        known = np.isfinite(poses.joints).all(axis=(1, 2)) & np.isfinite(poses.root).all(axis=1)
        rows = np.flatnonzero(known)
        return rows[np.argsort(poses.root[rows, 2], kind="stable")][:_MAX_PEOPLE]

    def _main_people(self, result: FrameResult, rows: I64) -> tuple[list[int], F32, F32, F32 | None]:
        """Return ids, joints (P, 17, 3) m, sigma (P, 17) m and hands (P, 2, 21, 3) m of people."""
        poses = result.poses
        ids = result.people.ids[rows].tolist()
        placed = self._upright.place(result, rows)
        hands = hands_in_scene(result, rows, placed)
        return ids, placed, np.nan_to_num(poses.sigma[rows]) / np.float32(1000), hands

    def _follow(self, placed: F32, heights: F32, time: float) -> _View:
        """Return the current view. It moves smoothly, but always shows all near people completely."""
        elapsed, self._time = max(0.0, time - self._time), time
        azimuth = _AZIMUTH + _SWAY * math.sin(2 * math.pi * time / _SWAY_PERIOD_S)
        is_near = placed[:, 0, 1] < placed[:1, 0, 1] + _MAX_DEPTH_M
        near, heights = placed[is_near], heights[is_near]
        if not len(near):
            view = _View(self.size, self._middle.copy(), azimuth)
            view.distance = self._distance or view.fitting_distance(
                _PERSON_CYLINDER, np.zeros(len(_PERSON_CYLINDER), np.float32)
            )
            return view
        first = self._distance == 0
        step = _middle_of(near, heights) - self._middle
        self._middle += step * np.float32(1 if first else _smoothing_weight(elapsed, _FOLLOW_TIME_S))
        view = _View(self.size, self._middle.copy(), azimuth)
        required = view.fitting_distance(*_required_balls(near, heights))
        self._required.append((time, required))
        while self._required[0][0] < time - _MIN_HOLD_S:
            self._required.popleft()
        change = (1 + _ZOOM_OUT_MARGIN) * max(distance for _, distance in self._required) - self._distance
        seconds = _ZOOM_OUT_TIME_S if change > 0 else _ZOOM_IN_TIME_S
        self._distance += change * (1 if first else _smoothing_weight(elapsed, seconds))
        self._distance = view.distance = max(self._distance, required)
        return view

    def _remember(self, ids: list[int], placed: F32, time: float) -> None:
        for person, body in zip(ids, placed, strict=True):
            trail = self._trails.setdefault(person, deque())
            if not trail or time - trail[-1][0] >= _TRAIL_STEP_S:
                trail.append((time, float(body[0, 0]), float(body[0, 1])))
        for person, trail in list(self._trails.items()):
            while trail and trail[0][0] < time - _TRAIL_DURATION_S:
                trail.popleft()
            if not trail:
                del self._trails[person]

    def _draw_trails(self, canvas: Canvas, pixels: list[F64]) -> None:
        for (person, trail), points in zip(self._trails.items(), pixels, strict=True):
            ends = draw.fixed(points)
            levels = [math.ceil(_TRAIL_LEVELS * min((self._time - time) / _TRAIL_DURATION_S, 1)) for time, *_ in trail][
                1:
            ]
            first = 0
            for level, own in groupby(levels):  # older parts first, which are fainter
                after = first + len(list(own))
                faded = mix(person_colour(person), _FLOOR, 0.25 + 0.75 * level / _TRAIL_LEVELS)
                draw.strokes(canvas, ends[None, first : after + 1], faded, 1.6 * self._unit)
                first = after


def _relative_height(placed: F32) -> F32:
    """Return the heights (P,) of people (P, 17, 3) m in any pose, relative to an average adult."""
    steps = np.diff(placed[:, _SPINE_AND_LEG], axis=1)
    result: F32 = np.sqrt((steps**2).sum(axis=2)).sum(axis=1) / np.float32(_ADULT_LENGTH_M)
    return result


def _required_balls(placed: F32, heights: F32) -> tuple[F32, F32]:
    """Return points (N, 3) m that must be visible for people (P, 17, 3) m, and the radius (N,) m around each."""
    relative_height = heights[:, None]
    badges = placed[:, _HEAD, None] + _UP * _BADGE_HEIGHT * relative_height[..., None]
    cylinders = _PERSON_CYLINDER * relative_height[..., None] + placed[:, :1] * _HORIZONTAL
    points = np.concatenate([placed, badges, cylinders], axis=1)
    return points.reshape(-1, 3), (_REQUIRED_REACH * relative_height).ravel()


def _middle_of(placed: F32, heights: F32) -> F32:
    """Return the point (3,) m above the centre of the people's floor area, at half the height of the tallest person."""
    joints = placed[..., :2].reshape(-1, 2)
    height = _HALF_HEIGHT_M * float(heights.max())
    return np.append((joints.min(axis=0) + joints.max(axis=0)) / 2, height).astype(np.float32)


def _smoothing_weight(elapsed: float, seconds: float) -> float:
    """Return the share of the way to a target covered in `elapsed` s, with a time constant of `seconds`."""
    return 1 - math.exp(-elapsed / seconds)


def _background(size: tuple[int, int]) -> U8:
    width, height = size
    fraction = np.linspace(0, 1, height)[:, None, None]
    column = np.array(_TOP) * (1 - fraction) + np.array(_BOTTOM) * fraction
    return np.ascontiguousarray(np.broadcast_to(column, (height, width, 3)).round().astype(np.uint8))


def _floor_rim(view: _View) -> F32:
    """Return points (N, 3) m on the boundary of the floor."""
    return _RING * np.float32(_FLOOR_REACH * view.distance) + view.middle * _HORIZONTAL


def _floor_lines(view: _View) -> tuple[F32, F64]:
    """Return lines (L, 17, 3) m a metre apart on a round floor, and the relative distances (L, 16) of their parts."""
    reach, middle = _FLOOR_REACH * view.distance, view.middle.tolist()
    parts = []
    for axis in (0, 1):
        at = np.arange(math.ceil(middle[axis] - reach), math.floor(middle[axis] + reach) + 1)
        points = np.zeros((len(at), len(_STEPS), 3), np.float32)
        points[..., axis] = at[:, None]
        half = np.sqrt(np.maximum(reach**2 - (at - middle[axis]) ** 2, 0))
        points[..., 1 - axis] = middle[1 - axis] + half[:, None] * _STEPS
        parts.append(points)
    lines = np.concatenate(parts)
    away = (lines[:, 1:, :2] + lines[:, :-1, :2]) / 2 - middle[:2]
    return lines, np.sqrt((away**2).sum(axis=2)) / reach


def _draw_floor(canvas: Canvas, lines: F64, distances: F64, unit: float) -> None:
    """Draw lines (L, 17, 2) px that fade towards the boundary of the floor."""
    ends = draw.fixed(lines)
    levels = np.rint(8 * distances**1.5)
    segments = np.stack([ends[:, :-1], ends[:, 1:]], axis=2)
    for level in range(8):
        draw.strokes(canvas, segments[levels == level], mix(_GRID, _FLOOR, level / 8), unit)


def _draw_marks(canvas: Canvas, people: _People, shadows: F64, scale: F64, rings: F64, unit: float) -> None:
    """Draw a ring in the person's colour on the floor, and the shadow of a light above."""
    limbs, outlines, widths = draw.fixed(shadows[:, _EDGES]), draw.fixed(rings), people.heights * scale[:, 0]
    for limb, ring, width, colour in zip(limbs, outlines, widths.tolist(), people.colours, strict=True):
        draw.strokes(canvas, limb, _SHADOW, _LIMB_WIDTH * 1.3 * width)
        draw.strokes(canvas, ring[None], colour, 1.7 * unit)


def _draw_uncertainty(image: U8, people: _People, shades: F32) -> None:
    """Draw a soft spot around every joint whose sigma exceeds half the width of a limb."""
    # A Gaussian spot is the product of one Gaussian in x and one in y, so all spots together are the product of two
    # matrices. The product is computed in coarse pixels on the bounding box of the spots, and added to the image.
    is_wide = people.sigma > _LIMB_WIDTH / 2
    pixels, joint = people.pixels[is_wide].astype(np.float32), np.nonzero(is_wide)[1]
    radii = (np.minimum(people.sigma, _MAX_SPOT_M) * people.scale)[is_wide][:, None].astype(np.float32)
    size = np.array(image.shape[1::-1])
    inside = ((pixels + _SPOT_REACH * radii > 0) & (pixels - _SPOT_REACH * radii < size - 1)).all(axis=1)
    if not inside.any():
        return
    pixels, radii, joint = pixels[inside], radii[inside], joint[inside]
    low = np.clip(np.floor((pixels - _SPOT_REACH * radii).min(axis=0)), 0, size - 1).astype(int)
    high = np.clip(np.ceil((pixels + _SPOT_REACH * radii).max(axis=0)) + 1, low + 1, size).astype(int)
    across, down = (
        np.exp2(-(((low[axis] + _coarse(high[axis] - low[axis]) - pixels[:, axis, None]) / radii) ** 2))
        for axis in (0, 1)
    )
    coloured = (down[:, :, None] * shades[joint, None]).reshape(len(joint), -1)  # (N, rows and channels)
    density, tint = down.T @ across, (coloured.T @ across).reshape(-1, 3, across.shape[1]).transpose(0, 2, 1)
    opacity = (1 - (1 - _SPOT_OPACITY) ** density) / np.maximum(density, 1e-6)
    patch = image[low[1] : high[1], low[0] : high[0]]
    # U and V can decrease. The largest decrease is subtracted first, so that only positive bytes remain to be added.
    darkest_change = np.floor(np.minimum(_SPOT_OPACITY * shades.min(axis=0), 0))
    if darkest_change.any():
        cv2.subtract(patch, np.append(-darkest_change, 0.0), dst=patch)  # OpenCV requires a fourth value
    light = np.clip(tint * opacity[..., None] - darkest_change, 0, 255).astype(np.uint8)
    cv2.add(patch, cv2.resize(light, patch.shape[1::-1]), dst=patch)


def _coarse(length: int) -> F32:
    """Return the centres of the coarse pixels on a line of `length` px."""
    count = min(int(length), _SPOT_PIXELS)
    return ((np.arange(count, dtype=np.float32) + 0.5) * length / count - 0.5).astype(np.float32)


def _draw_bodies(canvas: Canvas, view: _View, people: _People) -> None:
    """Draw all limbs of all people, far ones first."""
    if not people.ids:
        return
    segments = draw.fixed(people.pixels)[:, _EDGES].reshape(-1, 2, 2).tolist()
    sizes = people.scale[:, _EDGES].mean(axis=2).ravel()
    grown = (sizes * np.repeat(people.heights, len(_EDGES))).tolist()
    pale, rims = _paleness(sizes), [rim_colour(person) for person in people.ids]
    for row in np.argsort(sizes, kind="stable").tolist():
        body, edge = divmod(row, len(_EDGES))
        ink, colour = mix(rims[body], _BOTTOM, pale[row]), mix(_EDGE_COLOURS[edge], _BOTTOM, pale[row])
        width = _LIMB_WIDTH * grown[row]
        draw.stroke(canvas, segments[row], ink, width + max(2.0, 0.35 * width))
        draw.stroke(canvas, segments[row], colour, width)
        if people.hands is not None and edge in _FOREARMS:  # a hand is drawn with its forearm
            fingers, _ = view.project(people.hands[body, _FOREARMS.index(edge)][_FINGERS])
            if np.isfinite(fingers).all():
                draw.strokes(canvas, fingers, colour, _FINGER_WIDTH * grown[row])
        if edge == _TO_HEAD:
            radius, head = HEAD_RADIUS * grown[row], people.pixels[body, _HEAD, None]
            draw.discs(canvas, head, radius + max(1.0, 0.12 * radius), ink)
            own = mix(mix(person_colour(people.ids[body]), PAPER, 0.25), _BOTTOM, pale[row])
            draw.discs(canvas, head, radius, own)


def _paleness(sizes: F64) -> list[float]:
    """Return the share of background in each limb's colour, which increases with depth, for `sizes` in px per metre."""
    depth = sizes.max() / sizes - 1
    fraction = _MAX_PALENESS * depth / max(float(depth.max()), 0.3)
    result: list[float] = (np.rint(fraction * _PALENESS_STEPS) / _PALENESS_STEPS).tolist()
    return result


def _draw_labels(canvas: Canvas, people: _People, badges: F64, scale: F64, unit: float) -> None:
    """Draw the ids at badges (P, 2) px with a scale (P,) px per metre."""
    for person, colour, (x, y), size in zip(people.ids, people.colours, badges.tolist(), scale.tolist(), strict=True):
        # Without this condition, a person outside the view would have a badge at the edge.
        if 0 <= x < canvas.pixels.shape[1] and 0 <= y < canvas.pixels.shape[0]:
            height = min(max(7.0, 0.07 * size), 11 * max(unit, 0.7))
            draw.label(canvas, str(person), (x, y), height, colour)


class _Caption(NamedTuple):
    """A line of text: middle of its left edge and height of its capitals in px."""

    words: str  # the text
    place: draw.Point  # middle of its left edge in px
    letters: float  # height of its capitals in px

    @property
    def rows(self) -> tuple[int, int]:
        """The first row that the text may cover, and the row after the last."""
        return max(0, int(self.place[1] - 1.5 * self.letters)), int(self.place[1] + 1.5 * self.letters) + 1

    def draw(self, canvas: Canvas) -> None:
        draw.text(canvas, self.words, self.place, self.letters, mix(_GRID, PAPER, 0.5))


def _captions(size: tuple[int, int], unit: float) -> list[_Caption]:
    """Return the title, and the explanation of the uncertainty at the bottom, in the largest letters that fit."""
    width, height = size
    letters = margin = max(8.0, 8.5 * unit)
    letters = min(letters, letters * (width - 2 * margin) / draw.text_width(SIGMA_WORDS, letters))
    return [
        _Caption("3D, grid 1 m", (margin, 1.6 * letters), letters),
        _Caption(SIGMA_WORDS, (margin, height - 1.6 * letters), letters),
    ]
