"""Skeleton and joint angles of a person who wears inertial sensors, without a video.

World axes are those of the exports: x to the left of the person in the standing pose, y up, z forward, in m. Bone
lengths follow from the body height by the ratios of Drillis and Contini, as printed by Winter (Biomechanics and Motor
Control of Human Movement, 4th edition, 2009, figure 4.1). The position follows from the foot on the floor, which does
not move.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pose.body.imu.calibration import SensorCalibration, calibrate
from pose.body.imu.recording import SEGMENTS, ImuRecording
from pose.structures.rotations import euler, from_matrix, inverse, multiply, rotate
from pose.structures.skeletons import H36M17
from pose.structures.types import F64

DEFAULT_RATE = 30.0  # frames/s of the skeleton
ORIENTATION_SD_DEGREES = 3.0  # of a segment about each axis: soft tissue under the sensor, and the standing pose
FREE_SD_DEGREES = 45.0  # of a segment without a sensor

# Each bone: joint at its end, joint at its start, segment that it turns with, and vector in body heights in the axes of
# the standing pose, for the left side.
_BONES: tuple[tuple[str, str, str, tuple[float, float, float]], ...] = (
    ("hip", "pelvis", "pelvis", (0.0955, 0.0, 0.0)),
    ("knee", "hip", "thigh", (0.0, -0.245, 0.0)),
    ("ankle", "knee", "shank", (0.0, -0.246, 0.0)),
    ("spine", "pelvis", "pelvis", (0.0, 0.144, 0.0)),
    ("thorax", "spine", "trunk", (0.0, 0.144, 0.0)),
    ("neck", "thorax", "trunk", (0.0, 0.052, 0.0)),
    ("head", "neck", "head", (0.0, 0.130, 0.0)),
    ("shoulder", "thorax", "trunk", (0.129, 0.0, 0.0)),
    ("elbow", "shoulder", "upper_arm", (0.0, -0.186, 0.0)),
    ("wrist", "elbow", "forearm", (0.0, -0.146, 0.0)),
)
_SOLE = ((0.0, -0.039, -0.04), (0.0, -0.039, 0.112))  # heel and toe from the ankle, in body heights
# Joint angles: name, segment, sign of the rotation about each axis, and the axis. The rotation of a segment relative to
# its parent is divided as by Grood and Suntay (1983): first about x, then about z, last about y.
_X, _Z, _Y = 0, 1, 2
_ANGLES: tuple[tuple[str, str, int, float, bool], ...] = (
    ("hip_flexion", "thigh", _X, -1.0, False),
    ("hip_abduction", "thigh", _Z, 1.0, True),
    ("hip_rotation", "thigh", _Y, -1.0, True),
    ("knee_flexion", "shank", _X, 1.0, False),
    ("ankle_flexion", "foot", _X, -1.0, False),
    ("shoulder_flexion", "upper_arm", _X, -1.0, False),
    ("shoulder_abduction", "upper_arm", _Z, 1.0, True),
    ("elbow_flexion", "forearm", _X, -1.0, False),
)


@dataclass(frozen=True, slots=True)
class ImuMotion:
    """The motion of one person in T frames."""

    times: F64  # (T,) s of the recording
    joints: F64  # (T, 17, 3) m, joints of Human3.6M-17; the floor is at y = 0
    contacts: F64  # (T, 2) 1 where the left or right foot carries the person, else 0
    sigma: F64  # (17,) mm, radius around each joint, relative to the pelvis, that contains it with 68 %
    sensors: tuple[tuple[str, ...], ...]  # for each joint, the segments with a sensor that its position depends on
    angles: dict[str, F64]  # (T,) degrees, by name such as "left_knee_flexion"; joints between two sensors only
    orientations: dict[str, F64]  # (T, 4) (w, x, y, z) of each segment with a sensor; identity in the standing pose
    calibration: SensorCalibration


def solve_imus(
    recording: ImuRecording, height: float = 1.7, rate: float = DEFAULT_RATE, heading: float | None = None
) -> ImuMotion:
    """Compute the motion of a person of a height in m from sensors, at `rate` Hz.

    The recording must begin with the person standing upright and still, arms down (else PoseError). `heading` is the
    direction in which the person then faces, in rad from the earth's x axis to its y axis; by default it follows from
    the axes about which knees and elbows bend. Joints of segments without sensors stay as in this pose.
    """
    times = recording.common_times(rate)
    raw = recording.orientations(times)
    calibration = calibrate(raw, rate, recording.source, heading)
    to_world = _world_from_earth(calibration.heading)
    turned = {
        segment: multiply(multiply(to_world, multiply(q, inverse(calibration.standing[segment]))), inverse(to_world))
        for segment, q in raw.items()
    }
    complete = _with_missing_segments(turned, len(times))
    joints, lowest = _positions(complete, height)
    return ImuMotion(
        times,
        joints,
        np.stack([lowest < len(_SOLE), lowest >= len(_SOLE)], axis=1).astype(np.float64),
        np.array([_sigma(name, turned, height) for name in H36M17.names]),
        tuple(tuple(s for s, _ in _chain(name) if s in turned) for name in H36M17.names),
        _joint_angles(turned),
        turned,
        calibration,
    )


def _world_from_earth(heading: float) -> F64:
    """Return the rotation (4,) from the earth frame (z up) to world axes (x left, y up, z forward)."""
    cosine, sine = np.cos(heading), np.sin(heading)
    return from_matrix(np.array([[-sine, cosine, 0.0], [0.0, 0.0, 1.0], [cosine, sine, 0.0]]))


def _with_missing_segments(turned: dict[str, F64], frames: int) -> dict[str, F64]:
    """Return the orientations of all segments; one without a sensor turns with its parent."""
    complete: dict[str, F64] = {}
    # Without a sensor on the pelvis, it turns as the trunk does.
    root = turned.get("pelvis", turned.get("trunk", np.tile([1.0, 0, 0, 0], (frames, 1))))
    for segment, parent in SEGMENTS.items():
        complete[segment] = turned.get(segment, complete[parent] if parent else root)
    return complete


def _named(joint: str) -> tuple[str, str, str, F64] | None:
    """Return the bone that ends at a joint: its end, start, segment and vector in body heights."""
    side = joint.split("_")[0] if "_" in joint else ""
    for end, start, segment, vector in _BONES:
        if joint == (f"{side}_{end}" if side else end):
            start = f"{side}_{start}" if start in ("hip", "knee", "shoulder", "elbow") else start
            segment = f"{side}_{segment}" if f"{side}_{segment}" in SEGMENTS else segment
            return joint, start, segment, np.array(vector) * ([-1, 1, 1] if side == "right" else [1, 1, 1])
    return None


def _chain(joint: str) -> list[tuple[str, F64]]:
    """Return the segment and vector in body heights of each bone between the pelvis and a joint."""
    chain = []
    while (bone := _named(joint)) is not None:
        _, joint, segment, vector = bone
        chain.append((segment, vector))
    return chain[::-1]


def _positions(orientations: dict[str, F64], height: float) -> tuple[F64, NDArray[np.int64]]:
    """Return joints (T, 17, 3) m in the world, and the lowest of the points of the soles, which does not slide."""
    frames = len(next(iter(orientations.values())))
    joints = np.zeros((frames, len(H36M17.names), 3))
    for at, name in enumerate(H36M17.names):
        for segment, vector in _chain(name):
            joints[:, at] += rotate(orientations[segment], vector * height)
    soles = np.stack(
        [
            joints[:, H36M17.index(f"{side}_ankle")] + rotate(orientations[f"{side}_foot"], np.array(point) * height)
            for side in ("left", "right")
            for point in _SOLE
        ],
        axis=1,
    )
    lowest = soles[..., 1].argmin(axis=1)
    return joints + _root_path(soles, lowest)[:, None], lowest


def _root_path(soles: F64, lowest: NDArray[np.int64]) -> F64:
    """Return the path (T, 3) of the pelvis for which the lowest point of the soles (T, 4, 3) is fixed on the floor."""
    frames = np.arange(len(soles))
    path = np.zeros((len(soles), 3))
    # From one frame to the next, the point that was lowest stays where it is.
    path[1:] = np.cumsum(soles[frames[:-1], lowest[:-1]] - soles[frames[1:], lowest[:-1]], axis=0)
    path[:, 1] = -soles[frames, lowest, 1]
    return path


def _sigma(joint: str, turned: dict[str, F64], height: float) -> float:
    """Return the 68 % radius in mm of a joint relative to the pelvis, from the errors of the orientations above it."""
    variance = 0.0
    for segment, vector in _chain(joint):
        degrees = ORIENTATION_SD_DEGREES if segment in turned else FREE_SD_DEGREES
        # An error of the orientation moves the end of the bone along two axes.
        variance += 2 * (np.linalg.norm(vector) * height * np.radians(degrees)) ** 2
    return float(1000 * np.sqrt(1.14 * variance))


def _joint_angles(turned: dict[str, F64]) -> dict[str, F64]:
    """Return the angles (T,) in degrees of each joint between two segments with sensors."""
    angles: dict[str, F64] = {}
    for side in ("left", "right"):
        for name, part, axis, sign, mirrored in _ANGLES:
            segment = f"{side}_{part}"
            parent = SEGMENTS[segment]
            if segment in turned and parent in turned:
                relative = euler(multiply(inverse(turned[parent]), turned[segment]), "xzy")[:, axis]
                flip = -1.0 if mirrored and side == "right" else 1.0
                angles[f"{side}_{name}"] = np.degrees(relative) * sign * flip
    return angles
