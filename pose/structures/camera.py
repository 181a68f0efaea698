"""Cameras and projection.

The camera frame has x right, y down, z forward, in metres. Pixel (0, 0) is the centre of the top-left pixel.
"""

import math
import reprlib
from dataclasses import dataclass, replace
from operator import index

import numpy as np
from numpy.typing import NDArray

from pose.errors import UsageError
from pose.structures.lenses import PINHOLE, Lens
from pose.structures.types import F64

# Field of view along the longer image side that is assumed without calibration. Phones and webcams have 55 to 80
# degrees, film lenses less. A wrong value affects scale and distance; results state the assumption.
ASSUMED_FOV_DEGREES = 55.0
MAX_IMAGE_SIZES = 100.0  # maximum focal length and principal point, in longer sides of the image
ENCODER_BLOCK_PX = 16  # px; H.264 codes images in whole macroblocks: ITU-T H.264, 7.4.2.1.1
OTHER_SIZE = (
    "neither the same aspect ratio nor the padding of an encoder: crop or scale the video to that size, or calibrate "
    "at its size"
)
FILM_DIAGONAL = math.hypot(36, 24)  # mm


@dataclass(frozen=True, slots=True, eq=False)
class Camera:
    """A camera.

    Attributes:
        matrix: (3, 3) intrinsics in px.
        known: False if the intrinsics are computed from an assumed field of view. Sizes and distances in 3D are then
            only as accurate as this assumption.
        size: (width, height) of the images in px.
        lens: Distortion of the lens.
    """

    matrix: F64
    known: bool
    size: tuple[int, int]
    lens: Lens = PINHOLE

    def __post_init__(self) -> None:
        if self.matrix.shape != (3, 3):
            raise ValueError(f"intrinsics: expected shape (3, 3), got {self.matrix.shape}")

    @classmethod
    def of(cls, size: tuple[int, int], intrinsics: "F64 | Camera | None" = None) -> "Camera":
        """Make a camera for images of a given size.

        Args:
            size: (width, height) px.
            intrinsics: (3, 3) camera matrix in px, or a camera, which is resized to `size`; None assumes a field of
                view of `ASSUMED_FOV_DEGREES`.

        Raises:
            UsageError: If the size is not two numbers of pixels above 0, the camera has another aspect ratio, or the
                intrinsics are not (3, 3) numbers.
        """
        try:
            width, height = map(index, size)
        except (TypeError, ValueError):
            width = height = 0
        if min(width, height) <= 0:
            raise UsageError(f"size: expected width and height in px, got {reprlib.repr(size)}")
        size = width, height
        if isinstance(intrinsics, Camera):
            return intrinsics.resized(size)
        if intrinsics is None:
            return cls(intrinsics_from_fov(size), False, size)
        try:
            return cls(np.asarray(intrinsics, np.float64), True, size)
        except (TypeError, ValueError) as error:
            raise UsageError(f"intrinsics: expected (3, 3) numbers, got {reprlib.repr(intrinsics)}") from error

    @property
    def fov_degrees(self) -> float:
        """Field of view along the longer image side, in degrees."""
        longer = max(self.size)
        focal = self.matrix[0, 0] if self.size[0] == longer else self.matrix[1, 1]
        return math.degrees(2 * math.atan(longer / 2 / focal))

    @property
    def distorted(self) -> bool:
        """Whether the lens distorts."""
        return self.lens != PINHOLE

    def project(self, points: NDArray[np.floating]) -> F64:
        """Project points (..., 3) m in the camera frame to pixels (..., 2). Points must have z > 0."""
        if not self.distorted:
            return project(points, self.matrix)
        pixels: F64 = self.lens.distort(points[..., :2] / points[..., 2:]) * self._focal + self.matrix[:2, 2]
        return pixels

    def unproject(self, pixels: NDArray[np.floating]) -> F64:
        """Return x and y (..., 2) at z = 1 of the viewing rays of pixels (..., 2)."""
        rays: F64 = (pixels - self.matrix[:2, 2]) / self._focal
        return self.lens.undistort(rays) if self.distorted else rays

    def undistort(self, pixels: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return pixels (..., 2) as a camera with the same matrix and without distortion sees them, of the same type.

        Pixels that are not finite stay as they are.
        """
        if not self.distorted:
            return pixels
        straight = self.unproject(pixels.astype(np.float64)) * self._focal + self.matrix[:2, 2]
        return np.where(np.isfinite(straight), straight, pixels).astype(pixels.dtype)

    @property
    def _focal(self) -> F64:
        """Focal lengths (2,) px along x and y."""
        return self.matrix[[0, 1], [0, 1]]

    @property
    def straight(self) -> "Camera":
        """The same camera without distortion of the lens."""
        return replace(self, lens=PINHOLE)

    def resized(self, size: tuple[int, int]) -> "Camera":
        """Return the camera of images of another size.

        Raises:
            UsageError: If the images are not scaled, or cropped by the padding of an encoder (`size_ratio`).
        """
        if size == self.size:
            return self
        if (ratio := size_ratio(self.size, size)) is None:
            raise UsageError(
                f"intrinsics: are for images of {self.size[0]} x {self.size[1]} px, got {size[0]} x {size[1]}; "
                f"{OTHER_SIZE}"
            )
        matrix = self.matrix.copy()
        matrix[:2] *= ratio
        return replace(self, matrix=matrix, size=size)

    def mirrored(self) -> "Camera":
        """Return the camera of the horizontally mirrored image."""
        matrix = self.matrix.copy()
        matrix[0, 2] = self.size[0] - 1 - matrix[0, 2]
        return replace(self, matrix=matrix)


def size_ratio(made_for: tuple[int, int], size: tuple[int, int]) -> float | None:
    """Return the factor from pixels of images (width, height) to those of another size; None if it is ambiguous.

    It is unambiguous for one aspect ratio, within a pixel, and for the padding of a video encoder: 1 if each side is
    equal, or one of both is the other rounded up to a multiple of `ENCODER_BLOCK_PX`. The padding is at the right and
    at the bottom, so that pixels keep their coordinates.
    """
    ratio = max(size) / max(made_for)
    if all(abs(ratio * a - b) <= min(1.0, 0.005 * b) for a, b in zip(made_for, size, strict=True)):
        return ratio
    padded = [tuple(-(-side // ENCODER_BLOCK_PX) * ENCODER_BLOCK_PX for side in one) for one in (made_for, size)]
    return 1.0 if any(a in (b, p) for a, b, p in ((made_for, size, padded[1]), (size, made_for, padded[0]))) else None


def check_intrinsics(matrix: F64, size: tuple[int, int] | None = None) -> None:
    """Raise ValueError unless `matrix` is a (3, 3) camera matrix without skew and with positive focal lengths.

    `size`, (width, height) px, limits focal lengths and principal point to `MAX_IMAGE_SIZES` longer sides of the image.
    """
    if matrix.shape != (3, 3):
        raise ValueError(f"intrinsics: expected shape (3, 3), got {matrix.shape}")
    focal, rest = matrix[[0, 1], [0, 1]], matrix[[0, 1, 2, 2, 2], [1, 0, 0, 1, 2]]
    if not np.isfinite(matrix).all() or not (focal > 0).all() or not (rest == [0, 0, 0, 0, 1]).all():
        raise ValueError("intrinsics: expected [[fx, 0, cx], [0, fy, cy], [0, 0, 1]] with fx and fy above 0")
    if size is not None and np.abs(matrix[:2]).max() > (most := MAX_IMAGE_SIZES * max(size)):
        raise ValueError(f"intrinsics: above {most:g} px, too much for an image of {size[0]} x {size[1]} px")


def intrinsics_from_fov(image_size: tuple[int, int], fov_degrees: float = ASSUMED_FOV_DEGREES) -> F64:
    """Return the (3, 3) matrix in px for a field of view along the longer side, with square pixels, centred."""
    width, height = image_size
    focal = max(width, height) / 2 / math.tan(math.radians(fov_degrees) / 2)
    return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]], np.float64)


def intrinsics_from_focal(image_size: tuple[int, int], focal_35mm: float) -> F64:
    """Return the (3, 3) matrix in px for a focal length on an image diagonal of 43.27 mm (CIPA DCG-001), centred."""
    width, height = image_size
    focal = focal_35mm * math.hypot(width, height) / FILM_DIAGONAL
    return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]], np.float64)


def project(points: NDArray[np.floating], intrinsics: F64) -> F64:
    """Project points (..., 3) m in the camera frame to pixels (..., 2). Points must have z > 0."""
    focal = np.array([intrinsics[0, 0], intrinsics[1, 1]])
    centre = intrinsics[:2, 2]
    pixels: F64 = points[..., :2] / points[..., 2:] * focal + centre
    return pixels
