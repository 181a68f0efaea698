"""The world of a static camera: x to the camera's right, y up, z towards the camera, in metres.

The origin is on the floor below the camera.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F64

LEVEL_UP = np.array([0.0, -1.0, 0.0])  # against gravity, in the frame of a level camera

GIVEN, CALIBRATION, LINES, FEET, BODIES, UNKNOWN = "given", "calibration", "lines", "feet", "bodies", "unknown"


@dataclass(frozen=True, slots=True)
class World:
    """Vertical and floor relative to the camera."""

    rotation: F64  # (3, 3), from the camera's axes to the world's
    # Height of the floor along y after the rotation in m, negative if the camera is above it: p_world = rotation @
    # p_camera - (0, floor, 0).
    floor: float
    # Source of the vertical: 'given'; 'calibration' (an axis of a calibration file); 'lines' (straight lines of the
    # background, with people); 'feet' (the plane of standing feet, with bodies); 'bodies' (upright bodies alone); or
    # 'unknown' (the camera is assumed to be level).
    found_by: str
    sigma_degrees: float  # standard deviation of the vertical about each of two horizontal axes; NaN if it is unknown
    floor_known: bool = True  # whether feet determined the floor; otherwise `floor` is 0, the camera's own height
    focal: float = 1.0  # ratio of the focal length to that of the intrinsics; not 1 if people contradict an assumed one
    second_degrees: float = 0.0  # angle between the vertical and that of a second solution; 0 without one
    focal_sigma: float = 0.0  # standard deviation of its logarithm; 0 if the intrinsics are given

    @property
    def up(self) -> F64:
        """Direction (3,) against gravity in the camera's axes."""
        result: F64 = self.rotation[1]
        return result

    @property
    def confidence(self) -> float:
        """The probability that the vertical is correct within 5 degrees; 0 if it is unknown."""
        if self.found_by == UNKNOWN:
            return 0.0
        return float(-np.expm1(-((5.0 / max(self.sigma_degrees, 1e-3)) ** 2) / 2))

    def place(self, points: NDArray[np.floating]) -> F64:
        """Transform points (..., 3) m from the camera's axes to the world."""
        placed: F64 = points @ self.rotation.T
        placed[..., 1] -= self.floor
        return placed

    def to_camera(self, points: NDArray[np.floating]) -> F64:
        """Transform points (..., 3) m from the world to the camera's axes: the inverse of `place`."""
        lifted = np.array(points, np.float64)
        lifted[..., 1] += self.floor
        back: F64 = lifted @ self.rotation
        return back


def rotation_of(up: NDArray[np.floating]) -> F64:
    """Return the rotation (3, 3) from the camera's axes to the world's."""
    a, b, c = (float(part) for part in up)
    size = math.sqrt(a * a + b * b + c * c)
    a, b, c = a / size, b / size, c / size
    level = math.hypot(a, b)  # length of the horizontal component of the viewing direction
    if level < 1e-6:
        z = np.array([0.0, 1.0, 0.0])
        z -= b * np.array([a, b, c])
        z /= np.linalg.norm(z)
        return np.stack([np.cross([a, b, c], z), [a, b, c], z])
    p, q, r = a * c / level, b * c / level, -level  # minus the horizontal component of the viewing direction
    return np.array([[b * r - c * q, c * p - a * r, a * q - b * p], [a, b, c], [p, q, r]])


def up_of(pitch: float, roll: float) -> F64:
    """Return the direction (3,) against gravity in camera axes, for the pitch (up) and clockwise roll in degrees."""
    a, b = np.radians([pitch, roll])
    return np.array([-np.sin(b) * np.cos(a), -np.cos(b) * np.cos(a), np.sin(a)])
