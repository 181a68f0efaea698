"""The camera's path from a device that measures its own motion, in place of one from the background."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pose.structures.odometry import Odometry
from pose.structures.types import F64, Flags
from pose.world.camera_motion.decision import Decision
from pose.world.camera_motion.path import MAX_BRIDGED_S, CameraPath
from pose.world.camera_motion.verdict import STATIC, TRANSLATING, classify

_SIGMA_RAD = np.radians(0.3)  # of a rotation since the first frame
_DISTANCE_SIGMA = 0.01  # of the length of a path, relative
_STATIC_M = 0.02  # a camera that stays within this distance, and does not turn, is static
_MAX_TILT_DEGREES = 15.0


def device_path(odometry: Odometry, times: F64) -> tuple[CameraPath, F64 | None]:
    """Return the path in m at the times (F,) s of frames, and the direction (3,) against gravity in its axes, if known.

    Frames more than 0.5 s before or after the odometry have an unknown view.
    """
    turns, places = odometry.at(times)
    first = turns[0].T
    away = np.maximum(odometry.times[0] - times, times - odometry.times[-1])
    path = CameraPath(
        times, first @ turns, np.ones(len(times)), np.where(away > MAX_BRIDGED_S, np.nan, _SIGMA_RAD),
        np.zeros(len(times), np.int64), (places - places[0]) @ first.T, metric=True,
    )  # fmt: skip
    return path, None if odometry.up is None else first @ odometry.up


def decide_by_device(path: CameraPath, peopled: Flags) -> Decision:
    """Return the decision to compensate the path of a device, with (F,) whether frames contain people."""
    assert path.positions is not None
    motion = classify(path, [], peopled)
    moves = motion.kind != STATIC or np.ptp(path.positions, axis=0).max() > _STATIC_M
    distance = float(np.linalg.norm(np.diff(path.positions, axis=0), axis=1).sum())
    kind, sigma = TRANSLATING if moves else STATIC, _DISTANCE_SIGMA * distance
    motion = replace(motion, kind=kind, distance=distance, distance_sigma=sigma, scenes=())
    return Decision(motion, path, measured=path)


def contradicts(up: F64, normals: Iterable[F64]) -> bool:
    """Return whether the floor in depth images, whose normals (3,) are in the path's axes, is not level."""
    found = np.array(list(normals)).reshape(-1, 3)
    if not len(found):
        return False
    middle = np.median(found, axis=0)
    return float(np.degrees(np.arccos(np.clip(middle @ up / np.linalg.norm(middle), -1, 1)))) > _MAX_TILT_DEGREES
