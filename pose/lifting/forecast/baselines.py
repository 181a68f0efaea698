"""Baselines without a network: constant pose and damped velocity.

The sigma of a prediction h seconds ahead is `_ERROR_AT_1_S_MM` h^`_ERROR_EXPONENT`. It approximates the radius that
contains 68 % of the errors on the validation subjects, for exact input. For joints it is combined with the sigma of the
last frame.
"""

from dataclasses import dataclass

import numpy as np

from pose.lifting.forecast.types import Forecast, Past
from pose.structures.types import F32, F64

VELOCITY_SECONDS = 0.1  # s; duration before the last frame over which the velocity is measured
LIMB_TIME_CONSTANT_S = 0.2  # of the limbs' velocity
ROOT_TIME_CONSTANT_S = 1.0  # of the pelvis' velocity

_ERROR_EXPONENT = {"zero-velocity": 0.66, "damped-velocity": 1.13}
_ERROR_AT_1_S_MM = {  # mm after one second: displacement of the pelvis, then the other 16 joints relative to it
    "zero-velocity": (317, 12, 208, 265, 12, 271, 363, 34, 54, 63, 66, 62, 160, 294, 63, 109, 155),
    "damped-velocity": (317, 17, 263, 301, 17, 345, 443, 50, 78, 88, 94, 87, 192, 371, 91, 150, 223),
}


@dataclass(frozen=True, slots=True)
class LastFrame:
    """The last valid frame of P people."""

    joints: F32  # (P, 17, 3) m, relative to the pelvis
    root: F32  # (P, 3) m, position of the pelvis in the camera frame
    sigma: F32  # (P, 17) mm, radius that contains the true joint with a probability of 68 %
    ahead: F64  # (P, Q, 1) time from the last frame to each query, s; at least 0


def last_frame(past: Past, times: F64) -> LastFrame:
    """Return the last valid frame of each person, and the time from it to each query at `times` (P, Q) s."""
    if times.ndim != 2 or len(times) != len(past):
        raise ValueError(f"times: expected (P, Q) for {len(past)} people, got {times.shape}")
    people, frame = np.arange(len(past)), past.last()
    ahead = np.maximum(times - past.times[people, frame, None], 0.0)
    return LastFrame(past.joints[people, frame], past.root[people, frame], past.sigma[people, frame], ahead[..., None])


def recent_velocity(past: Past) -> tuple[F32, F32]:
    """Estimate velocities of joints (P, 17, 3) and root (P, 3) in m/s by least squares over the last 0.1 s."""
    people, newest = np.arange(len(past)), past.last()
    before = np.where(np.arange(past.valid.shape[1]) < newest[:, None], past.valid, False)
    second = np.where(before.any(axis=1), past.valid.shape[1] - 1 - np.argmax(before[:, ::-1], axis=1), newest)
    earliest = np.minimum(past.times[people, newest] - VELOCITY_SECONDS, past.times[people, second]) - 1e-6
    used = past.valid & (np.where(past.valid, past.times, -np.inf) >= earliest[:, None])
    age = np.where(used, past.times - past.times[people, newest, None], 0.0)
    centred = np.where(used, age - age.sum(axis=1, keepdims=True) / used.sum(axis=1, keepdims=True), 0.0)
    weight = (centred / np.maximum((centred**2).sum(axis=1, keepdims=True), 1e-12)).astype(np.float32)
    joints = np.where(used[..., None, None], past.joints, 0)
    root = np.where(used[..., None], past.root, 0)
    return np.einsum("pt,ptjc->pjc", weight, joints), np.einsum("pt,ptc->pc", weight, root)


class ZeroVelocity:
    """Baseline in which people keep their last pose and position."""

    name = "zero-velocity"

    def predict(self, past: Past, times: F64) -> Forecast:
        """Predict the motion, see `pose.lifting.forecast.types.Forecaster.predict`."""
        now = last_frame(past, times)
        return _forecast(self.name, now, np.zeros_like(now.joints), np.zeros_like(now.root))


class DampedVelocity:
    """Baseline whose joints continue with their last velocity v, damped: v tau (1 - exp(-h / tau)) after h seconds."""

    # tau is 1 s for the pelvis and 0.2 s for the joints relative to it.

    name = "damped-velocity"

    def predict(self, past: Past, times: F64) -> Forecast:
        """Predict the motion, see `pose.lifting.forecast.types.Forecaster.predict`."""
        return _forecast(self.name, last_frame(past, times), *recent_velocity(past))


def _forecast(name: str, now: LastFrame, joints: F32, root: F32) -> Forecast:
    """Return the forecast of people who continue with damped velocities (m/s)."""
    limbs, body = (tau * -np.expm1(-now.ahead / tau) for tau in (LIMB_TIME_CONSTANT_S, ROOT_TIME_CONSTANT_S))
    error = np.array(_ERROR_AT_1_S_MM[name]) * now.ahead ** _ERROR_EXPONENT[name]
    before = now.sigma[:, None].astype(np.float64)
    sigma = np.concatenate([before[..., :1] + 0 * error[..., :1], np.hypot(before[..., 1:], error[..., 1:])], axis=-1)
    return Forecast(
        (now.joints[:, None] + limbs[..., None] * joints[:, None]).astype(np.float32),
        (now.root[:, None] + body * root[:, None]).astype(np.float32),
        sigma.astype(np.float32),
        error[..., 0].astype(np.float32),
        now.ahead[..., 0],
    )
