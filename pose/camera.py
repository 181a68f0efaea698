"""Cameras and projection. Camera frame: x right, y down, z forward; metres. Pixels: (0, 0) is the centre of a pixel."""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

# Assumed angle of the longer image side without calibration. Phones and webcams have 55 to 80 degrees, film lenses
# less. The error affects scale and distance; results name the assumption.
ASSUMED_FOV_DEGREES = 55.0
FILM_DIAGONAL = math.hypot(36, 24)  # mm


@dataclass(frozen=True, slots=True, eq=False)
class Camera:
    """A pinhole camera.

    Attributes:
        matrix: (3, 3) intrinsics in px.
        known: False if they follow from the assumed field of view; sizes and distances depend on that assumption.
        size: (width, height) of the images in px.
    """

    matrix: F64
    known: bool
    size: tuple[int, int]

    def __post_init__(self) -> None:
        if self.matrix.shape != (3, 3):
            raise ValueError(f"intrinsics: expected shape (3, 3), got {self.matrix.shape}")

    @classmethod
    def of(cls, size: tuple[int, int], intrinsics: F64 | None = None) -> Self:
        """Make the camera of images of (width, height) px.

        Args:
            intrinsics: (3, 3) px; None assumes a field of view.
        """
        if intrinsics is None:
            return cls(intrinsics_from_fov(size), False, size)
        return cls(np.asarray(intrinsics, np.float64), True, size)

    @property
    def fov_degrees(self) -> float:
        """Field of view along the longer image side."""
        longer = max(self.size)
        focal = self.matrix[0, 0] if self.size[0] == longer else self.matrix[1, 1]
        return math.degrees(2 * math.atan(longer / 2 / focal))

    def mirrored(self) -> "Camera":
        """The camera of the mirrored image."""
        matrix = self.matrix.copy()
        matrix[0, 2] = self.size[0] - 1 - matrix[0, 2]
        return Camera(matrix, self.known, self.size)


def check_intrinsics(matrix: F64) -> None:
    """Raises ValueError unless `matrix` is (3, 3) and a pinhole camera without skew."""
    if matrix.shape != (3, 3):
        raise ValueError(f"intrinsics: expected shape (3, 3), got {matrix.shape}")
    focal, rest = matrix[[0, 1], [0, 1]], matrix[[0, 1, 2, 2, 2], [1, 0, 0, 1, 2]]
    if not np.isfinite(matrix).all() or not (focal > 0).all() or not (rest == [0, 0, 0, 0, 1]).all():
        raise ValueError("intrinsics: expected [[fx, 0, cx], [0, fy, cy], [0, 0, 1]] with fx and fy above 0")


def intrinsics_from_fov(image_size: tuple[int, int], fov_degrees: float = ASSUMED_FOV_DEGREES) -> F64:
    """(3, 3) pinhole matrix of a camera whose longer image side spans `fov_degrees`.

    Args:
        image_size: (width, height) px. Square pixels, principal point in the middle.
    """
    width, height = image_size
    focal = max(width, height) / 2 / math.tan(math.radians(fov_degrees) / 2)
    return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]], np.float64)


def intrinsics_from_focal(image_size: tuple[int, int], focal_35mm: float) -> F64:
    """(3, 3) pinhole matrix for a 35 mm equivalent focal length in mm, whose image diagonal is 43.27 mm (CIPA DCG-001).

    Args:
        image_size: (width, height) px. Square pixels, principal point in the middle.
    """
    width, height = image_size
    focal = focal_35mm * math.hypot(width, height) / FILM_DIAGONAL
    return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]], np.float64)


def project(points: NDArray[np.floating], intrinsics: F64) -> F64:
    """Pinhole projection of (..., 3) m in the camera frame to (..., 2) px. Points must have z > 0."""
    focal = np.array([intrinsics[0, 0], intrinsics[1, 1]])
    centre = intrinsics[:2, 2]
    pixels: F64 = points[..., :2] / points[..., 2:] * focal + centre
    return pixels


def normalize_pixels(pixels: NDArray[np.floating], intrinsics: F64) -> F64:
    """(..., 2) px to (..., 2) camera-normalised coordinates: the point where the ray crosses the plane z = 1."""
    focal = np.array([intrinsics[0, 0], intrinsics[1, 1]])
    centre = intrinsics[:2, 2]
    rays: F64 = (pixels - centre) / focal
    return rays
