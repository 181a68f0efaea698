"""Where people will be: the next fraction of a second of their motion, from the last one.

`forecast` predicts one person's sequence; a `Forecaster` is what predicts, for many people at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pose.errors import UsageError
from pose.forecast.rivals import DampedVelocity, ZeroVelocity
from pose.forecast.runtime import SHIPPED, OnnxForecaster, TorchForecaster, shipped_path
from pose.forecast.types import LONGEST_SECONDS, PAST_SECONDS, Forecast, Forecaster, Past
from pose.sequences import Sequence3D
from pose.system.device import require_torch
from pose.types import F64
from pose.weights import sha256_of

__all__ = [
    "LONGEST_SECONDS",
    "PAST_SECONDS",
    "DampedVelocity",
    "Forecast",
    "Forecaster",
    "Past",
    "Predicted",
    "ZeroVelocity",
    "forecast",
    "load_forecaster",
]

TYPICAL_STEP = 1 / 30  # s between frames, of somebody seen once
DEFAULT = SHIPPED
_RIVALS: dict[str, type[Forecaster]] = {kind.name: kind for kind in (ZeroVelocity, DampedVelocity)}


@dataclass(frozen=True, slots=True)
class Predicted:
    """sequence: the person at the predicted times. root_sigma: (T,) mm, of the pelvis' way since the last frame. ahead:
    (T,) s, how far each frame is predicted."""

    sequence: Sequence3D
    root_sigma: F64
    ahead: F64


def load_forecaster(name: str | Path = DEFAULT) -> Forecaster:
    """The shipped forecaster, a rival by its name, or a checkpoint of `pose-train forecaster`.

    ONNX Runtime computes a checkpoint where the .onnx file beside it was exported from it; else torch does. Raises
    UsageError for what is neither, PoseError for a file that cannot be read.
    """
    if str(name) in _RIVALS:
        return _RIVALS[str(name)]()
    path = shipped_path() if name == SHIPPED else Path(name)
    if not path.is_file():
        raise UsageError(f"forecaster: {name} is neither a file nor one of {', '.join((SHIPPED, *_RIVALS))}")
    if (exported := OnnxForecaster.beside(path, str(name))) is not None:
        return exported
    require_torch(f"forecaster {name}: a checkpoint without an .onnx file of its own beside it")
    from pose.forecast.build import load_network

    return TorchForecaster(load_network(path), str(name), sha256_of(path))


def forecast(
    sequence: Sequence3D, horizon: float | Sequence[float], *, forecaster: Forecaster | None = None
) -> Predicted:
    """How one person goes on after the last frame of `sequence`, of which the last second counts.

    horizon: s. One number: frames at the sequence's own pace up to there, the last one there. Several: those moments
    after the last frame, increasing. Beyond `LONGEST_SECONDS` nobody has measured what comes out. Raises ValueError
    for an empty sequence and for horizons that are not above 0.
    """
    if len(sequence) == 0:
        raise ValueError("sequence: contains no frame")
    after = np.atleast_1d(np.asarray(horizon, np.float64))
    if after.ndim != 1 or not len(after) or not np.isfinite(after).all() or not (np.diff(after, prepend=0) > 0).all():
        raise ValueError(f"horizon: expected seconds above 0, increasing, got {horizon}")
    if np.ndim(horizon) == 0:
        after = _paced(sequence, float(after[0]))
    times = sequence.times[-1] + after
    found = (forecaster or load_forecaster()).predict(Past.of([sequence]), times[None])
    predicted = Sequence3D(found.joints[0], found.root[0], found.sigma[0], times)
    return Predicted(predicted, found.root_sigma[0].astype(np.float64), found.ahead[0])


def _paced(sequence: Sequence3D, horizon: float) -> F64:
    """The sequence's own steps up to `horizon`, and `horizon`."""
    step = float(np.median(np.diff(sequence.times[-30:]))) if len(sequence) > 1 else TYPICAL_STEP
    return np.append(np.arange(1, int(np.ceil(horizon / step - 1e-6))) * step, horizon)
