"""Drawing of face contours: oval, brows, eyes and lips."""

import numpy as np

from pose.structures.colours import PAPER, RGB
from pose.structures.face_points import CONTOURS, POINTS
from pose.structures.types import F32
from pose.view import draw
from pose.view.draw import Canvas

_WIDTH = 0.008  # width of a line, in heights of the face


def draw_face(canvas: Canvas, points: F32, rim: RGB) -> None:
    """Draw the contours of a face of points (468, 3) px."""
    assert len(points) == POINTS
    pixels = np.clip(points[:, :2], -draw.MAX_COORDINATE_PX, draw.MAX_COORDINATE_PX)
    width = max(1.0, _WIDTH * float(np.ptp(pixels[:, 1])))
    lines = [draw.fixed(pixels[list(contour)].astype(np.float64)) for contour in CONTOURS]
    for line in lines:
        draw.strokes(canvas, line[None], rim, 2 * width)
    for line in lines:
        draw.strokes(canvas, line[None], PAPER, width)
