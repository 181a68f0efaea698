"""The frame that exported points stand in: named in every file, and turned to the axes that the file wants.

Motion files have y up, right-handed, metres. The camera frame becomes (x, -y, -z), half a turn about x. The world frame
is the world of the result; for a result without one, vertical and floor are estimated from the people.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.spaces import CAMERA, WORLD
from pose.types import F32
from pose.world.floor import ANKLE_HEIGHT
from pose.world.frame import BODIES, FEET, GIVEN, LEVEL_UP, World, rotation_of
from pose.world.gravity import ANKLES
from pose.world.upright import upright_bodies

F64 = NDArray[np.float64]

_FLOOR_SHARE = 2  # per cent of the frames in which feet may be below the floor: a single outlier moves nothing


@dataclass(frozen=True, slots=True)
class Space:
    """A frame for exported points.

    name: 'world' or 'camera'. note: describes it in summaries and files. turn: (3, 3) rotation from the camera's axes
    to y up. floor: height of the floor along y after the rotation, m; it becomes 0.
    """

    name: str
    note: str
    turn: F64
    floor: float = 0.0

    def to_file(self, points: NDArray[np.floating]) -> F64:
        """(..., 3) m in the camera's axes (x right, y down, z forward) to file axes, y up."""
        placed: F64 = points @ self.turn.T
        placed[..., 1] -= self.floor
        return placed

    def to_table(self, points: NDArray[np.floating]) -> NDArray[np.floating]:
        """(..., 3) as tables hold them: in the camera's own axes, the numbers of `poses.npz`, or in the world."""
        return points if self.name == CAMERA else self.to_file(points)

    @property
    def up(self) -> F64:
        """(3,) the vertical in the camera's axes; in the camera frame it is the picture's own."""
        result: F64 = self.turn[1]
        return result


CAMERA_NOTE = "camera frame with y up (x, -y, -z): the image's up, not gravity's (--space world: gravity's)"
CAMERA_SPACE = Space(CAMERA, CAMERA_NOTE, np.diag([1.0, -1.0, -1.0]))


def level_space(bodies: Iterable[tuple[F32, F32]], up: F64 | None = None, said: str = "was given") -> Space:
    """A world estimated from people with joints (N, 17, 3) m and root (N, 3) m, in the camera frame, in portions.

    up: the vertical (3,) in the camera's axes, and `said` where it is from; None takes the mean of their feet-to-centre
    directions. The floor lies under their lowest feet.
    """
    total, feet = np.zeros(3), []
    for joints, root in bodies:
        total += upright_bodies(joints).sum(axis=0)
        feet.append((joints[:, ANKLES] + root[:, None]).reshape(-1, 3))
    if up is None:
        up, said = (total if total.any() else LEVEL_UP), "is that of the people"
    turn = rotation_of(up)
    heights = np.concatenate([np.zeros((0, 3)), *feet]) @ turn[1]
    floor = float(np.percentile(heights, _FLOOR_SHARE)) - ANKLE_HEIGHT if len(heights) else 0.0
    return Space(WORLD, _note(turn, said), turn, floor)


def world_space(world: World) -> Space:
    """The world that a result was put into."""
    return Space(WORLD, _note(world.rotation, where_from(world)), world.rotation, world.floor)


def where_from(world: World) -> str:
    """How its vertical was found, for people."""
    by = {GIVEN: "was given", FEET: "is that of standing feet", BODIES: "is that of the people"}
    return by.get(world.found_by, "is unknown; the camera's is used")


def _note(turn: F64, said: str) -> str:
    tilt = np.degrees(np.arccos(np.clip(turn[1] @ LEVEL_UP, -1, 1)))
    return f"world frame with y up, floor at 0; the vertical, {tilt:.0f} degrees off the camera's, {said}"
