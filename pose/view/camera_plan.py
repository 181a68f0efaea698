"""HTML section on several cameras or one moving camera, with a view from above and a table.

Each camera is drawn with its viewing direction, name and uncertainty. In the world frame, x points to the right of the
first camera, y up, and z towards this camera. On the page, x points right and z down, so the first camera is at the
bottom.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from pose.results import Recording
from pose.results.cameras import ResultCamera, result_cameras
from pose.structures.colours import INK, RGB, rim_colour
from pose.structures.types import F64
from pose.utils.shown import shown_in_html
from pose.world.frame import World

Box = tuple[float, float, float, float]  # left, top, right, bottom in px

WIDTH, MAX_HEIGHT = 360.0, 420.0  # px, width and maximum height of the view box
MARGIN = 26.0
MIN_SPAN_M = 3.0  # m, minimum width and depth of the view
MAX_PATH_POINTS = 400  # maximum number of points per path
MAX_NAME_CHARS = 18  # maximum number of characters of a name
_LETTER_PX, _LINE_PX = 6.4, 12.0  # px, width of a letter and height of a line
_WEDGE_PX, _DIRECTION_PX = 46.0, 90.0  # px, lengths of a field of view and of a later viewing direction


# Positions of a label relative to its point, in the order of preference: px to the right and down, and the fraction of
# the label to the left of this position.
_LABEL_POSITIONS = ((9, 4, 0), (-9, 4, 1), (0, -9, 0.5), (0, 20, 0.5), (9, -8, 0), (-9, -8, 1), (9, 18, 0), (-9, 18, 1))


@dataclass(frozen=True, slots=True, eq=False)
class GroundPath:
    """Path on the floor."""

    name: str  # label at the end of the path; empty for none
    positions: F64  # (T, 3) m in world coordinates, NaN in gaps
    colour: RGB  # RGB colour of the line
    dashed: bool = False  # whether to draw a dashed line


@dataclass(frozen=True, slots=True, eq=False)
class CameraMark:
    """Camera in the view from above; a moving one has `later_poses`, positions and directions at K times."""

    name: str  # label beside the camera
    position: F64  # (3,) m in world coordinates
    forward: F64  # (3,) viewing direction in world coordinates
    half_view: float  # half the horizontal field of view in radians
    sigma: float = 0.0  # standard deviation of the position in m; 0 draws no circle
    later_poses: F64 = field(default_factory=lambda: np.zeros((0, 2, 3)))


def top_view(paths: Sequence[GroundPath], cameras: Sequence[CameraMark]) -> str:
    """Return a view from above with the finite paths of people, and cameras, as an SVG element."""
    paths = [path for path in paths if np.isfinite(path.positions).all(axis=1).any()]
    cameras = [camera for camera in cameras if np.isfinite(camera.position).all() and np.isfinite(camera.forward).all()]
    plan = _Plan(paths, cameras)
    parts = [plan.grid(), *(plan.wedge(camera) for camera in cameras), *(plan.directions(camera) for camera in cameras)]
    parts += [plan.line(path) for path in paths]
    parts += [plan.camera(camera) for camera in cameras]
    ends = [path.positions[np.isfinite(path.positions).all(axis=1)][-1] for path in paths]
    parts += [plan.label(camera.name, camera.position) for camera in cameras]
    parts += [plan.label(path.name, end) for path, end in zip(paths, ends, strict=True) if path.name]
    names = ", ".join(path.name for path in paths if path.name)
    count = f"{len(cameras)} camera{'s' * (len(cameras) != 1)}"
    description = f"View from above, grid 1 m: {count}; {names or 'nobody'}"
    box = f"0 0 {WIDTH:g} {plan.height:.0f}"
    return f'<svg viewBox="{box}" role="img" aria-label="{shown_in_html(description)}">{"".join(parts)}</svg>'


class _Plan:
    """Drawing of the view: conversion from metres to px, and the SVG elements."""

    def __init__(self, paths: Sequence[GroundPath], cameras: Sequence[CameraMark]) -> None:
        rows = [path.positions[np.isfinite(path.positions).all(axis=1)] for path in paths]
        rows += [camera.later_poses[:, 0] for camera in cameras]
        rows += [
            camera.position[None] + step
            for camera in cameras
            for step in (-min(camera.sigma, 5.0), min(camera.sigma, 5.0))
        ]
        every = np.concatenate([np.zeros((0, 3)), *rows])[:, [0, 2]]
        low, high = (every.min(axis=0), every.max(axis=0)) if len(every) else (np.zeros(2), np.zeros(2))
        span = np.maximum(high - low, MIN_SPAN_M)
        self._scale = float(min((WIDTH - 2 * MARGIN) / span[0], (MAX_HEIGHT - 2 * MARGIN) / span[1]))
        self._middle = (low + high) / 2
        self.height = 2 * MARGIN + float(span[1]) * self._scale
        self._occupied: list[Box] = []
        for camera in cameras:
            x, y = self._to_px(camera.position)
            self._occupied.append((x - 8, y - 8, x + 8, y + 8))
            u, v = self._to_px(camera.position + camera.forward * 15 / self._scale)
            self._occupied.append((min(x, u) - 2, min(y, v) - 2, max(x, u) + 2, max(y, v) + 2))

    def _to_px(self, position: F64) -> tuple[float, float]:
        x, y = (position[[0, 2]] - self._middle) * self._scale
        return WIDTH / 2 + float(x), self.height / 2 + float(y)

    def grid(self) -> str:
        """Return the grid lines and a scale bar. Lines are 1 m apart, or 2, 5, 10, ... m in large scenes."""
        step = next(s for p in range(9) for s in (10**p, 2 * 10**p, 5 * 10**p) if s * self._scale >= 14)
        half = np.array([WIDTH, self.height]) / 2 / self._scale
        low, high = self._middle - half, self._middle + half
        parts = []
        for value in range(math.ceil(low[0] / step) * step, math.floor(high[0]) + 1, step):
            x = WIDTH / 2 + (value - self._middle[0]) * self._scale
            parts.append(f'<path class="g" d="M{x:.1f} 0V{self.height:.1f}"/>')
        for value in range(math.ceil(low[1] / step) * step, math.floor(high[1]) + 1, step):
            y = self.height / 2 + (value - self._middle[1]) * self._scale
            parts.append(f'<path class="g" d="M0 {y:.1f}H{WIDTH:g}"/>')
        long = step * self._scale
        parts.append(f'<path d="M8 {self.height - 8:.1f}h{long:.1f}" stroke="{_hex(INK)}" stroke-width="2"/>')
        text = f"{step} m"
        self._occupied.append((0, self.height - 26, 16 + long + _LETTER_PX * len(text), self.height))
        return "".join([*parts, f'<text x="{12 + long:.1f}" y="{self.height - 5:.1f}">{text}</text>'])

    def line(self, path: GroundPath) -> str:
        """Return a path with a dot at its start and an open ring at its end."""
        positions = path.positions[:: -(-len(path.positions) // MAX_PATH_POINTS)]
        commands, pen, points = [], "M", []
        for position in positions:
            if not np.isfinite(position).all():
                pen = "M"
                continue
            x, y = self._to_px(position)
            commands.append(f"{pen}{x:.1f} {y:.1f}")
            points.append((x, y))
            pen = "L"
        if not points:
            return ""
        colour, (x, y), (u, v) = _hex(path.colour), points[0], points[-1]
        dashes = ' stroke-dasharray="5 3"' if path.dashed else ""
        drawn = f'<path d="{"".join(commands)}" fill="none" stroke="{colour}" stroke-width="2.5"{dashes}/>'
        self._occupied.append((u - 5, v - 5, u + 5, v + 5))
        return (
            f'{drawn}<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
            f'<circle cx="{u:.1f}" cy="{v:.1f}" r="4.5" fill="#fff" stroke="{colour}" stroke-width="2.5"/>'
        )

    def wedge(self, one: CameraMark) -> str:
        """Return the field of view as a wedge of fixed length; nothing for a camera that looks straight down or up."""
        flat = one.forward[[0, 2]]
        size = float(np.linalg.norm(flat))
        if size < 0.1:
            return ""
        x, y = self._to_px(one.position)
        ahead, half = math.atan2(flat[1], flat[0]), min(one.half_view, 1.3)
        ends = [
            (x + _WEDGE_PX * math.cos(ahead + offset), y + _WEDGE_PX * math.sin(ahead + offset))
            for offset in (-half, half)
        ]
        (a, b), (c, d) = ends
        arc = f"A{_WEDGE_PX:g} {_WEDGE_PX:g} 0 0 1 {c:.1f} {d:.1f}"
        return f'<path d="M{x:.1f} {y:.1f}L{a:.1f} {b:.1f}{arc}Z" fill="#7a8aa0" fill-opacity="0.28"/>'

    def directions(self, one: CameraMark) -> str:
        """Return a thin line along each later viewing direction."""
        parts = []
        for position, forward in one.later_poses:
            x, y = self._to_px(position)
            flat = forward[[0, 2]] / max(float(np.linalg.norm(forward)), 1e-9) * _DIRECTION_PX
            parts.append(f"M{x:.1f} {y:.1f}l{flat[0]:.1f} {flat[1]:.1f}")
        return f'<path d="{"".join(parts)}" fill="none" stroke="#7a8aa0" stroke-width="0.8"/>' if parts else ""

    def camera(self, one: CameraMark) -> str:
        """Return a square, a line in the viewing direction, and a dashed circle of one standard deviation."""
        x, y = self._to_px(one.position)
        flat = one.forward[[0, 2]] / max(float(np.linalg.norm(one.forward[[0, 2]])), 1e-9) * 15
        radius, ink = one.sigma * self._scale, _hex(INK)
        circle = (
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="none" stroke="{ink}" stroke-dasharray="3 2"/>'
        )
        steps = f"l{flat[0]:.1f} {flat[1]:.1f}" if np.linalg.norm(flat) > 1 else ""
        return (
            f'{circle if radius >= 1 else ""}<path d="M{x:.1f} {y:.1f}{steps}" stroke="{ink}" stroke-width="2.5"/>'
            f'<rect x="{x - 4.5:.1f}" y="{y - 4.5:.1f}" width="9" height="9" rx="1.5" fill="{ink}"/>'
        )

    def label(self, name: str, position: F64) -> str:
        """Return a name beside a point, at the position where it covers the least of other elements."""
        text = name if len(name) <= MAX_NAME_CHARS else f"{name[: MAX_NAME_CHARS - 1]}\N{HORIZONTAL ELLIPSIS}"
        x, y = self._to_px(position)
        text_width = _LETTER_PX * len(text)
        boxes = [
            (x + dx - fraction * text_width, y + dy - _LINE_PX, x + dx + (1 - fraction) * text_width, y + dy)
            for dx, dy, fraction in _LABEL_POSITIONS
        ]
        inside = (0.0, 0.0, WIDTH, self.height)
        costs = [
            sum(_overlap_area(box, other) for other in self._occupied) + _area(box) - _overlap_area(box, inside)
            for box in boxes
        ]
        box = boxes[int(np.argmin(np.round(costs, 1)))]
        self._occupied.append(box)
        return f'<text x="{box[0]:.1f}" y="{box[3] - 2:.1f}" class="name">{shown_in_html(text)}</text>'


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _overlap_area(one: Box, other: Box) -> float:
    wide, high = min(one[2], other[2]) - max(one[0], other[0]), min(one[3], other[3]) - max(one[1], other[1])
    return max(wide, 0.0) * max(high, 0.0)


def _hex(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


MAX_PEOPLE = 12  # maximum number of drawn paths
MAX_DIRECTIONS = 24  # number of drawn viewing directions of a moving camera, evenly over time
_CAMERA_COLOUR = (90, 98, 112)


def cameras_section(table: Recording) -> Iterator[str]:
    """Yield the HTML section on several cameras or a moving one of a result with a world; nothing for others."""
    cameras = result_cameras(table.run)
    if table.world_info is None or table.placed is None:
        return
    if not cameras:
        yield from _path_section(table)
        return
    world = table.world_info.world
    marks = [
        CameraMark(
            camera.name,
            world.place(camera.place),
            world.rotation @ camera.rotation[2],
            camera.half_view,
            camera.place_sigma,
        )
        for camera in cameras
    ]
    yield '<section class="cameras"><h2>Cameras</h2>\n<figure class="plan"><b>From above</b>'
    yield top_view(_paths(table), marks)
    yield (
        "<figcaption>Squares: cameras, with the viewing direction, a part of the field of view and, dashed, one "
        "standard deviation of the position. Lines: paths of the people's pelvis from the dot to the ring."
        "</figcaption></figure>\n"
    )
    yield "<table><tr><th>camera</th><th>x, z, m</th><th>starts at</th><th>reprojection</th></tr>"
    yield from (_row(camera, world, number) for number, camera in enumerate(cameras))
    yield "</table>\n"
    name = shown_in_html(cameras[0].name)
    yield f'<p class="quiet">x to the right, z towards {name} (down in the plan); '
    yield "\u00b1: standard deviation relative to it.</p>"
    yield "</section>\n"


def _path_section(table: Recording) -> Iterator[str]:
    """Yield the HTML section of one moving camera."""
    if table.camera is None or table.camera_rotation is None or table.camera_zoom is None or table.world_info is None:
        return
    world, count = table.world_info.world, len(table)
    known_frames = np.arange(count) if table.camera_sigma is None else np.flatnonzero(np.isfinite(table.camera_sigma))
    if not len(known_frames):
        return
    shown = known_frames[np.unique(np.linspace(0, len(known_frames) - 1, MAX_DIRECTIONS).round().astype(int))]
    moved = np.zeros((count, 3)) if table.camera_position is None else table.camera_position.astype(np.float64)
    positions = np.full((count, 3), np.nan)
    positions[known_frames] = world.place(moved[known_frames])
    forward = table.camera_rotation[shown].astype(np.float64)[:, :, 2] @ world.rotation.T
    half_view = math.atan(table.camera.size[0] / 2 / float(table.camera.matrix[0, 0] * table.camera_zoom[0]))
    later_poses = np.stack([positions[shown], forward], axis=1)
    paths = _paths(table)
    if table.camera_position is not None:
        paths = [GroundPath("", positions, _CAMERA_COLOUR, dashed=True), *paths]
    yield '<section class="cameras"><h2>Camera</h2>\n<figure class="plan"><b>From above</b>'
    yield top_view(
        paths, [CameraMark("camera", positions[known_frames[0]], forward[0], half_view, later_poses=later_poses)]
    )
    yield (
        "<figcaption>Square: the camera at the start, with a part of its field of view. Thin lines: its viewing "
        f"direction at {len(shown)} times. Lines: paths of the people's pelvis from the dot to the ring"
        f"{'; dashed: path of the camera' if table.camera_position is not None else ''}. Grid in metres."
        "</figcaption></figure>\n"
    )
    if table.run is not None and (info := table.run.motion) is not None:
        one = info.motion
        yield f'<p class="quiet">{one.kind}; pan {one.pan:.1f}, tilt {one.tilt:.1f}, roll {one.roll:.1f} degrees; zoom '
        yield f"{100 * (one.zoom - 1):.0f} %; view known in {one.known:.0%} of the frames with people</p>"
    yield "</section>\n"


def _row(one: ResultCamera, world: World, number: int) -> str:
    right, up, back = world.place(one.place)
    height = f"{up:.2f} above the floor" if world.floor_known else "height unknown"
    sigma = "" if number == 0 else f"; \u00b1 {one.place_sigma:.2f}, rotation \u00b1 {one.turn_sigma:.1f} degrees"
    position = f"{right:.2f}, {back:.2f}<small>{height}{sigma}</small>".replace("-", "\u2212")
    start = f"{one.offset:.3f} s" + ("" if number == 0 else f"<small>\u00b1 {1000 * one.offset_sigma:.0f} ms</small>")
    residual = "" if math.isnan(one.residual_px) else f"{one.residual_px:.1f} px"
    name = f"{shown_in_html(one.name)}<small>focal length {one.matrix[0, 0]:.0f} px</small>"
    return f"<tr><td>{name}</td><td>{position}</td><td>{start}</td><td>{residual}</td></tr>"


def _paths(table: Recording) -> list[GroundPath]:
    """Return the paths of the people with the most frames; NaN in gaps."""
    assert table.placed is not None
    ids, counts = np.unique(table.id, return_counts=True)
    paths = []
    for person in sorted(ids[np.argsort(-counts, kind="stable")][:MAX_PEOPLE].tolist()):
        rows = table.rows_of(person)
        positions = table.placed.joints[rows, 0].astype(np.float64)
        breaks = np.flatnonzero(np.diff(table.frame_index[rows]) > 1) + 1
        positions = np.insert(positions, breaks, np.nan, axis=0)
        paths.append(GroundPath(f"person {person}", positions, rim_colour(person)))
    return paths
