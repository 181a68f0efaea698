"""Capture times of live frames, and detection of frames that waited in buffers."""

from time import monotonic

from pose.video.source import MIN_RESET_S, MIN_STEP_S

MIN_FRESH_S = 0.005  # minimum time of waiting for a packet that was not buffered
MAX_DROP_S = 1.0  # maximum duration of dropping; a fast source never lets the reader wait
WINDOW_S = 5.0  # s; some frame is expected to arrive without delay in this time
MAX_CLOCK_ERROR_S = 0.5  # larger errors mean that the clock was set or stopped, and are corrected at once
MAX_SLEW = 0.02  # s per s, correction rate of smaller errors


class BacklogFilter:
    """Detector of outdated live frames."""

    # Frames that were buffered before reading began arrive without delay. They are dropped until reading has to wait
    # for a frame, but no longer than `MAX_DROP_S`.

    def __init__(self, drops_backlog: bool) -> None:
        """Start before the first frame."""
        self._drops = drops_backlog
        self._start: float | None = None

    def drops(self, waited: float) -> bool:
        """Return whether to drop the next frame, for which reading waited `waited` s."""
        if self._start is None:
            self._start = monotonic()
        elif waited >= MIN_FRESH_S or monotonic() - self._start > MAX_DROP_S:
            self._drops = False
        return self._drops


class LiveTimeline:
    """Estimator of strictly increasing capture times of live frames, in s since the first frame."""

    # Time stamps are more regular than arrival times, but the camera's clock may drift, stop, or be reset. Frames can
    # arrive late, but not early, so the minimum delay within `WINDOW_S` is the offset between the clocks. Offsets up to
    # `MAX_CLOCK_ERROR_S` are corrected slowly, larger ones in one step. A frame without a time stamp gets its arrival
    # time.

    def __init__(self, interval: float) -> None:
        """Start before the first frame; `interval` is the nominal time between frames, s."""
        self.repaired = 0  # number of offsets that were corrected in one step
        self._interval = interval
        self._zero: float | None = None
        self._shift = 0.0  # s, added to time stamps
        self._min_delay, self._window_end = float("inf"), 0.0
        self._correction = 0.0  # s, remaining correction of `_shift`
        self._stamp = 0.0
        self._now = 0.0
        self._last = -1.0

    def add(self, stamp: float | None, arrived: float) -> float:
        """Return the time of the next frame in s, from its time stamp, if any, and its monotonic arrival time."""
        if self._zero is None:
            self._zero = arrived
            self._stamp, self._shift = stamp or 0.0, -(stamp or 0.0)
            self._window_end = WINDOW_S
        now = arrived - self._zero
        time = now if stamp is None else self._by_stamp(stamp, now)
        if time <= self._last:
            time = self._last + min(MIN_STEP_S, self._interval / 2)
        self._now, self._last = now, time
        return time

    def _by_stamp(self, stamp: float, now: float) -> float:
        step = max(-MAX_SLEW * (now - self._now), min(MAX_SLEW * (now - self._now), self._correction))
        self._shift += step
        self._correction -= step
        delay = now - (stamp + self._shift)
        if delay < -MAX_CLOCK_ERROR_S or stamp < self._stamp - MIN_RESET_S:
            self._jump(delay, now)
            delay = 0.0
        self._min_delay = min(self._min_delay, delay)
        if now >= self._window_end:
            if self._min_delay > MAX_CLOCK_ERROR_S:
                self._jump(self._min_delay, now)
            else:
                self._correction = self._min_delay
                self._min_delay, self._window_end = float("inf"), now + WINDOW_S
        self._stamp = stamp
        return stamp + self._shift

    def _jump(self, difference: float, now: float) -> None:
        """Correct the clock offset by `difference` s in one step, at `now` s since the first frame."""
        self._shift += difference
        self.repaired += 1
        self._correction, self._min_delay, self._window_end = 0.0, float("inf"), now + WINDOW_S
