"""Grid of the images of all cameras, with the reprojected 3D people, and the 3D view in the last cell."""

import math
from collections.abc import Iterator, Sequence

import cv2
import numpy as np

from pose.multiview.types import ViewCamera
from pose.structures.colours import INK, PAPER, SIDE_COLOURS, edge_side, person_colour, rim_colour
from pose.structures.skeletons import H36M17
from pose.structures.types import F32, F64, U8, Flags, Frame, FrameResult
from pose.view import draw
from pose.view.draw import Canvas
from pose.view.inset import Inset

CELL_HEIGHT = 540  # px, in a grid of several rows
SINGLE_HEIGHT = 720
MAX_DIFFERENCE_S = 0.1  # s; an image whose time differs more is not shown
_EDGES = [(a, b, SIDE_COLOURS[edge_side(H36M17, a, b)]) for a, b in H36M17.edges]
_HEAD = H36M17.index("head")


class CameraGrid:
    """Renderer of the camera grid. Results must be drawn in order of time."""

    def __init__(self, cameras: Sequence[ViewCamera], names: Sequence[str], frames: Sequence[Iterator[Frame]]) -> None:
        """Compute the layout of the grid of cameras."""
        self._cameras, self._names = cameras, names
        self._streams = [_Stream(frame) for frame in frames]
        cells = len(cameras) + 1
        rows = 1 if cells <= 3 else 2 if cells <= 8 else 3
        columns = math.ceil(cells / rows)
        height = SINGLE_HEIGHT if rows == 1 else CELL_HEIGHT
        widths = [height * camera.size[0] / camera.size[1] for camera in cameras]
        width = min(round(float(np.median(widths))), height * 16 // 9)
        self._cell = width - width % 2, height
        self._columns = columns
        self.size = self._cell[0] * columns, height * rows  # (width, height) px of the grid
        self._inset = Inset(self._cell)

    def draw(self, result: FrameResult) -> U8:
        """Draw the grid (H, W, 3) uint8 at the time of `result`."""
        image = np.zeros((self.size[1], self.size[0], 3), np.uint8)
        joints = result.poses.joints + result.poses.root[:, None]
        ids = result.people.ids.tolist()
        width, height = self._cell
        for row, (camera, stream) in enumerate(zip(self._cameras, self._streams, strict=True)):
            cell = self._cell_of(image, row)
            camera_time = float(camera.own_time(np.array([result.time]))[0])
            _paste(cell, stream.at(camera_time), camera, joints, (result.poses.seen_by >> row & 1).astype(bool), ids)
            canvas = Canvas(cell)
            draw.text(canvas, self._names[row], (12.0, height - 18.0), 12.0, PAPER)
        cell = self._cell_of(image, len(self._cameras))
        cell[:] = self._inset.render(result)
        draw.text(Canvas(image), f"{result.time:.2f} s", (width - 80.0, 18.0), 11.0, PAPER)
        return image

    def _cell_of(self, image: U8, number: int) -> U8:
        width, height = self._cell
        row, column = divmod(number, self._columns)
        return image[row * height : (row + 1) * height, column * width : (column + 1) * width]


class _Stream:
    """Images of one camera, requested in order of time."""

    def __init__(self, frames: Iterator[Frame]) -> None:
        self._frames = frames
        self._current: Frame | None = None
        self._next: Frame | None = next(frames, None)

    def at(self, time: float) -> U8 | None:
        """Return the image nearest to `time` s on the camera's clock; None beyond `MAX_DIFFERENCE_S`."""
        while self._next is not None and (
            self._current is None or abs(self._next.time - time) <= abs(self._current.time - time)
        ):
            if self._current is None and self._next.time > time + MAX_DIFFERENCE_S:
                return None
            self._current, self._next = self._next, next(self._frames, None)
        if self._current is None or abs(self._current.time - time) > MAX_DIFFERENCE_S:
            return None
        return self._current.image


def _paste(
    cell: U8, image: U8 | None, camera: ViewCamera, people_joints: F32, observed_joints: Flags, ids: list[int]
) -> None:
    """Draw a camera's image, if any, and the people that it saw, (P, 17, 3) m in the first camera, in the cell."""
    height, width = cell.shape[:2]
    scale = min(width / camera.size[0], height / camera.size[1])
    size = max(round(camera.size[0] * scale), 1), max(round(camera.size[1] * scale), 1)
    left, top = (width - size[0]) // 2, (height - size[1]) // 2
    area = cell[top : top + size[1], left : left + size[0]]
    if image is None:
        area[:] = INK
        draw.text(Canvas(area), "no image", (size[0] / 2 - 40, size[1] / 2), 12.0, PAPER)
        return
    cv2.resize(image, size, dst=area, interpolation=cv2.INTER_AREA)
    canvas = Canvas(area)
    for person, joints, observed in zip(ids, people_joints, observed_joints, strict=True):
        depth = camera.to_camera(joints.astype(np.float64))[:, 2]
        if not observed.any() or depth.min() < 0.3:
            continue
        pixels = camera.project(joints.astype(np.float64)) * scale
        _draw_body(canvas, pixels, person, scale * camera.focal / float(np.median(depth)))


def _draw_body(canvas: Canvas, pixels: F64, person: int, metre: float) -> None:
    """Draw a body of joints (17, 2) px at a depth of `metre` px per metre."""
    pixels = np.clip(pixels, -draw.MAX_COORDINATE_PX, draw.MAX_COORDINATE_PX)
    width = float(np.clip(0.035 * metre, 2, 9))
    for a, b, _ in _EDGES:
        draw.strokes(canvas, pixels[[a, b]][None], rim_colour(person), width + 2)
    for a, b, colour in _EDGES:
        draw.strokes(canvas, pixels[[a, b]][None], colour, width)
    top = pixels[_HEAD]
    height, canvas_width = canvas.pixels.shape[:2]
    if 0 < top[0] < canvas_width and 0 < top[1] < height:
        draw.label(canvas, str(person), (float(top[0]), float(top[1] - 0.15 * metre)), 9.0, person_colour(person))
