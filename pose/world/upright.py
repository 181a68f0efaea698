"""Upright without a future: the world as the frames so far tell it, and the stage that pictures are drawn on.

Who looks at a result whose people are placed (`pose.types.Placed`) gets them where they are; live, and in files of
before there was a world, the vertical is learnt from bodies that stand, and each person has a floor of its own.
"""

import numpy as np
from numpy.typing import NDArray

from pose.types import F32, FrameResult
from pose.world.floor import ANKLE_HEIGHT
from pose.world.frame import LEVEL_UP, rotation_of
from pose.world.gravity import ANKLES, body_directions

F64 = NDArray[np.float64]

_MOST_TILT_DEGREES = 40.0  # a body that leans more is lying, or its 3D is wrong: it says nothing of the vertical
_PRIOR_SECONDS = 1.0  # how long one person must be seen to weigh as much as the belief in a level camera
_MEMORY_SECONDS = 20.0
_FLOOR_RISE = 0.15  # m/s; how fast the floor under a person follows upwards (stairs, drifting depth)


def upright_bodies(joints: NDArray[np.floating]) -> F64:
    """Directions of those of the bodies (P, 17, 3) m that may stand upright: (at most P, 3), as long as they are."""
    axes, heights = body_directions(joints)
    result: F64 = (axes * heights[:, None])[axes @ LEVEL_UP > np.cos(np.radians(_MOST_TILT_DEGREES))]
    return result


def mean_up(joints: NDArray[np.floating]) -> F64:
    """The vertical (3,) in the camera frame that many bodies (N, 17, 3) show together; the camera's own without any."""
    axes = upright_bodies(joints)
    return axes.mean(axis=0) if len(axes) else LEVEL_UP


def to_stage(placed: NDArray[np.floating]) -> F32:
    """(..., 3) m in the world to the stage: x right, y away from the camera, z up."""
    return (placed[..., [0, 2, 1]] * [1, -1, 1]).astype(np.float32)


class CausalWorld:
    """Sets the people of frame after frame on a level floor, causally.

    Each person has a floor of its own, the lowest place of the feet in the last seconds, so that nobody floats when the
    depth, and with a tilted camera the height, is off.
    """

    def __init__(self, up: F64 | None = None) -> None:
        """up: the vertical (3,) in the camera frame where it is known, say from `mean_up`; else it is learnt."""
        self._learn = up is None
        self._up = LEVEL_UP * _PRIOR_SECONDS if up is None else up
        self._time: float | None = None
        self._floors: dict[int, tuple[float, float]] = {}  # id: height of the floor, when it was last seen

    def place(self, ids: list[int], joints: NDArray[np.floating], root: NDArray[np.floating], time: float) -> F64:
        """(P, 17, 3) m in the world of people with joints (P, 17, 3) m and root (P, 3) m in the camera frame."""
        elapsed = 0.0 if self._time is None else max(0.0, time - self._time)
        self._time = time
        if self._learn:
            memory = np.exp(-elapsed / _MEMORY_SECONDS)
            prior = LEVEL_UP * _PRIOR_SECONDS
            self._up = (self._up - prior) * memory + prior + upright_bodies(joints).sum(axis=0) * elapsed
        placed: F64 = (joints + root[:, None]) @ rotation_of(self._up).T
        lowest = placed[:, ANKLES, 1].min(axis=1) - ANKLE_HEIGHT
        for row, (person, low) in enumerate(zip(ids, lowest.tolist(), strict=True)):
            floor, seen = self._floors.get(person, (low, time))
            floor = min(low, floor + _FLOOR_RISE * (time - seen))
            self._floors[person] = floor, time
            placed[row, :, 1] -= floor
        self._floors = {p: (f, t) for p, (f, t) in self._floors.items() if time - t < _MEMORY_SECONDS}
        return placed


class Upright:
    """People on the stage, frame after frame: where their result says they are, else as a `CausalWorld` has them."""

    def __init__(self, up: F64 | None = None) -> None:
        """up: as in `CausalWorld`."""
        self._causal = CausalWorld(up)

    def place(self, result: FrameResult, rows: NDArray[np.integer]) -> F32:
        """(P, 17, 3) m on the stage of the people in these rows of a result."""
        if result.placed is not None:
            return to_stage(result.placed.joints[rows])
        ids, poses = result.people.ids[rows].tolist(), result.poses
        return to_stage(self._causal.place(ids, poses.joints[rows], poses.root[rows], result.time))
