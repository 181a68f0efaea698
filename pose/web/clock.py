"""The times at which a browser says it captured its pictures, on this computer's clock."""

from dataclasses import dataclass

DRIFT = 1e-4  # s/s; how fast another clock may run differently
LEAST_STEP = 1e-3  # s


@dataclass(slots=True)
class ForeignClock:
    """The fastest message so far says how far the two clocks are apart.

    The times that come out increase and never lie in the future, whatever the other side claims.
    """

    _apart: float | None = None
    _arrived: float = 0.0
    _last: float = float("-inf")

    def local(self, theirs: float, now: float) -> float:
        """When `theirs` was, s on our clock, where `now` is the time of arrival."""
        if self._apart is None:
            self._apart = now - theirs
        self._apart = min(now - theirs, self._apart + DRIFT * (now - self._arrived))
        self._arrived = now
        self._last = max(theirs + self._apart, self._last + LEAST_STEP)
        return self._last
