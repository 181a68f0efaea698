"""Stabilised forecasts for display, without the amplified noise of a lifter.

A live forecast is drawn over the person. It must be accurate across the line of sight, and must not jitter while the
person stands still.

- The pelvis continues with its last velocity across the line of sight, exponentially damped. Its depth stays constant,
  because within half a second errors change the lifted depth more than motion does.
- Displacements of the joints are multiplied by v^4 / (v^4 + noise^4) with the recent speed v of the joints. The gain of
  a Wiener filter, v^2 / (v^2 + noise^2), passes more jitter at rest and dampens motion more. The velocity of the pelvis
  is multiplied by the Wiener gain, which is more accurate there.

docs/studies/ahead.md measures the effect. `VELOCITY_WINDOW_S`, `VELOCITY_TIME_CONSTANT_S` and `JOINT_SPEED_NOISE_M_S`
were selected on training subjects. `PELVIS_SPEED_NOISE_M_S` was set by hand on some of the test clips, as a trade-off
between jitter at rest and delay.
"""

import functools
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.lifting.forecast.types import Forecast, Forecaster, Past
from pose.structures.camera import Camera
from pose.structures.skeletons import H36M17, Skeleton
from pose.structures.types import F32, F64, Flags

_HAND = ("wrist", "hand", "thumb", "index", "pinky", "finger", "forefinger")
_FOOT = ("ankle", "heel", "toe", "foot")


@functools.cache
def carrying_joints(skeleton: Skeleton) -> NDArray[np.int64]:
    """Return the index (J,) of the Human3.6M-17 joint with which each of the J joints of a skeleton moves."""
    return np.array(
        [H36M17.index(_carrying_joint(name, skeleton.side(joint))) for joint, name in enumerate(skeleton.names)]
    )


def _carrying_joint(name: str, side: str) -> str:
    if name in H36M17.names:
        return name
    parts = name.split("_")
    if side != "centre":
        if any(part in _FOOT for part in parts):
            return f"{side}_ankle"
        if any(part in _HAND for part in parts):
            return f"{side}_wrist"
    return "pelvis" if name == "hip" else "head"


def moved_keypoints(keypoints: F32, skeleton: Skeleton, before: F64, after: F64, camera: Camera) -> F32:
    """Move 2D keypoints as the projections of people's 3D joints move."""
    shift = _shift(before, after, camera)
    return (keypoints + shift[:, carrying_joints(skeleton)]).astype(np.float32)


def moved_boxes(boxes: F32, before: F64, after: F64, camera: Camera) -> F32:
    """Move the edges of boxes as the edges of the boxes around the projected joints move."""
    whole = _in_front(before) & _in_front(after)
    moved = boxes.copy()
    if whole.any():
        old, new = camera.project(before[whole]), camera.project(after[whole])
        moved[whole, :2] += new.min(axis=1) - old.min(axis=1)
        moved[whole, 2:] += new.max(axis=1) - old.max(axis=1)
    return moved


def _shift(before: F64, after: F64, camera: Camera) -> F64:
    shift = np.zeros((*before.shape[:2], 2))
    whole = _in_front(before) & _in_front(after)
    shift[whole] = camera.project(after[whole]) - camera.project(before[whole])
    return shift


def _in_front(joints: F64) -> NDArray[np.bool_]:
    return np.asarray((joints[..., 2] > MIN_DEPTH_M).all(axis=1))


VELOCITY_WINDOW_S = 0.2  # duration before the last frame over which velocities are measured
VELOCITY_TIME_CONSTANT_S = 0.3  # time constant of that velocity
PELVIS_SPEED_NOISE_M_S = 0.3  # noise of the velocity of the pelvis across the line of sight
JOINT_SPEED_NOISE_M_S = 0.3  # noise of the joints' root-mean-square speed relative to the pelvis
MIN_DEPTH_M = 0.2  # a pelvis nearer to the camera or behind it is not stabilised


class StabilizedForecaster:
    """Forecaster that stabilises the forecasts of another forecaster. Sigma is unchanged."""

    def __init__(self, forecaster: Forecaster) -> None:
        self._inner, self.name = forecaster, forecaster.name

    def predict(self, past: Past, times: F64) -> Forecast:
        """Predict the motion, see `pose.lifting.forecast.types.Forecaster.predict`."""
        prediction = self._inner.predict(past, times)
        newest = np.arange(len(past)), past.last()
        joints, root = past.joints[newest][:, None], past.root[newest]
        weights, seen = _slope(past, past.times[newest])
        speeds = weights[:, None] @ np.where(seen[..., None], past.joints.reshape(*seen.shape, -1), 0)  # (P, 1, 51) m/s
        power = np.square(speeds).sum(axis=2) / past.joints.shape[2]
        gain = wiener_gain(power**2, JOINT_SPEED_NOISE_M_S**2)[..., None, None]
        displacements = (gain * (prediction.joints - joints)).astype(np.float32)
        return replace(prediction, joints=joints + displacements, root=_pelvis(past, seen, weights, root, prediction))


def wiener_gain(power: NDArray[np.floating], noise: float) -> F64:
    """Return the Wiener gain power / (power + noise^2) of signals with power `power` and noise with power noise^2."""
    return np.asarray(power / (power + noise**2), np.float64)


def _slope(past: Past, newest: F64) -> tuple[F64, Flags]:
    """Return weights (P, T) of the least-squares slope per second, and the mask (P, T) of the frames used."""
    seen = past.valid & (past.times >= newest[:, None] - (VELOCITY_WINDOW_S + 1e-6))
    age = np.where(seen, past.times - newest[:, None], 0.0)
    age -= seen * (age.sum(axis=1, keepdims=True) / seen.sum(axis=1, keepdims=True))
    return age / np.maximum(np.square(age).sum(axis=1, keepdims=True), 1e-12), seen


def _pelvis(past: Past, seen: Flags, weights: F64, root: F32, prediction: Forecast) -> F32:
    """Return stabilised positions of the pelvis, (P, Q, 3) m."""
    depth = past.root[..., 2]
    ahead = (root[:, 2] > MIN_DEPTH_M) & (np.where(seen, depth, np.inf).min(axis=1) > MIN_DEPTH_M)
    across = np.where(seen[..., None], past.root[..., :2] / np.where(seen & (depth > 0), depth, 1)[..., None], 0.0)
    speed = (weights[:, None] @ across)[:, 0] * root[:, 2:]
    damped_velocity = speed * wiener_gain(np.square(speed).sum(axis=1, keepdims=True), PELVIS_SPEED_NOISE_M_S)
    distance_per_speed = VELOCITY_TIME_CONSTANT_S * -np.expm1(-prediction.ahead / VELOCITY_TIME_CONSTANT_S)
    stabilized = np.repeat(root[:, None], prediction.ahead.shape[1], axis=1)
    stabilized[..., :2] += (distance_per_speed[..., None] * damped_velocity[:, None]).astype(np.float32)
    return np.where(ahead[:, None, None], stabilized, prediction.root)
