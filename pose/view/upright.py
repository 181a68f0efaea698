"""From the camera's frame to a stage that stands upright: x right, y away from the camera, z up, metres.

One camera does not know where down is. But whoever stands or walks keeps the centre of mass above the feet, so the mean
of many (centre - feet) directions is close to the vertical; until there are some, the camera counts as level.
"""

import numpy as np
from numpy.typing import NDArray

from pose.skeletons import H36M17
from pose.types import F32

F64 = NDArray[np.float64]

LEVEL = np.array([0.0, -1.0, 0.0])  # up, for a camera held level
ANKLES = [H36M17.index("left_ankle"), H36M17.index("right_ankle")]
ANKLE_HEIGHT = 0.08  # m above the floor, standing

_MOST_TILT_DEGREES = 40.0  # a body that leans more is lying, or its 3D is wrong: it says nothing of the vertical
_PRIOR_SECONDS = 1.0  # how long one person must be seen to weigh as much as the belief in a level camera
_MEMORY_SECONDS = 20.0
_FLOOR_RISE = 0.15  # m/s; how fast the floor under a person follows upwards (stairs, drifting depth)


def stage_rotation(up: F64) -> F64:
    """(3, 3) that takes camera coordinates to the stage, for the direction `up` (3,) in the camera frame."""
    z = up / np.linalg.norm(up)
    forward = np.array([0.0, 0.0, 1.0])
    y = forward - forward @ z * z
    y /= np.linalg.norm(y)
    return np.stack([np.cross(y, z), y, z])


def body_axes(joints: F32) -> F64:
    """Feet-to-centre vectors, m, of those of the P bodies (P, 17, 3) that may stand upright: (at most P, 3)."""
    axes = (joints.mean(axis=1) - joints[:, ANKLES].mean(axis=1)).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = axes @ LEVEL / np.linalg.norm(axes, axis=1)
    return axes[cosine > np.cos(np.radians(_MOST_TILT_DEGREES))]


def mean_up(joints: F32) -> F64:
    """The vertical (3,) in the camera frame that many bodies (N, 17, 3) show together; the camera's own without any."""
    axes = body_axes(joints)
    return axes.mean(axis=0) if len(axes) else LEVEL


class Upright:
    """Sets the people of frame after frame on a level floor, causally.

    Each person has a floor of its own, the lowest place of the feet in the last seconds, so that nobody floats when the
    depth, and with a tilted camera the height, is off.
    """

    def __init__(self, up: F64 | None = None) -> None:
        """up: the vertical (3,) in the camera frame where it is known, say from `mean_up`; else it is learnt."""
        self._learn = up is None
        self._up = LEVEL * _PRIOR_SECONDS if up is None else up
        self._time: float | None = None
        self._floors: dict[int, tuple[float, float]] = {}  # id: height of the floor, when it was last seen

    def place(self, ids: list[int], joints: F32, root: F32, time: float) -> F32:
        """(P, 17, 3) stage coordinates of people with joints (P, 17, 3) m and root (P, 3) m in the camera frame."""
        elapsed = 0.0 if self._time is None else max(0.0, time - self._time)
        self._time = time
        if self._learn:
            memory = np.exp(-elapsed / _MEMORY_SECONDS)
            prior = LEVEL * _PRIOR_SECONDS
            self._up = (self._up - prior) * memory + prior + body_axes(joints).sum(axis=0) * elapsed
        placed = (joints + root[:, None]) @ stage_rotation(self._up).T
        lowest = placed[:, ANKLES, 2].min(axis=1) - ANKLE_HEIGHT
        for row, (person, low) in enumerate(zip(ids, lowest.tolist(), strict=True)):
            floor, seen = self._floors.get(person, (low, time))
            floor = min(low, floor + _FLOOR_RISE * (time - seen))
            self._floors[person] = floor, time
            placed[row, :, 2] -= floor
        self._floors = {p: (f, t) for p, (f, t) in self._floors.items() if time - t < _MEMORY_SECONDS}
        return placed.astype(np.float32)
