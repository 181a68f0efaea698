"""The skeleton that a sensor delivers, in joints of Human3.6M-17."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from pose.errors import PoseError
from pose.structures.skeletons import H36M17
from pose.structures.types import F64

MAX_FRAMES = 2_000_000
MAX_DISTANCE_M = 1000.0  # of a joint from the origin
SOURCES = {"kinect": 35.0, "azure": 35.0, "suit": 25.0, "markers": 15.0}  # mm, sigma of a joint about the pelvis


@dataclass(frozen=True, slots=True)
class SensorSkeleton:
    """Motion of one person from a depth camera or a suit, in T frames."""

    times: F64  # (T,) s, increasing
    joints: F64  # (T, 17, 3) m, joints of Human3.6M-17: x to the left of a person who faces z, y up. NaN where missing.
    scores: F64  # (T, 17) from 0 (missing) to 1 (seen); inferred joints are between
    kind: str  # kind of sensor, a key of `SOURCES`
    source: str  # name of the file, for messages

    @classmethod
    def of(cls, times: F64, joints: F64, scores: F64 | None, kind: str, source: str) -> Self:
        """Sort frames, drop equal times, and check; PoseError for less than two frames or bad values."""
        if len(times) > MAX_FRAMES:
            raise PoseError(f"{source}: {len(times)} frames; at most {MAX_FRAMES} are read")
        if not np.isfinite(times).all() or (len(times) and np.abs(times).max() > 1e12):
            raise PoseError(f"{source}: a time is not a number")
        times, first = np.unique(times, return_index=True)
        joints = joints[first]
        seen = np.isfinite(joints).all(axis=-1)
        marks: F64 = np.array(seen, np.float64)
        if scores is not None:
            marks *= scores[first]
        if len(times) < 2 or not (marks > 0).any():
            raise PoseError(f"{source}: fewer than two frames with a person")
        if np.abs(joints[seen]).max() > MAX_DISTANCE_M:
            raise PoseError(f"{source}: joints beyond {MAX_DISTANCE_M:g} m; is the unit of length right?")
        return cls(times, np.where(marks[..., None] > 0, joints, np.nan), marks, kind, source)


def arranged(names: list[str], points: F64, roles: dict[str, str | tuple[str, ...]], source: str) -> F64:
    """Return (T, 17, 3), each the mean of the points that `roles` names; PoseError for a missing name."""
    place = {name: at for at, name in enumerate(names)}
    columns = []
    for joint in H36M17.names:
        wanted = roles[joint]
        wanted = (wanted,) if isinstance(wanted, str) else wanted
        if missing := [name for name in wanted if name not in place]:
            raise PoseError(f"{source}: the joint {missing[0]!r} is missing")
        columns.append(points[:, [place[name] for name in wanted]].mean(axis=1))
    return np.stack(columns, axis=1)
