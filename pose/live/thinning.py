"""Choice of the frames of a live source that are not decoded, because the networks would drop as many anyway."""

import math

PERIOD_S = 1.0  # time after which the dropped frames are counted
MAX_DROPPED = 0.5  # share of dropped frames from which more frames are left out
MAX_LAG_S = 0.1  # delay of the decoder from which more frames are left out
MIN_DROPPED = 0.05  # share of dropped frames below which fewer frames could be left out
CALM_S = 10.0  # time with so few dropped frames before fewer are left out
MIN_RATE = 0.8  # arriving frames, relative to those the networks took before, below which a level leaves out too many


class Thinning:
    """Choice of `pose.video.source.Source.thinning` for one source."""

    def __init__(self) -> None:
        """Start with all frames."""
        self._level, self._max_level = 0, 2
        self._begin = math.nan  # capture time of the first frame of the period, s
        self._lag = math.inf  # smallest delay of the period, s
        self._arrived = self._dropped = 0  # frames of the period, and frames dropped before it
        self._taken = 0.0  # frames/s that the networks took at the level below
        self._calm = 0.0  # time with few dropped frames, s

    def level(self, captured: float, lag: float, dropped: int) -> int:
        """Return the level from a frame on.

        Args:
            captured: Capture time of the frame, s.
            lag: Time from the capture to the decoded frame, s.
            dropped: Number of frames that the networks dropped so far.
        """
        if math.isnan(self._begin):
            self._begin = captured
        self._arrived += 1
        self._lag = min(self._lag, lag)
        if captured - self._begin >= PERIOD_S:
            self._choose(captured - self._begin, dropped - self._dropped)
            self._begin, self._lag, self._arrived, self._dropped = captured, math.inf, 0, dropped
        return self._level

    def _choose(self, elapsed: float, dropped: int) -> None:
        """Choose the level after a period of `elapsed` s in which `dropped` frames were dropped."""
        share = dropped / self._arrived
        self._calm = self._calm + elapsed if share < MIN_DROPPED and self._lag < MAX_LAG_S else 0.0
        if self._level and self._arrived / elapsed < MIN_RATE * self._taken:
            self._level -= 1
            self._max_level, self._taken = self._level, 0.0
        elif (share >= MAX_DROPPED or self._lag > MAX_LAG_S) and self._level < self._max_level:
            self._taken = (self._arrived - dropped) / elapsed if self._lag < MAX_LAG_S else 0.0
            self._level += 1
        elif self._calm > CALM_S and self._level:
            self._level, self._taken, self._calm = self._level - 1, 0.0, 0.0
