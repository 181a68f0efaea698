"""A forecast that is fit to be looked at: what a lifter's noise would make of it is taken out.

A live forecast is drawn beside the very person, so it must be right across the line of sight, where an eye measures,
and must not tremble while the person stands still.

- The pelvis goes on across the line of sight as the last frames show it there, fading; its distance is held. What a
  lifter says of the distance changes more by its errors than by motion within half a second.
- Ways that are short against the noise are shortened: w becomes w |w|^2 / (|w|^2 + noise^2), the gain of a Wiener
  filter with the power of the way itself in place of the expected one.

benchmarks/ahead.py measures it. The constants are chosen on training subjects.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pose.forecast.types import Forecast, Forecaster, Past
from pose.types import F32, F64, Flags

WINDOW = 0.2  # s, the last frames that say how the pelvis goes on across the line of sight
FADING = 0.3  # s after which it has lost 63 % of that speed
SPEED_NOISE = 0.3  # m/s of the pelvis across the line of sight
WAY_NOISE = 0.03  # m of a joint relative to the pelvis
NEAREST = 0.2  # m; whose pelvis is nearer, or behind the camera, goes as the forecaster says


class Steady:
    """`pose.forecast.types.Forecaster`: another one's forecast, steadied. What it said of sigma stays."""

    def __init__(self, forecaster: Forecaster) -> None:
        self._inner, self.name = forecaster, forecaster.name

    def predict(self, past: Past, times: F64) -> Forecast:
        """See `pose.forecast.types.Forecaster`."""
        said = self._inner.predict(past, times)
        people, newest = np.arange(len(past)), past.last()
        joints = past.joints[people, newest][:, None]
        root = past.root[people, newest]
        seen = past.valid & (past.times >= past.times[people, newest, None] - WINDOW - 1e-6)
        ways = shortened(said.joints - joints, WAY_NOISE)
        return replace(said, joints=joints + ways, root=_pelvis(past, seen, root, said))


def shortened(vectors: NDArray[np.floating], noise: float) -> F32:
    """(..., 3) less what noise of that length makes of them."""
    power = (vectors**2).sum(axis=-1, keepdims=True)
    return (vectors * (power / (power + noise**2))).astype(np.float32)


def _pelvis(past: Past, seen: Flags, root: F32, said: Forecast) -> F32:
    """(P, Q, 3) m. seen: (P, T) the frames that count. root: (P, 3) m in the newest of them."""
    depth = past.root[..., 2]
    ahead = (root[:, 2] > NEAREST) & (np.where(seen, depth, np.inf).min(axis=1) > NEAREST)
    across = np.where(seen[..., None], past.root[..., :2] / np.where(seen, depth, 1)[..., None], 0.0)
    count = seen.sum(axis=1)[:, None]
    age = np.where(seen, past.times - np.where(seen, past.times, 0).sum(axis=1, keepdims=True) / count, 0.0)
    speed = np.einsum("pt,ptc->pc", age / np.maximum((age**2).sum(axis=1, keepdims=True), 1e-12), across)
    steady = shortened(speed * root[:, 2:], SPEED_NOISE)
    way = FADING * -np.expm1(-said.ahead / FADING)
    held = np.repeat(root[:, None], said.ahead.shape[1], axis=1)
    held[..., :2] += (way[..., None] * steady[:, None]).astype(np.float32)
    return np.where(ahead[:, None, None], held, said.root)
