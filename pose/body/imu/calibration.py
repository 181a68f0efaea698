"""SensorCalibration from a standing pose: the mounting of every sensor on its segment, and the person's heading.

While the person stands upright with the arms down, the axes of every segment are those of the person: x to the left,
y up, z forward. The orientation of a sensor at that time is its mounting. The heading, where the person faces in the
earth frame, follows from the motion after it: legs and forearms rotate mainly about the axis from right to left, and
knees and elbows bend in one direction only.
"""

from dataclasses import dataclass

import numpy as np

from pose.errors import PoseError
from pose.structures.rotations import angle_between, dot, inverse, multiply
from pose.structures.types import F64

STILL_DEGREES = 2.0  # a standing person's sensors stay within this angle
STILL_SECONDS = 0.5  # for at least this time
_SEARCH_SECONDS = 60.0  # from the start of the recording
# Pairs of segments whose joint bends about the axis from right to left, with the sign of the bend about it.
_HINGES = tuple(
    (f"{side}_{upper}", f"{side}_{lower}", sign)
    for side in ("left", "right")
    for upper, lower, sign in (("thigh", "shank", 1.0), ("upper_arm", "forearm", -1.0))
)
_MIN_BEND_DEGREES = 10.0  # root mean square over the recording, below which a hinge does not show the heading


@dataclass(frozen=True, slots=True)
class SensorCalibration:
    """Mounting and heading of a recording."""

    start: int  # first frame of the standing pose
    end: int  # the frame after its last
    standing: dict[str, F64]  # (4,) mean orientation of each sensor in the standing pose, by segment
    heading: float  # rad, direction in which the person faces in the earth's horizontal plane, from x to y
    # Standard deviation of the heading in rad between the hinges that show it; NaN if none does or one alone
    heading_spread: float
    heading_known: bool  # False: no hinge bent enough, and the heading is assumed to be 0


def calibrate(
    orientations: dict[str, F64], rate: float, source: str, heading: float | None = None
) -> SensorCalibration:
    """Calibrate sensors, orientations (T, 4) by segment, by the first time at which all of them are still.

    `heading` is in rad, if it is known. A person who does not stand still at the beginning is a PoseError.
    """
    start, end = _still_frames(orientations, rate, source)
    standing = {segment: _mean(q[start:end]) for segment, q in orientations.items()}
    if heading is not None:
        return SensorCalibration(start, end, standing, heading, np.nan, True)
    rotated = {segment: multiply(q, inverse(standing[segment])) for segment, q in orientations.items()}
    axes = [axis for pair in _HINGES if (axis := _hinge_axis(rotated, *pair)) is not None]
    if not axes:
        return SensorCalibration(start, end, standing, 0.0, np.nan, False)
    left = np.sum(axes, axis=0)
    # x left, y up, z forward: forward = left x up.
    found = float(np.arctan2(-left[0], left[1]))
    each = [np.arctan2(-axis[0], axis[1]) for axis in axes]
    differences = np.angle(np.exp(1j * (np.array(each) - found)))
    spread = float(np.sqrt(np.mean(differences**2))) if len(axes) > 1 else np.nan
    return SensorCalibration(start, end, standing, found, spread, True)


def _still_frames(orientations: dict[str, F64], rate: float, source: str) -> tuple[int, int]:
    """Return the range of the first frames in which no sensor turns."""
    frames = len(next(iter(orientations.values())))
    needed = max(int(np.ceil(STILL_SECONDS * rate)), 2)
    limit = min(frames, int(_SEARCH_SECONDS * rate))
    for start in range(0, max(limit - needed + 1, 0), max(needed // 4, 1)):
        end = start + needed
        if all(_is_still(q[start:end]) for q in orientations.values()):
            return start, end
    raise PoseError(
        f"{source}: the sensors are never still for {STILL_SECONDS:g} s in the first {_SEARCH_SECONDS:g} s; "
        "the recording must begin with the person standing upright, arms down"
    )


def _is_still(q: F64) -> bool:
    return bool((angle_between(q[:1], q) < np.radians(STILL_DEGREES)).all())


def _mean(q: F64) -> F64:
    """Return the mean rotation (4,) of quaternions (N, 4): the largest eigenvector of their moment matrix."""
    # Markley, Cheng, Crassidis, Oshman: Averaging Quaternions, 2007.
    vectors: F64 = np.linalg.eigh(q.T @ q)[1]
    return vectors[:, -1]


def _hinge_axis(rotated: dict[str, F64], upper: str, lower: str, sign: float) -> F64 | None:
    """Return the horizontal axis (3,) to the left that a joint bends about; its length is the mean bend in rad."""
    if upper not in rotated or lower not in rotated:
        return None
    bend = _rotation_vectors(multiply(inverse(rotated[upper]), rotated[lower]))
    if np.sqrt(np.mean(dot(bend, bend))) < np.radians(_MIN_BEND_DEGREES):
        return None
    # A knee or an elbow does not bend backwards, so the mean of its rotation vectors points along its axis.
    axis = sign * bend.mean(axis=0)
    axis[2] = 0
    return axis if np.linalg.norm(axis) > 1e-3 else None


def _rotation_vectors(q: F64) -> F64:
    q = np.where(q[..., :1] < 0, -q, q)
    sine = np.sqrt(dot(q[..., 1:], q[..., 1:]))
    angle = 2 * np.arctan2(sine, q[..., 0])
    return q[..., 1:] * (angle / np.maximum(sine, 1e-12))[..., None]
