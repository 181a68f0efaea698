"""Cameras and projection. Camera frame: x right, y down, z forward; metres. Pixels: (0, 0) is a pixel's centre."""

import math

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

# Without calibration the longer side of the picture is taken to span this angle. Phones and webcams lie between 55
# and 80 degrees, film lenses below; the error made is one of scale and distance, and the output states the assumption.
ASSUMED_FOV_DEGREES = 55.0


def intrinsics_from_fov(image_size: tuple[int, int], fov_degrees: float = ASSUMED_FOV_DEGREES) -> F64:
    """(3, 3) pinhole matrix of a camera whose longer image side spans `fov_degrees`.

    image_size: (width, height) px. Square pixels, principal point in the middle.
    """
    width, height = image_size
    focal = max(width, height) / 2 / math.tan(math.radians(fov_degrees) / 2)
    return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]], np.float64)


def project(points: NDArray[np.floating], intrinsics: F64) -> F64:
    """Pinhole projection of (..., 3) m in the camera frame to (..., 2) px. Points must have z > 0."""
    focal = np.array([intrinsics[0, 0], intrinsics[1, 1]])
    centre = intrinsics[:2, 2]
    return points[..., :2] / points[..., 2:] * focal + centre


def normalize_pixels(pixels: NDArray[np.floating], intrinsics: F64) -> F64:
    """(..., 2) px to (..., 2) camera-normalised coordinates: the point where the ray crosses the plane z = 1."""
    focal = np.array([intrinsics[0, 0], intrinsics[1, 1]])
    centre = intrinsics[:2, 2]
    return (pixels - centre) / focal
