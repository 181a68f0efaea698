"""Capture times of live frames, and detection of frames that waited in buffers."""

from time import monotonic

from pose.video.source import JUMP, STEP

MIN_FRESH_S = 0.005  # minimum time of waiting for a packet that was not buffered
MAX_DROP_S = 1.0  # maximum duration of dropping; a fast source never lets the reader wait
WINDOW = 5.0  # s; some frame is expected to arrive without delay in this time
MAX_CLOCK_ERROR_S = 0.5  # larger errors mean that the clock was set or stopped, and are corrected at once
SLEW = 0.02  # s per s, correction rate of smaller errors


class Waiting:
    """Detector of outdated live frames.

    Frames that were buffered before reading began arrive without delay. They are dropped until reading has to wait for
    a frame, but no longer than `MAX_DROP_S`.
    """

    def __init__(self, wanted: bool) -> None:
        """Start before the first frame.

        Args:
            wanted: Whether to drop outdated frames; False keeps all frames.
        """
        self._wanted = wanted
        self._begun: float | None = None

    def drops(self, awaited: float) -> bool:
        """Return whether to drop the next frame.

        Args:
            awaited: Time for which reading waited for the frame, s.
        """
        if self._begun is None:
            self._begun = monotonic()
        elif awaited >= MIN_FRESH_S or monotonic() - self._begun > MAX_DROP_S:
            self._wanted = False
        return self._wanted


class LiveTimeline:
    """Estimator of strictly increasing capture times of live frames, in s since the first frame.

    Capture times combine time stamps of the camera with arrival times; a frame without a time stamp gets its arrival
    time. Time stamps are more regular than arrival times, but the camera's clock may drift, stop, or be reset. Frames
    can arrive late, but not early, so the minimum delay within `WINDOW` is the offset between the clocks. Offsets up to
    `MAX_CLOCK_ERROR_S` are corrected slowly. Larger offsets are corrected in one step.

    Attributes:
        repaired: Number of offsets that were corrected in one step.
    """

    def __init__(self, interval: float) -> None:
        """Start before the first frame.

        Args:
            interval: Nominal time between frames, s.
        """
        self.repaired = 0
        self._interval = interval
        self._zero: float | None = None
        self._shift = 0.0  # s, added to time stamps
        self._least, self._window_end = float("inf"), 0.0
        self._correction = 0.0  # s, remaining correction of `_shift`
        self._stamp = 0.0
        self._now = 0.0
        self._last = -1.0

    def add(self, stamp: float | None, arrived: float) -> float:
        """Return the time of the next frame in s.

        Args:
            stamp: Time stamp of the camera in s; None if missing.
            arrived: Arrival time in s on a monotonic clock.
        """
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
        if delay < -MAX_CLOCK_ERROR_S or stamp < self._stamp - JUMP:
            self._set(delay, now)
            delay = 0.0
        self._least = min(self._least, delay)
        if now >= self._window_end:
            if self._least > MAX_CLOCK_ERROR_S:
                self._set(self._least, now)
            else:
                self._correction = self._least
                self._least, self._window_end = float("inf"), now + WINDOW
        self._stamp = stamp
        return stamp + self._shift

    def _set(self, difference: float, now: float) -> None:
        """Correct the clock offset by `difference` s in one step, at `now` s since the first frame."""
        self._shift += difference
        self.repaired += 1
        self._correction, self._least, self._window_end = 0.0, float("inf"), now + WINDOW
