"""Images in YUV 4:2:0: luma Y at full resolution, chroma U and V at half the resolution.

Drawing needs full resolution only where something is drawn. Everything else passes from the decoder to the encoder
unchanged, by one lossless copy.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple, Self

import cv2
import numpy as np

from pose.structures.types import F32, U8

BT709, BT470BG, SMPTE170M = 1, 5, 6  # numbers of ITU-T H.273; the last two are the matrix of BT.601
UNSPECIFIED = 2
STRIP = 256  # rows that are converted at a time, even
_LUMA = {BT709: (0.2126, 0.0722), BT470BG: (0.299, 0.114), SMPTE170M: (0.299, 0.114)}  # weights of red and blue


class Area(NamedTuple):
    """A rectangle of pixels: columns x0 to x1 and rows y0 to y1, where x1 and y1 are excluded."""

    x0: int
    y0: int
    x1: int
    y1: int

    def even(self) -> "Area":
        """Return the smallest enclosing area that consists of whole chroma samples, 2 x 2 pixels each."""
        return Area(self.x0 & ~1, self.y0 & ~1, self.x1 + (self.x1 & 1), self.y1 + (self.y1 & 1))

    @property
    def pixels(self) -> int:
        """Number of pixels; 0 for an empty area."""
        return max(self.x1 - self.x0, 0) * max(self.y1 - self.y0, 0)

    def union(self, other: "Area") -> "Area":
        """Return the bounding rectangle of both areas."""
        return Area(min(self.x0, other.x0), min(self.y0, other.y0), max(self.x1, other.x1), max(self.y1, other.y1))

    def of(self, image: U8) -> U8:
        """Return a view of this area of an image (H, W, ...)."""
        return image[self.y0 : self.y1, self.x0 : self.x1]


@dataclass(frozen=True)
class Colours:
    """Colour encoding of Y, U and V (ITU-R BT.601-7 and BT.709-6, section 3)."""

    matrix: int = BT709  # number of the colour matrix: `BT709`, `BT470BG` or `SMPTE170M`
    # Whether the range is full (0 to 255), not limited (16 to 235 for Y, 16 to 240 for U and V).
    full_range: bool = False

    @cached_property
    def from_rgb(self) -> F32:
        """Matrix (3, 4) that maps (R, G, B, 1) to (Y, U, V), all on the scale 0 to 255."""
        red, blue = _LUMA[self.matrix]
        luma = np.array([red, 1 - red - blue, blue])
        rows = np.stack([luma, (np.eye(3)[2] - luma) / (2 - 2 * blue), (np.eye(3)[0] - luma) / (2 - 2 * red)])
        if not self.full_range:
            rows *= np.array([[219], [224], [224]]) / 255
        return np.column_stack([rows, [0 if self.full_range else 16, 128, 128]]).astype(np.float32)

    def coded(self, image: U8) -> U8:
        """Convert an image (H, W, 3) uint8 from RGB to Y, U, V with the same shape and type."""
        return np.asarray(cv2.transform(image, self.from_rgb), np.uint8)

    @cached_property
    def code(self) -> Callable[[tuple[int, int, int]], tuple[int, int, int]]:
        """Function that converts one colour from RGB to Y, U, V, 0 to 255."""

        @lru_cache(maxsize=4096)  # each frame needs the same few hundred colours
        def code(colour: tuple[int, int, int]) -> tuple[int, int, int]:
            y, u, v = np.clip(np.rint(self.from_rgb @ [*colour, 1]), 0, 255).astype(int).tolist()
            return y, u, v

        return code


@dataclass(frozen=True, slots=True)
class Planes:
    """One YUV 4:2:0 image."""

    y: U8  # (H, W) uint8, luma
    u: U8  # chroma, uint8, half as high and wide as `y`, rounded up
    v: U8  # chroma, with the shape of `u`
    colours: Colours = field(default_factory=Colours)  # colour encoding
    packed: U8 | None = None  # (1.5 H, W) array whose memory the three planes share; None if they are separate

    @classmethod
    def empty(cls, size: tuple[int, int], colours: Colours) -> Self:
        """Return a packed image of even (width, height) px with undefined content."""
        width, height = size
        assert width % 2 == height % 2 == 0, "packed 4:2:0 requires even sizes"
        packed = np.empty((height + height // 2, width), np.uint8)
        u, v = packed[height:].reshape(2, height // 2, width // 2)
        return cls(packed[:height], u, v, colours, packed)

    @classmethod
    def of_rgb(cls, image: U8, colours: Colours | None = None) -> Self:
        """Convert an RGB image to planes; odd sizes are made even by repeating the last column or row."""
        colours = colours or Colours()
        height, width = (side + side % 2 for side in image.shape[:2])
        planes = cls.empty((width, height), colours)
        for top in range(0, height, STRIP):  # needs little memory, and fits the processor's cache
            part = image[top : top + STRIP]
            area = Area(0, top, width, top + part.shape[0] + part.shape[0] % 2)
            planes._store_coded(colours.coded(part), area)
        return planes

    @classmethod
    def of_coded(cls, image: U8, colours: Colours) -> Self:
        """Make planes from an image of Y, U, V. Odd sizes are made even as in `of_rgb`."""
        height, width = image.shape[:2]
        planes = cls.empty((width + width % 2, height + height % 2), colours)
        planes._store_coded(image, Area(0, 0, *planes.size))
        return planes

    def _store_coded(self, image: U8, area: Area) -> None:
        """Store an image of Y, U and V in even rows of this image."""
        height, width = image.shape[:2]
        if height % 2 or width % 2:
            image = np.pad(image, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
        part = Planes(area.of(self.y), _half(area).of(self.u), _half(area).of(self.v))
        FullResolution((image.shape[1], image.shape[0]), image).store(part, Area(0, 0, *part.size))

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in px."""
        return self.y.shape[1], self.y.shape[0]

    def paste(self, other: "Planes", x: int = 0) -> None:
        """Copy another image into this one at row 0 and column `x`, which must be even."""
        width, height = other.size
        self.y[:height, x : x + width] = other.y
        columns = slice(x // 2, x // 2 + (width + 1) // 2)
        self.u[: (height + 1) // 2, columns] = other.u
        self.v[: (height + 1) // 2, columns] = other.v


class FullResolution:
    """Y, U and V of an image at full resolution, for drawing.

    The image size and all areas must be even. Loading an area and storing it again leaves the planes unchanged.
    """

    def __init__(self, size: tuple[int, int], pixels: U8 | None = None) -> None:
        """Make an image of even (width, height) px, or use an existing array (H, W, 3)."""
        width, height = size
        # (H, W, 3) uint8, Y, U and V.
        self.pixels = np.zeros((height, width, 3), np.uint8) if pixels is None else pixels
        self._planes = np.empty((2, width * height), np.uint8)  # reusing memory is cheaper than allocating

    def load(self, planes: Planes, area: Area) -> None:
        """Copy an area from an image in 4:2:0 to this image; each chroma sample is repeated for its 2 x 2 pixels."""
        half, doubled = _half(area), self._scratch(area)
        for plane, wide in zip((planes.u, planes.v), doubled, strict=True):
            # Repeat each sample along the row (257 times a byte is two such bytes), and then each row.
            pairs = half.of(plane).astype(np.uint16) * np.uint16(257)
            wide.reshape(len(pairs), 2, -1).view(np.uint16)[:] = pairs[:, None]
        cv2.merge([area.of(planes.y), *doubled], area.of(self.pixels))

    def store(self, planes: Planes, area: Area) -> None:
        """Copy an area of this image to an image in 4:2:0; each chroma sample is the mean of its 2 x 2 pixels."""
        full, half = self._scratch(area), _half(area)
        cv2.split(area.of(self.pixels), [area.of(planes.y), *full])
        for plane, wide in zip((planes.u, planes.v), full, strict=True):
            size = wide.shape[1] // 2, wide.shape[0] // 2
            cv2.resize(wide, size, dst=half.of(plane), interpolation=cv2.INTER_AREA)

    def _scratch(self, area: Area) -> list[U8]:
        shape = area.y1 - area.y0, area.x1 - area.x0
        return [plane[: area.pixels].reshape(shape) for plane in self._planes]


@dataclass(frozen=True, slots=True)
class PlanarFrame:
    """A frame of the source as YUV planes."""

    planes: Planes  # the image
    index: int  # index of the frame among the returned frames, from 0
    time: float  # time of the frame, s


def merged(areas: Iterable[Area]) -> list[Area]:
    """Merge pairs of areas repeatedly, if their bounding rectangle has no more pixels than both areas together."""
    apart: list[Area] = []
    for area in areas:
        whole, others = area, apart
        while True:
            near = next((other for other in others if whole.union(other).pixels <= whole.pixels + other.pixels), None)
            if near is None:
                break
            whole, others = whole.union(near), [other for other in others if other is not near]
        apart = [*others, whole]
    return apart


def _half(area: Area) -> Area:
    """Convert an area from luma to chroma samples."""
    return Area(area.x0 // 2, area.y0 // 2, area.x1 // 2, area.y1 // 2)
