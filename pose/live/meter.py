"""Frame rates and latencies of a loop, in constant memory: latest frames exactly, and all frames as a histogram."""

from collections import deque
from time import monotonic

import numpy as np

RECENT_SECONDS = 5.0
RECENT_FRAMES = 600
BIN_MS = 0.25
MAX_MS = 10_000.0


class Meter:
    """Statistics of the rate and latency of processed frames. Not thread-safe."""

    def __init__(self) -> None:
        self.count = 0  # number of frames since the start
        self.max_ms = 0.0  # maximum latency of all frames, ms
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT_FRAMES)
        self._histogram = np.zeros(round(MAX_MS / BIN_MS) + 1, np.int64)

    def add(self, done: float, latency: float) -> None:
        """Add a frame completed at `done` (monotonic, s) with a latency in s."""
        ms = 1000 * latency
        self.count += 1
        self.max_ms = max(self.max_ms, ms)
        self._recent.append((done, ms))
        self._histogram[min(int(ms / BIN_MS), len(self._histogram) - 1)] += 1

    def recent(self) -> tuple[float, float, float]:
        """Return the frame rate, and the median and 95th percentile of the latency in ms, over the last 5 s.

        Without frames, the rate is 0 and the latencies are NaN.
        """
        newest = monotonic()
        recent = [(done, ms) for done, ms in self._recent if done >= newest - RECENT_SECONDS]
        if not recent:
            return 0.0, float("nan"), float("nan")
        elapsed = recent[-1][0] - recent[0][0]
        fps = (len(recent) - 1) / elapsed if elapsed > 0 else 0.0
        median, high = np.percentile([ms for _, ms in recent], [50, 95])
        return fps, float(median), float(high)

    def percentile(self, percent: float) -> float:
        """Return a percentile of the latency of all frames in ms, up to 10 s by 0.25 ms; NaN without frames."""
        if not self.count:
            return float("nan")
        rank = percent / 100 * self.count
        return (int(np.searchsorted(np.cumsum(self._histogram), rank)) + 0.5) * BIN_MS
