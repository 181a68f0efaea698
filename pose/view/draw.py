"""Anti-aliased shapes at sub-pixel positions, drawn in place with few OpenCV calls.

Points are arrays of (x, y) px. They must be finite, with coordinates from -`MAX_COORDINATE_PX` to `MAX_COORDINATE_PX`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from pose.structures.colours import RGB, ink_on
from pose.structures.types import U8

Point = tuple[float, float]

SHIFT = 4  # fractional bits of OpenCV's fixed-point coordinates
MAX_COORDINATE_PX = 20000.0  # px; larger coordinates overflow in OpenCV's fixed-point arithmetic
_FONT = cv2.FONT_HERSHEY_DUPLEX
_ANGLES = np.linspace(0, 2 * np.pi, 12, endpoint=False)
_MIN_CIRCLE_RADIUS_PX = 5.0  # px; OpenCV draws circles with a smaller radius as squares
_CIRCLE = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=1)


def as_rgb(colour: RGB) -> RGB:
    """Return the colour unchanged. This is the conversion of colours for RGB images."""
    return colour


class Canvas(NamedTuple):
    """An image to draw on."""

    pixels: U8  # (H, W, 3) uint8, the image
    # Function from an RGB colour to the three values of a pixel in `pixels`; the identity for RGB images.
    code: Callable[[RGB], RGB] = as_rgb


def fixed(points: NDArray[np.floating]) -> NDArray[np.int32]:
    """Convert points in px to OpenCV's fixed-point coordinates with `SHIFT` fractional bits, in contiguous memory."""
    result: NDArray[np.int32] = np.rint(points * (1 << SHIFT)).astype(np.int32, order="C")
    return result


def _pixels(width: float) -> int:
    return max(1, round(width))


def strokes(canvas: Canvas, segments: NDArray[np.number], colour: RGB, width: float) -> None:
    """Draw lines with round ends, `width` px thick."""
    if len(segments):
        lines = list(segments if segments.dtype == np.int32 else fixed(np.asarray(segments, np.float64)))
        cv2.polylines(canvas.pixels, lines, False, canvas.code(colour), _pixels(width), cv2.LINE_AA, SHIFT)


def stroke(canvas: Canvas, ends: Sequence[Sequence[int]], colour: RGB, width: float) -> None:
    """Draw a line with round ends between two points in fixed-point coordinates, `width` px thick."""
    cv2.line(canvas.pixels, ends[0], ends[1], canvas.code(colour), _pixels(width), cv2.LINE_AA, SHIFT)


def dashes(segments: NDArray[np.floating], length: float) -> NDArray[np.float64]:
    """Cut segments (N, start and end, 2) px into dashes (M, start and end, 2) with a dash at either end."""
    parts = [np.zeros((0, 2, 2))]
    for begin, end in segments.astype(np.float64):
        count = max(1, round((float(np.hypot(*(end - begin))) / length + 1) / 2))
        at = np.arange(count)[:, None] * 2 + [0, 1]
        parts.append(begin + (at / (2 * count - 1))[..., None] * (end - begin))
    return np.concatenate(parts)


def discs(canvas: Canvas, centres: NDArray[np.floating], radius: float, colour: RGB) -> None:
    """Draw filled circles."""
    if len(centres) == 0:
        return
    image, ink = canvas.pixels, canvas.code(colour)
    if radius >= _MIN_CIRCLE_RADIUS_PX:
        for centre in fixed(centres).tolist():
            cv2.circle(image, centre, round(radius * (1 << SHIFT)), ink, cv2.FILLED, cv2.LINE_AA, SHIFT)
        return
    outline = _CIRCLE * radius
    for corners in fixed(centres[:, None] + outline):
        cv2.fillConvexPoly(image, corners, ink, cv2.LINE_AA, SHIFT)


def polygon(canvas: Canvas, corners: NDArray[np.floating], colour: RGB) -> None:
    """Draw a filled convex polygon with corners (N, 2) px."""
    cv2.fillConvexPoly(canvas.pixels, fixed(corners), canvas.code(colour), cv2.LINE_AA, SHIFT)


@contextmanager
def layer(
    canvas: Canvas, points: NDArray[np.floating], margin: float, opacity: float
) -> Iterator[tuple[Canvas, NDArray[np.float64]]]:
    """Yield a canvas around points (N, 2) px, blended into the image at the end, and its corner (2,) px."""
    if opacity >= 1:
        yield canvas, np.zeros(2)
        return
    height, width = canvas.pixels.shape[:2]
    low = np.clip(np.floor(points.min(axis=0) - margin), 0, (width - 1, height - 1)).astype(int)
    high = np.clip(np.ceil(points.max(axis=0) + margin) + 1, low + 1, (width, height)).astype(int)
    patch = canvas.pixels[low[1] : high[1], low[0] : high[0]]
    drawn = patch.copy()
    yield canvas._replace(pixels=drawn), low.astype(np.float64)
    cv2.addWeighted(drawn, opacity, patch, 1 - opacity, 0, dst=patch)


def text(canvas: Canvas, words: str, left_middle: Point, height: float, colour: RGB) -> None:
    """Draw text with capitals `height` px high. The point `left_middle` is the middle of the text's left edge."""
    scale, thickness = _font(height)
    origin = round(left_middle[0]), round(left_middle[1] + height / 2)
    cv2.putText(canvas.pixels, words, origin, _FONT, scale, canvas.code(colour), thickness, cv2.LINE_AA)


def text_width(words: str, height: float) -> int:
    """Return the width in px of `words` as drawn by `text` with capitals `height` px high."""
    scale, thickness = _font(height)
    return int(cv2.getTextSize(words, _FONT, scale, thickness)[0][0])


def _font(height: float) -> tuple[float, int]:
    return height / 22, _pixels(height / 11)  # capitals of this font are 22 px high at scale 1


def label(canvas: Canvas, words: str, bottom_middle: Point, height: float, colour: RGB) -> None:
    """Draw text of `height` px capitals on a rounded box above a point, moved into the image if necessary."""
    x, y, half, thick = _pill(canvas.pixels.shape[1::-1], words, bottom_middle, height)
    length = text_width(words, height)
    inner = half - thick / 2
    strokes(canvas, np.array([[(x - inner, y), (x + inner, y)]]), colour, thick)
    text(canvas, words, (x - length / 2, y), height, ink_on(colour))


def label_reach(size: tuple[int, int], words: str, bottom_middle: Point, height: float) -> NDArray[np.float64]:
    """Return the area that `label` covers: (2, 2) px, top left and bottom right corner."""
    x, y, half, thick = _pill(size, words, bottom_middle, height)
    return np.array([(x - half, y - thick / 2), (x + half, y + thick / 2)])


def _pill(size: Sequence[int], words: str, bottom_middle: Point, height: float) -> tuple[float, float, float, float]:
    """Return the middle x, y, half the width and the height of a label's box in px."""
    thick = 1.9 * height
    half = max(text_width(words, height) / 2 + 0.6 * height, thick / 2)
    x = min(max(bottom_middle[0], half), size[0] - half)
    y = min(max(bottom_middle[1] - thick / 2, thick / 2), size[1] - thick / 2)
    return x, y, half, thick
