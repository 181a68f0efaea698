"""Conversion of a browser's capture times to the clock of this computer."""

from dataclasses import dataclass

MAX_DRIFT = 1e-4  # maximum relative drift of the two clocks, s/s
MIN_STEP_S = 1e-3


@dataclass(slots=True)
class BrowserClock:
    """Estimator of a browser clock's offset, from the message with the least delay so far."""

    # Converted times increase and never lie in the future, whatever the browser sends.

    _offset_s: float | None = None
    _last_arrival_s: float = 0.0
    _last_time_s: float = float("-inf")

    def to_local(self, browser_time: float, now: float) -> float:
        """Convert a browser's time to this computer's clock (s), on which its message arrived at `now`."""
        if self._offset_s is None:
            self._offset_s = now - browser_time
        self._offset_s = min(now - browser_time, self._offset_s + MAX_DRIFT * (now - self._last_arrival_s))
        self._last_arrival_s = now
        self._last_time_s = max(browser_time + self._offset_s, self._last_time_s + MIN_STEP_S)
        return self._last_time_s
