"""The coordinate frame of exported points. Every exported file names its frame.

File axes are right-handed with y up, in metres. The camera frame becomes (x, -y, -z), a half-turn about x. The world
frame is that of the result; for a result without world coordinates, vertical and floor are estimated from the people.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pose.structures.defaults import CAMERA, WORLD
from pose.structures.types import F32, F64
from pose.world.contacts import ANKLE_HEIGHT
from pose.world.frame import BODIES, CALIBRATION, FEET, GIVEN, LEVEL_UP, LINES, World, rotation_of
from pose.world.gravity import ANKLES
from pose.world.upright import upright_bodies

# Sources of the vertical, for notes.
AS_GIVEN, _FROM_BODIES = "as given", "from upright bodies"
_SOURCES = {
    GIVEN: AS_GIVEN, CALIBRATION: "from the calibration", LINES: "from straight lines", FEET: "from standing feet",
    BODIES: _FROM_BODIES,
}  # fmt: skip
_FLOOR_PERCENTILE = (
    2  # percentile of the heights of feet that defines the floor; the minimum would be sensitive to outliers
)


@dataclass(frozen=True, slots=True)
class Space:
    """A coordinate frame for exported points."""

    name: str  # 'world' or 'camera'
    note: str  # description in summaries and files
    rotation: F64  # (3, 3) rotation from camera axes (x right, y down, z forward) to file axes (y up)
    # Height of the floor along y after the rotation, m. `to_file` subtracts it, so that the floor is at 0.
    floor: float = 0.0

    def to_file(self, points: NDArray[np.floating]) -> F64:
        """Convert points (..., 3) m in camera axes (x right, y down, z forward) to file axes (y up, floor at 0)."""
        placed: F64 = points @ self.rotation.T
        placed[..., 1] -= self.floor
        return placed

    def to_table(self, points: NDArray[np.floating]) -> NDArray[np.floating]:
        """Convert points (..., 3) m in camera axes to those of tables: the camera's, or y up and the floor at y = 0."""
        return points if self.name == CAMERA else self.to_file(points)

    @property
    def up(self) -> F64:
        """Unit vector (3,) upward in camera axes (x right, y down, z forward); in the camera frame, up in the image."""
        result: F64 = self.rotation[1]
        return result


def z_upward(points: F64) -> F64:
    """Rotate points (..., 3) with y up so that z is up, and y points away from the viewer of x and z."""
    return np.stack([points[..., 0], -points[..., 2], points[..., 1]], axis=-1)


_CAMERA_NOTE = "camera frame with y up (x, -y, -z), not aligned with gravity"
CAMERA_SPACE = Space(CAMERA, f"{_CAMERA_NOTE}; --space world aligns it", np.diag([1.0, -1.0, -1.0]))


def camera_space(without_world: str) -> Space:
    """Return the camera frame. Its note gives the reason why there is no world, or the option that selects it."""
    return replace(CAMERA_SPACE, note=f"{_CAMERA_NOTE}: {without_world}") if without_world else CAMERA_SPACE


def level_space(bodies: Iterable[tuple[F32, F32]], up: F64 | None = None, source: str = AS_GIVEN) -> Space:
    """Estimate a world frame from people, with the floor at their lowest feet; without `up` from their centres."""
    total, feet = np.zeros(3), []
    for joints, root in bodies:
        total += upright_bodies(joints).sum(axis=0)
        feet.append((joints[:, ANKLES] + root[:, None]).reshape(-1, 3))
    if up is None:
        up, source = (total, _FROM_BODIES) if total.any() else (LEVEL_UP, "")
    rotation = rotation_of(up)
    heights = np.concatenate([np.zeros((0, 3)), *feet]) @ rotation[1]
    floor = float(np.percentile(heights, _FLOOR_PERCENTILE)) - ANKLE_HEIGHT if len(heights) else 0.0
    return Space(WORLD, _note(rotation, source), rotation, floor)


def world_space(world: World) -> Space:
    """Return the coordinate frame of a result with world coordinates."""
    return Space(WORLD, _note(world.rotation, source_of_vertical(world)), world.rotation, world.floor)


def source_of_vertical(world: World) -> str:
    """Return the source of the vertical of world coordinates as text; empty if gravity is unknown."""
    return _SOURCES.get(world.found_by, "")


def _note(rotation: F64, source: str) -> str:
    frame = "world frame with y up, floor at 0"
    if not source:
        return f"{frame}; gravity is unknown, so the camera counts as level"
    tilt = np.degrees(np.arccos(np.clip(rotation[1] @ LEVEL_UP, -1, 1)))
    return f"{frame}; the vertical ({source}) is {tilt:.0f} degrees from the camera's"
