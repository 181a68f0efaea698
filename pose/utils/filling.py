"""Limit on the number of frames that are inserted to fill gaps between time stamps."""

import numpy as np
from numpy.typing import NDArray

from pose.errors import PoseError

F64 = NDArray[np.float64]

MAX_GAP_FRAMES = 108_000  # maximum number of frames in gaps: an hour at 30 frames/s
MAX_FRAMES = 5_000_000  # maximum number of frames in total: 23 hours at 60 frames/s
GAP_SECONDS = 0.25  # longer steps between two frames are gaps


def check_gap_frames(times: F64, rate: float, advice: str) -> None:
    """Check that filling gaps over `GAP_SECONDS` and 1.5 median steps does not need too many frames.

    Raises:
        PoseError: If the gaps would need `MAX_GAP_FRAMES` frames, or the whole duration `MAX_FRAMES` frames, or more.
    """
    if len(times) < 2:
        return
    steps = np.diff(times)
    min_gap_s = max(GAP_SECONDS, 1.5 * float(np.median(steps)))
    gap_s = float(steps[steps > min_gap_s].sum())
    if not gap_s * rate < MAX_GAP_FRAMES:
        at = int(steps.argmax())
        raise PoseError(
            f"gaps of {gap_s:.6g} s in all, one of {steps[at]:.6g} s from {times[at]:.6g} s on, would be filled with "
            f"more than {MAX_GAP_FRAMES} frames: {advice}"
        )
    seconds = float(times[-1] - times[0])
    if not seconds * rate < MAX_FRAMES:
        raise PoseError(f"{seconds:.6g} s at {rate:.6g} frames/s are more than {MAX_FRAMES} frames: {advice}")
