"""Sheets of images: still images with their people, and predicted poses over the ground truth."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from pose.structures.colours import INK, PAPER
from pose.structures.skeletons import H36M17, Skeleton
from pose.structures.types import F32, U8, FrameResult
from pose.utils.whole_file import write_whole
from pose.view import draw
from pose.view.bodies import BodyMesh, draw_bodies
from pose.view.insets import AUTO
from pose.view.overlay import Overlay

CELL = (640, 480)  # px, (width, height) of a cell
COLUMNS, ROWS = 3, 4
GAP, CAPTION = 12, 26  # px: gap around cells, and space below each cell for its name
JPEG_QUALITY = 88
MAX_NAME_CHARS = 40


class Gallery:
    """Writer of contact sheets: JPEG images that each show several still images with their people."""

    def __init__(self, sheet: Callable[[int], Path], inset: str = AUTO) -> None:
        """Start without images."""
        self._sheet, self._sheets, self._inset = sheet, 0, inset
        self._cells: list[tuple[str, U8]] = []

    def add(
        self, name: str, image: U8, result: FrameResult, skeleton: Skeleton, bodies: Sequence[BodyMesh] = ()
    ) -> None:
        """Add an image with its people; a full sheet is written, with a PoseError if that fails."""
        small, scale = _within(image, CELL)
        small = small.copy() if bodies else small
        draw_bodies(draw.Canvas(small), [mesh.scaled(scale) for mesh in bodies])
        overlay = Overlay((small.shape[1], small.shape[0]), skeleton, self._inset)
        drawn = overlay.draw(small, _scaled(result, scale))
        self._cells.append((name, _within(drawn, CELL)[0]))
        if len(self._cells) == COLUMNS * ROWS:
            self.close()

    def close(self) -> None:
        """Write the last sheet."""
        if not self._cells:
            return
        self._sheets += 1
        done, data = cv2.imencode(".jpg", _sheet(self._cells)[:, :, ::-1], [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
        assert done
        write_whole(self._sheet(self._sheets), data.tobytes())
        self._cells = []


def _within(image: U8, size: tuple[int, int]) -> tuple[U8, float]:
    """Shrink an image to fit into `size` (width, height) px; return it with the scale. Smaller images do not change."""
    height, width = image.shape[:2]
    scale = min(size[0] / width, size[1] / height, 1.0)
    if scale == 1.0:
        return image, 1.0
    small = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(image, small, interpolation=cv2.INTER_AREA), np.uint8), scale


def _scaled(result: FrameResult, scale: float) -> FrameResult:
    """Return the people in px of the scaled image. The pixel centre x maps to (x + 0.5) * scale - 0.5."""
    people = result.people
    boxes = ((people.boxes + 0.5) * scale - 0.5).astype(np.float32)
    keypoints = ((people.keypoints + 0.5) * scale - 0.5).astype(np.float32)
    return FrameResult(replace(people, boxes=boxes, keypoints=keypoints), result.poses)


def _sheet(cells: list[tuple[str, U8]]) -> U8:
    columns = min(COLUMNS, len(cells))
    rows = -(-len(cells) // columns)
    step = CELL[0] + GAP, CELL[1] + CAPTION + GAP
    sheet = np.full((rows * step[1] + GAP, columns * step[0] + GAP, 3), PAPER, np.uint8)
    for number, (name, image) in enumerate(cells):
        height, width = image.shape[:2]
        left, top = GAP + number % columns * step[0], GAP + number // columns * step[1]
        x, y = left + (CELL[0] - width) // 2, top + (CELL[1] - height) // 2
        sheet[y : y + height, x : x + width] = image
        shown = name if len(name) <= MAX_NAME_CHARS else f"...{name[3 - MAX_NAME_CHARS :]}"
        draw.text(draw.Canvas(sheet), shown, (left, top + CELL[1] + CAPTION / 2), 9, INK)
    return sheet


_TILE = 260
_PIXELS_PER_METRE = 110
_TRUE, _LIFTED = (170, 170, 170), (200, 80, 20)
_VIEWS = {"front": (0, 1), "side": (2, 1)}  # axes of a pose that point right and down in the image


def draw_comparison(lifted: F32, true: F32) -> U8:
    """Draw predicted over true (grey) poses (N, 17, 3) m, each from the front and from the side, (H, W, 3) RGB."""
    columns = []
    for pose, truth in zip(lifted, true, strict=True):
        column = np.full((_TILE * len(_VIEWS), _TILE, 3), 255, np.uint8)
        for row, axes in enumerate(_VIEWS.values()):
            origin = np.array([_TILE / 2, _TILE * (row + 0.5)])
            _draw(column, truth[:, axes] * _PIXELS_PER_METRE + origin, _TRUE, 5)
            _draw(column, pose[:, axes] * _PIXELS_PER_METRE + origin, _LIFTED, 2)
        columns.append(column)
    return np.concatenate(columns, axis=1)


def _draw(picture: U8, points: F32, color: tuple[int, int, int], width: int) -> None:
    for a, b in H36M17.edges:
        start, end = points[a].round().astype(int), points[b].round().astype(int)
        cv2.line(picture, start.tolist(), end.tolist(), color, width, cv2.LINE_AA)


def save_picture(picture: U8, path: Path) -> None:
    """Write an RGB image as PNG; PoseError if the folder cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _, data = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
    write_whole(path, data.tobytes())
