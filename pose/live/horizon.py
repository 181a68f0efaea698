"""How far live poses are predicted: to the measured time at which they are shown, or by a fixed time."""

import threading
from collections import deque
from statistics import median

from pose.errors import UsageError

AUTO = "auto"
LONGEST = 0.5  # s; beyond it a prediction shows next to nothing of what people do
KEPT = 31  # of the last ways from a result to the screen


class Horizon:
    """By how many seconds each frame is predicted. Any thread may use it.

    seconds: given; None measures: what this very frame took until now, and the median of what it took lately until a
    result was shown. Raises UsageError for what is out of range.
    """

    def __init__(self, seconds: float | None = None) -> None:
        if seconds is not None and not 0 <= seconds <= LONGEST:
            raise UsageError(f"--ahead: {1000 * seconds:g} ms is out of range; allowed: 0 to {1000 * LONGEST:g}")
        self.seconds = seconds
        self._ways: deque[float] = deque(maxlen=KEPT)
        self._lock = threading.Lock()

    @classmethod
    def read(cls, text: str | None, lookahead: int = 0) -> "Horizon | None":
        """The horizon of `--ahead`: `auto`, or a number of milliseconds; None for None.

        Raises UsageError for any other text, or together with a look-ahead.
        """
        if text is None:
            return None
        try:
            horizon = cls() if text == AUTO else cls(float(text) / 1000)
        except ValueError as error:
            raise UsageError(f"--ahead: {text!r} is neither {AUTO} nor a number of milliseconds") from error
        if lookahead:
            raise UsageError("--ahead predicts and --lookahead waits: give one of them")
        return horizon

    def shown(self, after: float) -> None:
        """A result was shown so many seconds after it was there. Whoever shows results says so."""
        with self._lock:
            self._ways.append(min(max(after, 0.0), LONGEST))

    def of(self, captured: float, now: float) -> float:
        """s, for a frame that was captured then and has its 3D now, both on one clock."""
        if self.seconds is not None:
            return self.seconds
        with self._lock:
            way = median(self._ways) if self._ways else 0.0
        return min(max(now - captured, 0.0) + way, LONGEST)
