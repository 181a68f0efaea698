"""Limit on the number of frames that fill gaps in time, for all functions that do so."""

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError

F64 = NDArray[np.float64]

MOST_FILLED = 108_000  # in gaps: an hour at 30 frames/s
MOST_FRAMES = 5_000_000  # in total: 23 hours at 60 frames/s
GAP_SECONDS = 0.25  # longer steps between two frames are gaps


def check_filled(times: F64, rate: float, advice: str) -> None:
    """Raise PoseError if frames at `rate` frames/s between increasing `times` (T,) s would be too many.

    A step is a gap if it is longer than `GAP_SECONDS` and than one and a half times the median step.

    Args:
        advice: What the user can do.
    """
    if len(times) < 2:
        return
    steps = np.diff(times)
    usual = max(GAP_SECONDS, 1.5 * float(np.median(steps)))
    filled = float(steps[steps > usual].sum())
    if not filled * rate < MOST_FILLED:
        at = int(steps.argmax())
        raise PoseError(
            f"gaps of {filled:.6g} s in all, one of {steps[at]:.6g} s from {times[at]:.6g} s on, would be filled with "
            f"more than {MOST_FILLED} frames: {advice}"
        )
    seconds = float(times[-1] - times[0])
    if not seconds * rate < MOST_FRAMES:
        raise PoseError(f"{seconds:.6g} s at {rate:.6g} frames/s are more than {MOST_FRAMES} frames: {advice}")
