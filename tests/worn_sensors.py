"""Inertial sensors on a person of motion capture, with the errors of real ones; for tests and benchmarks.

Orientations have a random mounting, soft tissue that moves, a heading that drifts, and with a probability of a half a
magnetic disturbance of 5 to 20 degrees for about 3 s.
"""

import numpy as np

from pose.body.imu.recording import ImuRecording, sensor_of
from pose.body.imu.video import ENDS
from pose.structures.rotations import about, cross, dot, from_axes, multiply, same_sign, slerp, unit
from pose.structures.skeletons import H36M17
from pose.structures.types import F64

RATE = 60.0  # Hz
STANDING_S, TURNING_S = 1.0, 0.5
_UP = np.array([0.0, 0.0, 1.0])
_STRAIGHT = 0.25  # bend at which the knee's axis counts as much as that of the pelvis
_EARTH_FROM_WORLD = from_axes(np.array([1.0, 0, 0]), _UP, np.array([0.0, -1.0, 0.0]))  # y up to z up


def simulate(
    points: F64,
    segments: list[str],
    rng: np.random.Generator,
    *,
    standing: bool = False,
    tissue_degrees: float = 3.0,
    drift: tuple[float, float] = (0.5, 2.0),
    disturbed: float = 0.5,
    clock: float = 0.0,
    hinged: bool = False,
) -> ImuRecording:
    """Return a recording of sensors on some segments.

    Args:
        points: (T, 17, 3) m at `RATE`, world axes with y up.
        segments: Names of the segments.
        rng: Random generator.
        standing: Whether a standing pose precedes the motion.
        tissue_degrees: Root mean square angle of soft tissue, and of each segment in the standing pose.
        drift: Lowest and highest drift of the heading, degrees/min.
        disturbed: Probability of a magnetic disturbance.
        clock: Time in s of the first sample of `points`.
        hinged: Whether shanks turn about themselves as the axis of the knee does; otherwise as the pelvis does.
    """
    times = clock + np.arange(len(points)) / RATE
    sensors = []
    for segment in segments:
        q = orientation(points, segment, hinged)
        noise = vector(np.radians(tissue_degrees / 3**0.5) * smooth_noise(rng, len(q), 0.15))
        q, own = multiply(q, noise), times
        if standing:
            left = unit(cross(unit(cross(_left(points[:1]), np.array([0.0, 1.0, 0.0]))), np.array([0.0, -1.0, 0.0])))
            upright = from_axes(left, np.array([[0.0, 1.0, 0.0]]), cross(left, np.array([[0.0, 1.0, 0.0]])))
            upright = multiply(vector(rng.normal(0, np.radians(tissue_degrees / 3**0.5), (1, 3))), upright)
            share = np.clip((np.arange(round((STANDING_S + TURNING_S) * RATE)) / RATE - STANDING_S) / TURNING_S, 0, 1)
            q = np.concatenate([slerp(upright, q[:1], share), q])
            own = times[0] + np.arange(-len(share), len(points)) / RATE
        seconds = own - own[0]
        heading = np.radians(rng.uniform(*drift) * rng.choice([-1, 1])) / 60 * seconds
        if rng.random() < disturbed:
            size, middle = rng.uniform(5, 20) * rng.choice([-1, 1]), rng.uniform(0, seconds[-1])
            heading = heading + np.radians(size) * np.exp(-0.5 * (seconds - middle) ** 2)
        q = multiply(about(_UP, heading), multiply(_EARTH_FROM_WORLD, q))
        mounted = multiply(q, unit(rng.normal(size=4)))
        sensors.append(sensor_of(segment, segment, own, same_sign(mounted), "simulated"))
    return ImuRecording.of(sensors, "simulated")


def orientation(points: F64, segment: str, hinged: bool = False) -> F64:
    """Return the orientation (T, 4) of a segment: y against its bone, x to the left as the pelvis."""
    end = H36M17.index(ENDS[segment][-1])
    start = next(a for a, b in H36M17.edges if b == end)
    y = unit(points[:, start] - points[:, end])
    left = _left(points)
    x = unit(left - dot(left, y)[:, None] * y)
    if hinged and segment.endswith("_shank"):  # the axis of the knee, as far as it bends
        hip = H36M17.index(f"{segment.split('_')[0]}_hip")
        bend = cross(unit(points[:, start] - points[:, hip]), y)
        bend *= np.sign(dot(bend, x))[:, None]
        x = unit(bend + _STRAIGHT * x)
    return from_axes(x, y, cross(x, y))


def vector(turns: F64) -> F64:
    """Return quaternions (T, 4) of rotation vectors (T, 3) rad."""
    angle = np.linalg.norm(turns, axis=-1)
    return about(turns / np.maximum(angle, 1e-12)[:, None], angle)


def smooth_noise(rng: np.random.Generator, count: int, seconds: float) -> F64:
    """Return noise (T, 3) with a standard deviation of 1 that changes within some seconds."""
    reach = round(3 * seconds * RATE)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / (seconds * RATE)) ** 2)
    white = rng.normal(size=(count + 2 * reach, 3))
    smooth = np.stack([np.convolve(white[:, axis], kernel, "valid") for axis in range(3)], axis=1)
    return np.asarray(smooth / np.sqrt((kernel**2).sum()))


def _left(points: F64) -> F64:
    return unit(points[:, H36M17.index("left_hip")] - points[:, H36M17.index("right_hip")])
