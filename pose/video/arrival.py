"""When pictures of a live source were made, and which of them waited too long to be of use."""

from time import monotonic

from pose.video.source import JUMP, STEP

FRESH_SECONDS = 0.005  # a packet that took so long to come had not been waiting
LONGEST_DROP = 1.0  # s after which what comes counts as fresh: the source, or this machine, is just that quick
WINDOW = 5.0  # s in which some picture is expected to come without delay
FAR_OFF = 0.5  # s; a clock that is off by more was set, or stood still, and is followed at once
SLEW = 0.02  # s per s by which a clock that runs a little fast or slow is led


class Waiting:
    """Finds the pictures that lay in buffers before somebody began to read: they come without being waited for."""

    def __init__(self, wanted: bool) -> None:
        """wanted: False drops nothing."""
        self._wanted = wanted
        self._begun: float | None = None

    def drops(self, awaited: float) -> bool:
        """Whether to leave out the next picture, which came after `awaited` s of reading."""
        if self._begun is None:
            self._begun = monotonic()
        elif awaited >= FRESH_SECONDS or monotonic() - self._begun > LONGEST_DROP:
            self._wanted = False
        return self._wanted


class LiveTimeline:
    """Seconds since the first picture, strictly increasing: of the camera's clock, held to the moments of arrival.

    A picture without a stamp was made when it came. Stamps are more even than arrivals, but their clock may run fast or
    slow, stand still, or be set. A picture can come late, but not before it was made: the least delay within WINDOW is
    what the clocks differ by. A small difference is led back slowly, a large one at once, counted in `repaired`.
    """

    def __init__(self, interval: float) -> None:
        """interval: s between pictures, as announced."""
        self.repaired = 0
        self._interval = interval
        self._zero: float | None = None
        self._shift = 0.0  # from stamps to times
        self._least, self._window_end = float("inf"), 0.0
        self._correction = 0.0  # of the shift, still to be made
        self._stamp = 0.0
        self._now = 0.0
        self._last = -1.0

    def add(self, stamp: float | None, arrived: float) -> float:
        """The time of the next picture, in seconds. arrived: s on any clock that never jumps."""
        if self._zero is None:
            self._zero = arrived
            self._stamp, self._shift = stamp or 0.0, -(stamp or 0.0)
            self._window_end = WINDOW
        now = arrived - self._zero
        time = now if stamp is None else self._by_stamp(stamp, now)
        if time <= self._last:
            time = self._last + min(STEP, self._interval / 2)
        self._now, self._last = now, time
        return time

    def _by_stamp(self, stamp: float, now: float) -> float:
        step = max(-SLEW * (now - self._now), min(SLEW * (now - self._now), self._correction))
        self._shift += step
        self._correction -= step
        delay = now - (stamp + self._shift)
        if delay < -FAR_OFF or stamp < self._stamp - JUMP:
            self._set(delay, now)
            delay = 0.0
        self._least = min(self._least, delay)
        if now >= self._window_end:
            if self._least > FAR_OFF:
                self._set(self._least, now)
            else:
                self._correction = self._least
                self._least, self._window_end = float("inf"), now + WINDOW
        self._stamp = stamp
        return stamp + self._shift

    def _set(self, difference: float, now: float) -> None:
        """The camera's clock jumped by `difference`: go on from there."""
        self._shift += difference
        self.repaired += 1
        self._correction, self._least, self._window_end = 0.0, float("inf"), now + WINDOW
