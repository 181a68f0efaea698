"""Pictures as video stores them: brightness Y in full, the colour differences U and V at half the resolution (4:2:0).

What is drawn on such a picture needs RGB only where it is drawn: everything else goes from the decoder to the encoder
as it is, which costs a copy and loses nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import cv2
import numpy as np

from pose.types import F32, U8

BT709, BT470BG, SMPTE170M = 1, 5, 6  # as numbered in ITU-T H.273; the last two are the matrix of BT.601
UNSPECIFIED = 2
_LUMA = {BT709: (0.2126, 0.0722), BT470BG: (0.299, 0.114), SMPTE170M: (0.299, 0.114)}  # of red and of blue


class Area(NamedTuple):
    """A rectangle of pixels: columns x0 to x1, rows y0 to y1, the ends excluded."""

    x0: int
    y0: int
    x1: int
    y1: int

    def even(self) -> "Area":
        """The smallest one around it that covers whole samples of U and V."""
        return Area(self.x0 & ~1, self.y0 & ~1, self.x1 + (self.x1 & 1), self.y1 + (self.y1 & 1))

    @property
    def pixels(self) -> int:
        return max(self.x1 - self.x0, 0) * max(self.y1 - self.y0, 0)

    def around(self, other: "Area") -> "Area":
        """The smallest one that holds both."""
        return Area(min(self.x0, other.x0), min(self.y0, other.y0), max(self.x1, other.x1), max(self.y1, other.y1))

    def of(self, image: U8) -> U8:
        """That part of a picture (H, W, ...), not copied."""
        return image[self.y0 : self.y1, self.x0 : self.x1]


@dataclass(frozen=True)
class Colours:
    """What Y, U and V stand for. matrix: BT709, BT470BG or SMPTE170M. full: they fill 0 to 255, not 16 to 235 and 240.

    Formulas: ITU-R BT.601-7 and BT.709-6, section 3.
    """

    matrix: int = BT709
    full: bool = False

    @cached_property
    def from_rgb(self) -> F32:
        """(3, 4): Y, U, V of (R, G, B, 1), all 0 to 255."""
        red, blue = _LUMA[self.matrix]
        luma = np.array([red, 1 - red - blue, blue])
        rows = np.stack([luma, (np.eye(3)[2] - luma) / (2 - 2 * blue), (np.eye(3)[0] - luma) / (2 - 2 * red)])
        if not self.full:
            rows *= np.array([[219], [224], [224]]) / 255
        return np.column_stack([rows, [0 if self.full else 16, 128, 128]]).astype(np.float32)

    @cached_property
    def to_rgb(self) -> F32:
        """(3, 4): R, G, B of (Y, U, V, 1)."""
        back = np.linalg.inv(self.from_rgb[:, :3].astype(np.float64))
        return np.column_stack([back, -back @ self.from_rgb[:, 3]]).astype(np.float32)


@dataclass(frozen=True, slots=True)
class Planes:
    """One picture. y: (H, W) uint8. u, v: half as high and wide, rounded up. packed: the (1.5 H, W) array that holds
    the three one after the other, where one does.
    """

    y: U8
    u: U8
    v: U8
    colours: Colours = field(default_factory=Colours)
    packed: U8 | None = None

    @classmethod
    def empty(cls, size: tuple[int, int], colours: Colours) -> Self:
        """A packed picture of any content. size: (width, height) px, both even."""
        width, height = size
        assert width % 2 == height % 2 == 0, "4:2:0 packs even sizes only"
        packed = np.empty((height + height // 2, width), np.uint8)
        u, v = packed[height:].reshape(2, height // 2, width // 2)
        return cls(packed[:height], u, v, colours, packed)

    @classmethod
    def of_rgb(cls, image: U8, colours: Colours | None = None) -> Self:
        """Of a picture (H, W, 3) uint8 RGB. An odd size is made even: the last column or row is repeated."""
        height, width = image.shape[:2]
        if height % 2 or width % 2:
            image = np.pad(image, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
            height, width = image.shape[:2]
        planes = cls.empty((width, height), colours or Colours())
        planes.put(Area(0, 0, width, height), image)
        return planes

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.y.shape[1], self.y.shape[0]

    def rgb(self, area: Area) -> U8:
        """(h, w, 3) uint8 RGB of an even area inside an even picture."""
        y = area.of(self.y)
        half = _half(area)
        u, v = (
            cv2.resize(half.of(plane), y.shape[::-1], interpolation=cv2.INTER_NEAREST) for plane in (self.u, self.v)
        )
        merged = cv2.merge([y, u, v])
        return np.asarray(cv2.transform(merged, self.colours.to_rgb, dst=merged), np.uint8)

    def put(self, area: Area, image: U8) -> None:
        """Set an even area of an even picture to (h, w, 3) uint8 RGB. Each sample of U and V is the mean of four."""
        width, height = area.x1 - area.x0, area.y1 - area.y0
        u, v = np.empty((2, height, width), np.uint8)
        cv2.split(cv2.transform(image, self.colours.from_rgb), [area.of(self.y), u, v])
        half = _half(area)
        for plane, full in ((self.u, u), (self.v, v)):
            cv2.resize(full, (width // 2, height // 2), dst=half.of(plane), interpolation=cv2.INTER_AREA)

    def paste(self, other: "Planes", x: int = 0) -> None:
        """Put another picture into the upper edge, from the even column `x` on."""
        width, height = other.size
        self.y[:height, x : x + width] = other.y
        columns = slice(x // 2, x // 2 + (width + 1) // 2)
        self.u[: (height + 1) // 2, columns] = other.u
        self.v[: (height + 1) // 2, columns] = other.v


@dataclass(frozen=True, slots=True)
class PlanarFrame:
    """One picture of the source, as `pose.types.Frame` without the way through RGB."""

    planes: Planes
    index: int
    time: float


def joined(areas: Iterable[Area]) -> list[Area]:
    """The same areas, two in one wherever that does not make them larger."""
    apart: list[Area] = []
    for area in areas:
        whole, others = area, apart
        while True:
            near = next((other for other in others if whole.around(other).pixels <= whole.pixels + other.pixels), None)
            if near is None:
                break
            whole, others = whole.around(near), [other for other in others if other is not near]
        apart = [*others, whole]
    return apart


def _half(area: Area) -> Area:
    """The same area in samples of U and V."""
    return Area(area.x0 // 2, area.y0 // 2, area.x1 // 2, area.y1 // 2)
