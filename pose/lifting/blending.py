"""Overlapping windows of an offline network, and the blending of their outputs.

Where two windows overlap, the weights of the earlier window decrease and those of the later window increase. Every
frame therefore has context on both sides, except at the ends of the sequence.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pose.lifting.format import TYPICAL_STEP
from pose.structures.types import F32

_MIN_FACTOR = 1.05  # smaller deviations from 30 frames/s do not change the windows
_MAX_FACTOR = 8.0  # 240 frames/s; limits memory


@dataclass(frozen=True, slots=True)
class Windows:
    """Division of a sequence into overlapping windows."""

    size: int  # number of frames of a window, at frame rates up to 30 frames/s
    hop: int  # number of frames from the start of one window to the start of the next
    any_length: bool = True  # whether the network can process longer windows

    def at_rate_of(self, times: NDArray[np.float64]) -> "Windows":
        """Return the windows for a sequence: as long as `size` frames at 30 frames/s, but at least `size` frames.

        Args:
            times: (T,) s, times of the frames. Only the first `size` matter, so that the rate is known in time in a
                video that is still read.
        """
        steps = np.diff(times[: self.size])
        factor = TYPICAL_STEP / max(float(np.median(steps)), TYPICAL_STEP / _MAX_FACTOR) if len(steps) else 1.0
        if not self.any_length or factor < _MIN_FACTOR:
            return self
        return replace(self, size=round(self.size * factor), hop=round(self.hop * factor))

    def spans(self, length: int) -> list[tuple[int, int]]:
        """Return the (start, stop) frames of the windows of a sequence. The last window ends at `length` frames."""
        spans = [(0, min(self.size, length))]
        while spans[-1][1] < length:
            start = spans[-1][0] + self.hop
            spans.append((start, min(start + self.size, length)))
        return spans

    def blending_weights(self, length: int, first: bool) -> NDArray[np.float64]:
        """Return blending weights (T,) that rise, unless `first`, and fall over overlaps; `Blend` normalises them."""
        overlap = self.size - self.hop
        ramp = (np.arange(overlap) + 0.5) / max(overlap, 1)
        weights = np.ones(length)
        if not first:
            n = min(overlap, length)
            weights[:n] = ramp[:n]
        falling = length - self.hop
        if falling > 0:
            weights[self.hop :] *= ramp[::-1][:falling]
        return weights


class Blend:
    """Weighted mean of the outputs of overlapping windows, for at most `capacity` frames that `take` did not return."""

    def __init__(self, windows: Windows, capacity: int) -> None:
        self._windows = windows
        self._sum = np.zeros((capacity, 17 * 4 + 3))
        self._weight = np.zeros((capacity, 1))
        self._first = 0

    def add(self, start: int, output: F32) -> None:
        """Add the output (T, 71) of a window that starts at frame `start`: joints and pelvis in m, sigma in mm."""
        weights = self._windows.blending_weights(len(output), first=start == 0)[:, None]
        rows = slice(start - self._first, start - self._first + len(output))
        self._sum[rows] += weights * output
        self._weight[rows] += weights

    def take(self, count: int) -> F32:
        """Return the means (count, 71) of the next frames and remove them. No later window may contain these frames."""
        taken = (self._sum[:count] / self._weight[:count]).astype(np.float32)
        for array in (self._sum, self._weight):
            array[: -count or None] = array[count:]
            array[len(array) - count :] = 0
        self._first += count
        return taken
