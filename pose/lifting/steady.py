"""Smoothing of the newest poses of a sliding window, without delay.

Each new pose is averaged with a prediction: the smoothed pose of the frame before, plus part of the motion between the
two frames before, which the window has already lifted again with later context (docs/studies/lifter-live.md).
"""

import math

import numpy as np

from pose.lifting.step_batch import StreamState
from pose.structures.types import F32

_SECONDS = 0.048  # the weight of the new pose is 1 - exp(-step / _SECONDS): 0.5 at 30 frames/s
_DAMPING = 0.5  # part of the latest refined motion that is expected to continue
_JOINTS = slice(0, 51)  # root-relative joints in an output (71,)


class Steady:
    """Smoothing filter for the newest poses of one person."""

    def __init__(self) -> None:
        self._before: F32 | None = None  # smoothed output of the frame before
        self._time = -math.inf

    def smooth(self, output: F32, state: StreamState, time: float) -> F32:
        """Return the output (71,) of the newest frame at `time` (s) with smoothed joints.

        Args:
            output: Output of the lifter for the newest frame.
            state: State of the person after this frame, a sliding window.
            time: Time of the frame, s.
        """
        result = output.copy()
        last, last_but_one = state.output_of(1), state.output_of(2)
        if self._before is not None and last is not None:
            motion = np.zeros_like(output) if last_but_one is None else last - last_but_one
            predicted = self._before + np.float32(_DAMPING) * motion
            share = np.float32(math.exp((self._time - time) / _SECONDS))
            result[_JOINTS] += share * (predicted - output)[_JOINTS]
        self._before, self._time = result, time
        return result
