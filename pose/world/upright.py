"""Upright display of people without world coordinates: a causal estimate of the vertical, and the axes of the 3D view.

Results with world positions (`pose.structures.types.Placed`) are displayed as they are. Live results, and result files
of old
versions, may have none. The vertical is then estimated from standing bodies, and each person has its own floor.
"""

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from pose.structures.types import F32, F64, Flags, FrameResult
from pose.world.contacts import ANKLE_HEIGHT
from pose.world.frame import LEVEL_UP, rotation_of
from pose.world.gravity import ANKLES, body_directions

_MAX_TILT_DEGREES = 40.0  # bodies with a larger tilt are lying, or their 3D is wrong
_PRIOR_SECONDS = 1.0  # the prior, a level camera, has the weight of one person seen for this time
_MEMORY_SECONDS = 20.0
_MAX_FLOOR_RISE_MPS = 0.15  # m/s, maximum rise of the floor under a person, for stairs and drifting depth


def upright_bodies(joints: NDArray[np.floating]) -> F64:
    """Return vectors (N, 3) m from the feet to the centre of mass of bodies (P, 17, 3) that may be upright."""
    axes, heights = body_directions(joints)
    result: F64 = (axes * heights[:, None])[axes @ LEVEL_UP > np.cos(np.radians(_MAX_TILT_DEGREES))]
    return result


def mean_up(joints: NDArray[np.floating]) -> F64:
    """Return the mean vector (3,) m from feet to centre of mass of upright bodies; a level camera's without any."""
    axes = upright_bodies(joints)
    return axes.mean(axis=0) if len(axes) else LEVEL_UP


def to_stage(placed: NDArray[np.floating]) -> F32:
    """Convert (..., 3) m in the world to the axes of the 3D view: x right, y away from the camera, z up."""
    return (placed[..., [0, 2, 1]] * [1, -1, 1]).astype(np.float32)


class CausalWorld:
    """Causal placement of people on a horizontal floor."""

    # Each person has its own floor, the lowest position of the feet in the last seconds. Errors of the depth, and with
    # a tilted camera of the height, therefore do not lift people off the floor.

    def __init__(self, up: F64 | None = None) -> None:
        """Start without people; `up` (3,) is the vertical in the camera frame, None estimates it."""
        self._estimates_up = up is None
        self._up = LEVEL_UP * _PRIOR_SECONDS if up is None else up
        self._time: float | None = None
        self._floors: dict[int, tuple[float, float]] = {}  # by id: height of the floor (m), time of the last frame (s)

    def place(self, ids: list[int], joints: NDArray[np.floating], root: NDArray[np.floating], time: float) -> F64:
        """Return the world positions (P, 17, 3) m of people."""
        elapsed = 0.0 if self._time is None else max(0.0, time - self._time)
        self._time = time
        if self._estimates_up:
            memory = np.exp(-elapsed / _MEMORY_SECONDS)
            prior = LEVEL_UP * _PRIOR_SECONDS
            self._up = (self._up - prior) * memory + prior + upright_bodies(joints).sum(axis=0) * elapsed
        placed: F64 = (joints + root[:, None]) @ rotation_of(self._up).T
        lowest = placed[:, ANKLES, 1].min(axis=1) - ANKLE_HEIGHT
        for row, (person, low) in enumerate(zip(ids, lowest.tolist(), strict=True)):
            floor, seen = self._floors.get(person, (low, time))
            floor = min(low, floor + _MAX_FLOOR_RISE_MPS * (time - seen))
            self._floors[person] = floor, time
            placed[row, :, 1] -= floor
        self._floors = {p: (f, t) for p, (f, t) in self._floors.items() if time - t < _MEMORY_SECONDS}
        return placed


class Upright:
    """Positions of people in the 3D view: those in the world of a result, or a `CausalWorld`'s estimates."""

    def __init__(self, up: F64 | None = None) -> None:
        """Start without people; `up` (3,) is the vertical in the camera frame, None estimates it."""
        self._causal = CausalWorld(up)

    def place(self, result: FrameResult, rows: NDArray[np.integer]) -> F32:
        """Return the positions (P, 17, 3) m of some people in the 3D view, without a world by a `CausalWorld`."""
        if result.placed is not None and (not len(rows) or np.isfinite(result.placed.joints[rows]).any()):
            return to_stage(result.placed.joints[rows])
        ids, poses = result.people.ids[rows].tolist(), result.poses
        return to_stage(self._causal.place(ids, poses.joints[rows], poses.root[rows], result.time))


def is_reliable(result: FrameResult, doubtful: Collection[int] = ()) -> Flags:
    """Return (P,) whether the positions of people may set the extent of a 3D view."""
    if result.placed is not None:
        return ~(result.placed.doubtful | result.placed.partial)
    return ~np.isin(result.people.ids, list(doubtful))
