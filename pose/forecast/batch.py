"""Batches for training and evaluation of forecasters: past motion with known futures."""

from dataclasses import dataclass

from pose.types import F32, F64


@dataclass(frozen=True, slots=True)
class ForecastBatch:
    """Pasts and true futures of B people.

    Attributes:
        past: (B, K, F) network inputs, F features at K ages (`pose.forecast.features.describe`).
        ahead: (B, Q) s, times of `truth` after the last frame.
        truth: (B, Q, 51) m, true displacements since the last frame (`pose.forecast.format.COORDINATES`).
        steps: (B, S, 51) m, true displacements at S steps, which are `pose.forecast.format.STEP` seconds apart.
    """

    past: F32
    ahead: F64
    truth: F32
    steps: F32
