"""Conversion of a browser's capture times to the clock of this computer."""

from dataclasses import dataclass

MAX_DRIFT = 1e-4  # maximum relative drift of the two clocks, s/s
MIN_STEP_S = 1e-3


@dataclass(slots=True)
class ForeignClock:
    """Estimator of the offset of a browser's clock, from the message that arrived with the least delay so far.

    Converted times increase and never lie in the future, whatever the browser sends.
    """

    _apart: float | None = None
    _arrived: float = 0.0
    _last: float = float("-inf")

    def local(self, theirs: float, now: float) -> float:
        """Convert a browser's time to the clock of this computer, in s.

        Args:
            theirs: Time on the browser's clock, s.
            now: Arrival time of the message on the clock of this computer, s.
        """
        if self._apart is None:
            self._apart = now - theirs
        self._apart = min(now - theirs, self._apart + MAX_DRIFT * (now - self._arrived))
        self._arrived = now
        self._last = max(theirs + self._apart, self._last + MIN_STEP_S)
        return self._last
