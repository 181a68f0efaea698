"""Forecasting of people's motion: the next second from the last one.

`forecast` predicts one person's sequence; a `Forecaster` predicts many people at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pose.errors import UsageError
from pose.lifting.forecast.baselines import DampedVelocity, ZeroVelocity
from pose.lifting.forecast.runtime import SHIPPED, OnnxForecaster, TorchForecaster, shipped_path
from pose.lifting.forecast.types import MAX_HORIZON_S, PAST_SECONDS, Forecast, Forecaster, Past
from pose.networks.weights import sha256_of
from pose.structures.sequences import Sequence3D
from pose.structures.types import F64
from pose.utils.device import require_torch

__all__ = [
    "MAX_HORIZON_S",
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

TYPICAL_STEP = 1 / 30  # s between frames, for a sequence of one frame
DEFAULT = SHIPPED
_BASELINES: dict[str, type[Forecaster]] = {kind.name: kind for kind in (ZeroVelocity, DampedVelocity)}


@dataclass(frozen=True, slots=True)
class Predicted:
    """The predicted motion of one person."""

    sequence: Sequence3D  # the person at the predicted times
    root_sigma: F64  # (T,) mm, radius that contains the true displacement of the pelvis with a probability of 68 %
    ahead: F64  # (T,) time from the last frame to each prediction, s


def load_forecaster(name: str | Path = DEFAULT) -> Forecaster:
    """Load the shipped "forecaster", a baseline ("zero-velocity", "damped-velocity"), or a checkpoint file.

    ONNX Runtime is used if the .onnx file beside the checkpoint was exported from it; otherwise torch. An unknown name
    is a UsageError; a file that cannot be read, or missing torch, a PoseError.
    """
    if str(name) in _BASELINES:
        return _BASELINES[str(name)]()
    path = shipped_path() if name == SHIPPED else Path(name)
    if not path.is_file():
        raise UsageError(f"forecaster: {name} is neither a file nor one of {', '.join((SHIPPED, *_BASELINES))}")
    if (exported := OnnxForecaster.beside(path, str(name))) is not None:
        return exported
    require_torch(f"forecaster {name}: a checkpoint without an .onnx file of its own beside it")
    from pose.lifting.forecast.build import load_network

    return TorchForecaster(load_network(path), str(name), sha256_of(path))


def forecast(
    sequence: Sequence3D, horizon: float | Sequence[float], *, forecaster: Forecaster | None = None
) -> Predicted:
    """Predict the motion of one person after the last frame of `sequence`, from its last second.

    A number as the horizon predicts poses at the frame rate of the sequence up to and including this time, s;
    increasing numbers predict poses at these times. The accuracy beyond `MAX_HORIZON_S` was not evaluated.

    Raises:
        ValueError: If the sequence is empty, or the horizons are not finite, above 0 and strictly increasing.
    """
    if len(sequence) == 0:
        raise ValueError("sequence: contains no frame")
    after = np.atleast_1d(np.asarray(horizon, np.float64))
    if after.ndim != 1 or not len(after) or not np.isfinite(after).all() or not (np.diff(after, prepend=0) > 0).all():
        raise ValueError(f"horizon: expected seconds above 0, increasing, got {horizon}")
    if np.ndim(horizon) == 0:
        after = _frame_times(sequence, float(after[0]))
    times = sequence.times[-1] + after
    found = (forecaster or load_forecaster()).predict(Past.from_sequences([sequence]), times[None])
    predicted = Sequence3D(found.joints[0], found.root[0], found.sigma[0], times)
    return Predicted(predicted, found.root_sigma[0].astype(np.float64), found.ahead[0])


def _frame_times(sequence: Sequence3D, horizon: float) -> F64:
    """Return times at the frame rate of the sequence, up to and including `horizon` (s)."""
    step = float(np.median(np.diff(sequence.times[-30:]))) if len(sequence) > 1 else TYPICAL_STEP
    return np.append(np.arange(1, int(np.ceil(horizon / step - 1e-6))) * step, horizon)
