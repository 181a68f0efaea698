"""Pasts with known futures, as training and evaluation of forecasters take them."""

from dataclasses import dataclass

from pose.types import F32, F64


@dataclass(frozen=True, slots=True)
class ForecastBatch:
    """B people.

    past: (B, K, F), what a network sees (`pose.forecast.features.describe`). ahead: (B, Q) s after the last frame.
    truth: (B, Q, 51) m, the way there. steps: (B, S, 51) m, the way at each step of `pose.forecast.format.STEP`.
    """

    past: F32
    ahead: F64
    truth: F32
    steps: F32
