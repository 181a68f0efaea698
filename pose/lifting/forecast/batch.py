"""Batches for training and evaluation of forecasters: past motion with known futures."""

from dataclasses import dataclass

from pose.structures.types import F32, F64


@dataclass(frozen=True, slots=True)
class ForecastBatch:
    """Pasts and true futures of B people."""

    past: F32  # (B, K, F) network inputs, F features at K ages (`pose.lifting.forecast.features.describe`)
    ahead: F64  # (B, Q) s, times of `truth` after the last frame of the past
    # (B, Q, 51) m, true displacements of the coordinates since the last frame of the past. The coordinates are those of
    # the 17 joints, in the order of `pose.lifting.forecast.format.COORDINATES`.
    truth: F32
    steps: F32  # (B, S, 51) m, the same displacements at S equal steps of `pose.lifting.forecast.format.STEP` seconds
