"""Anti-aliased strokes on RGB pictures, with sub-pixel positions and opacity. All draw in place."""

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np

from pose.types import U8
from pose.view.colours import RGB, ink_on

Point = tuple[float, float]

_SHIFT = 4  # OpenCV takes fixed-point coordinates with this many binary digits after the point
_FAR = 20000.0  # px; beyond it OpenCV's fixed point would overflow
FONT = cv2.FONT_HERSHEY_DUPLEX


def _fixed(point: Point) -> tuple[int, int]:
    x, y = (min(max(value, -_FAR), _FAR) for value in point)
    return round(x * (1 << _SHIFT)), round(y * (1 << _SHIFT))


def stroke(image: U8, start: Point, end: Point, colour: RGB, width: float, opacity: float = 1.0) -> None:
    """A line with round ends, `width` px thick."""

    def paint(canvas: U8, dx: float, dy: float) -> None:
        first, last = (start[0] - dx, start[1] - dy), (end[0] - dx, end[1] - dy)
        cv2.line(canvas, _fixed(first), _fixed(last), colour, max(1, round(width)), cv2.LINE_AA, _SHIFT)

    _blend(image, paint, (*start, *end), width, opacity)


def disc(image: U8, centre: Point, radius: float, colour: RGB, opacity: float = 1.0) -> None:
    """A filled circle of `radius` px."""

    def paint(canvas: U8, dx: float, dy: float) -> None:
        position = _fixed((centre[0] - dx, centre[1] - dy))
        cv2.circle(canvas, position, round(radius * (1 << _SHIFT)), colour, cv2.FILLED, cv2.LINE_AA, _SHIFT)

    _blend(image, paint, (*centre, *centre), 2 * radius, opacity)


def _blend(
    image: U8,
    paint: Callable[[U8, float, float], None],
    span: tuple[float, float, float, float],
    width: float,
    opacity: float,
) -> None:
    """Let `paint(canvas, dx, dy)` draw, its origin moved by (dx, dy), and mix the result in with `opacity`."""
    if opacity >= 0.99:
        paint(image, 0, 0)
        return
    height, length = image.shape[:2]
    margin = width / 2 + 2
    left = max(0, int(min(span[0], span[2]) - margin))
    right = min(length, int(max(span[0], span[2]) + margin) + 1)
    top = max(0, int(min(span[1], span[3]) - margin))
    bottom = min(height, int(max(span[1], span[3]) + margin) + 1)
    if left >= right or top >= bottom:
        return
    patch = image[top:bottom, left:right]
    painted = patch.copy()
    paint(painted, left, top)
    patch[:] = cv2.addWeighted(painted, opacity, patch, 1 - opacity, 0)


def polygon(image: U8, points: "np.ndarray[Any, Any]", colour: RGB) -> None:
    """A filled convex polygon with corners (N, 2) px."""
    corners = np.round(np.clip(points, -_FAR, _FAR) * (1 << _SHIFT)).astype(np.int32)
    cv2.fillConvexPoly(image, corners, colour, cv2.LINE_AA, _SHIFT)


def text(image: U8, words: str, left_middle: Point, height: float, colour: RGB) -> None:
    """Words whose capitals are `height` px high, from the middle of their left edge on."""
    scale, thickness = _font(height)
    origin = round(left_middle[0]), round(left_middle[1] + height / 2)
    cv2.putText(image, words, origin, FONT, scale, colour, thickness, cv2.LINE_AA)


def text_width(words: str, height: float) -> int:
    """How many px `text` takes."""
    scale, thickness = _font(height)
    return int(cv2.getTextSize(words, FONT, scale, thickness)[0][0])


def _font(height: float) -> tuple[float, int]:
    return height / 22, max(1, round(height / 11))  # capitals of this font are 22 px high at scale 1


def label(image: U8, words: str, bottom_middle: Point, height: float, colour: RGB) -> None:
    """Words on a pill of `colour` that stands on `bottom_middle`, moved inside the picture where it would leave it."""
    rows, columns = image.shape[:2]
    thick = 1.9 * height
    length = max(text_width(words, height), 0.55 * height)
    half = length / 2 + thick * 0.32
    x = min(max(bottom_middle[0], half + thick / 4), columns - half - thick / 4)
    y = min(max(bottom_middle[1] - thick / 2, thick / 2), rows - thick / 2)
    inner = max(half - thick / 2, 0.0)
    stroke(image, (x - inner, y), (x + inner, y), colour, thick)
    text(image, words, (x - length / 2, y), height, ink_on(colour))
