"""Path of a device that measures its own motion, such as a phone with ARKit."""

from dataclasses import dataclass

import numpy as np

from pose.structures import rotations
from pose.structures.types import F64

_OPENCV_TO_OPENGL = np.diag([1.0, -1.0, -1.0])
_MAX_STEP_MPS = 30.0  # faster devices lost their position


@dataclass(frozen=True, slots=True, eq=False)
class Odometry:
    """Orientation and position of a camera in N frames."""

    times: F64  # (N,) s, increasing
    rotations: F64  # (N, 3, 3) from the axes of the camera (x right, y down, z forward) to those of the device's world
    positions: F64  # (N, 3) m, centre of the camera in the device's world
    up: F64 | None = None  # (3,) unit vector against gravity in the device's world; None if it has another vertical

    @classmethod
    def of(cls, times: F64, positions: F64, quaternions: F64, opengl: bool = False) -> "Odometry":
        """Make the path of a world with y against gravity.

        Times are (N,) s, positions (N, 3) m, quaternions (N, 4) x, y, z, w. `opengl`: the axes of the camera are those
        of OpenGL and ARKit, x right, y up, z backward. Values that are not finite, times that do not increase, and
        quaternions without a length near 1 are a ValueError.
        """
        if not all(np.isfinite(values).all() for values in (times, positions, quaternions)):
            raise ValueError("poses of the camera must be finite")
        lengths, steps = np.linalg.norm(quaternions, axis=1), np.diff(times)
        if not (np.abs(lengths - 1) < 0.05).all():
            raise ValueError("quaternions of the camera must have length 1")
        if not (steps > 0).all():
            raise ValueError("times of the camera must increase")
        if (np.linalg.norm(np.diff(positions, axis=0), axis=1) > _MAX_STEP_MPS * np.maximum(steps, 0.01)).any():
            raise ValueError("positions of the camera jump")
        turns = rotations.to_matrix(np.roll(quaternions / lengths[:, None], 1, axis=1))
        turns = turns @ _OPENCV_TO_OPENGL if opengl else turns
        return cls(times, turns, positions, np.array([0.0, 1.0, 0.0]))

    def at(self, times: F64) -> tuple[F64, F64]:
        """Return rotations (T, 3, 3) and positions (T, 3) m at times (T,) s; constant before and after the path."""
        if len(self.times) == 1:
            return np.tile(self.rotations, (len(times), 1, 1)), np.tile(self.positions, (len(times), 1))
        left = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self.times) - 2)
        share = np.clip((times - self.times[left]) / (self.times[left + 1] - self.times[left]), 0, 1)[:, None]
        turns = rotations.from_matrix(self.rotations)
        between = rotations.to_matrix(rotations.slerp(turns[left], turns[left + 1], share[:, 0]))
        return between, (1 - share) * self.positions[left] + share * self.positions[left + 1]
