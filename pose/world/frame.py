"""The world of a fixed camera: x to its right, y up, z towards it, metres; the origin lies on the floor below it."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

LEVEL_UP = np.array([0.0, -1.0, 0.0])  # against gravity, in the frame of a camera that is held level

GIVEN, FEET, BODIES, UNKNOWN = "given", "feet", "bodies", "unknown"


@dataclass(frozen=True, slots=True)
class World:
    """Where the floor is, seen from the camera.

    rotation: (3, 3), from the camera's axes to the world's. floor: m, the floor's height along y after the rotation,
    below 0 where the camera stands above it: p_world = rotation @ p_camera - (0, floor, 0). found_by: how the vertical
    was found, 'given', 'feet' (the plane they stand on, with 'bodies'), 'bodies' (that stand upright) or 'unknown':
    then the camera counts as level. sigma_degrees: of the vertical in each of the two directions in which it may err;
    NaN where it is unknown. floor_known: False where nobody's feet told of it; then it is 0, the camera's own height.
    """

    rotation: F64
    floor: float
    found_by: str
    sigma_degrees: float
    floor_known: bool = True

    @property
    def up(self) -> F64:
        """(3,) against gravity, in the camera's axes."""
        result: F64 = self.rotation[1]
        return result

    @property
    def confidence(self) -> float:
        """The probability that the vertical is right within 5 degrees; 0 where it is unknown."""
        if self.found_by == UNKNOWN:
            return 0.0
        return float(-np.expm1(-((5.0 / max(self.sigma_degrees, 1e-3)) ** 2) / 2))

    def place(self, points: NDArray[np.floating]) -> F64:
        """(..., 3) m in the camera's axes to the world."""
        placed: F64 = points @ self.rotation.T
        placed[..., 1] -= self.floor
        return placed

    def to_camera(self, points: NDArray[np.floating]) -> F64:
        """The inverse of `place`."""
        lifted = np.array(points, np.float64)
        lifted[..., 1] += self.floor
        back: F64 = lifted @ self.rotation
        return back


def rotation_of(up: NDArray[np.floating]) -> F64:
    """(3, 3) from the camera's axes to the world's, for the direction `up` (3,) in the camera's axes.

    A camera that looks straight up or down has no forward on the floor; its picture's lower edge is taken instead.
    """
    a, b, c = (float(part) for part in up)
    size = math.sqrt(a * a + b * b + c * c)
    a, b, c = a / size, b / size, c / size
    level = math.hypot(a, b)  # how much of the view lies on the floor
    if level < 1e-6:
        z = np.array([0.0, 1.0, 0.0])
        z -= b * np.array([a, b, c])
        z /= np.linalg.norm(z)
        return np.stack([np.cross([a, b, c], z), [a, b, c], z])
    p, q, r = a * c / level, b * c / level, -level  # -(forward - its part along the vertical)
    return np.array([[b * r - c * q, c * p - a * r, a * q - b * p], [a, b, c], [p, q, r]])


def up_of(pitch: float, roll: float) -> F64:
    """(3,) against gravity in the axes of a camera that looks `pitch` degrees above the horizon and is turned `roll`
    degrees clockwise about its view, as its holder sees it.
    """
    a, b = np.radians([pitch, roll])
    return np.array([-np.sin(b) * np.cos(a), -np.cos(b) * np.cos(a), np.sin(a)])
