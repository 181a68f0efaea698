"""Prediction time of live poses, fixed or measured."""

import threading
from collections import deque
from statistics import median

from pose.errors import UsageError

AUTO = "auto"
MAX_HORIZON_S = 0.5  # the forecast error grows with the horizon
MAX_DISPLAY_DELAYS = 31  # latest display delays, for their median


class Horizon:
    """How far ahead of the capture of each frame its poses are predicted. Safe to use from any thread."""

    def __init__(self, seconds: float | None = None) -> None:
        """Set a fixed prediction time, or measure it.

        Args:
            seconds: Fixed prediction time, 0 to `MAX_HORIZON_S` (0.5 s). None measures it: the latency of the frame
                plus the median of the latest display delays (`add_display_delay`).

        Raises:
            UsageError: If `seconds` is out of range.
        """
        if seconds is not None and not 0 <= seconds <= MAX_HORIZON_S:
            raise UsageError(f"--ahead: {1000 * seconds:g} ms is out of range; allowed: 0 to {1000 * MAX_HORIZON_S:g}")
        self.seconds = seconds  # fixed prediction time, s; None if it is the measured delay from capture to display
        self._display_delays: deque[float] = deque(maxlen=MAX_DISPLAY_DELAYS)
        self._lock = threading.Lock()

    @classmethod
    def parse(cls, text: str | None, lookahead: int = 0) -> "Horizon | None":
        """Parse the option `--ahead`.

        Args:
            text: `auto` to measure the prediction time, or a number of milliseconds; None for no prediction.
            lookahead: Look-ahead of the lifter in frames. Prediction requires 0.

        Returns:
            Fixed or measured prediction time; None for no prediction.

        Raises:
            UsageError: If the text is invalid or out of range, or prediction is combined with a look-ahead.
        """
        if text is None:
            return None
        try:
            horizon = cls() if text == AUTO else cls(float(text) / 1000)
        except ValueError as error:
            raise UsageError(f"--ahead: {text!r} is neither {AUTO} nor a number of milliseconds") from error
        if lookahead:
            raise UsageError("--ahead and --lookahead cannot be combined: one predicts, the other one waits")
        return horizon

    def add_display_delay(self, delay: float) -> None:
        """Report the display delay of a result: it was displayed `delay` seconds after its computation."""
        with self._lock:
            self._display_delays.append(min(max(delay, 0.0), MAX_HORIZON_S))

    def prediction_time(self, captured: float, now: float) -> float:
        """Return the prediction time of a frame in s, at most `MAX_HORIZON_S`, at `now` when its 3D is available."""
        if self.seconds is not None:
            return self.seconds
        with self._lock:
            delay = median(self._display_delays) if self._display_delays else 0.0
        return min(max(now - captured, 0.0) + delay, MAX_HORIZON_S)
