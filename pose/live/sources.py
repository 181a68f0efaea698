"""Live sources: a camera or stream with automatic reconnection, a file at its frame rate, or pushed images."""

import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

import av

from pose.errors import PoseError
from pose.live.mailbox import Mailbox
from pose.structures.types import U8, Frame
from pose.video import Source, open_source
from pose.video.container import reason
from pose.video.source import LateFrame

MIN_RETRY_S, MAX_RETRY_S = 1.0, 16.0  # wait before a failed source is opened again; doubles with each attempt
MAX_UNREAD_S = 1.0  # an open source that was not read for longer is opened again
NOTICE_SECONDS = 5.0
PACE_FRAMES, MIN_PACE_FRAMES = 31, 6
MAX_FILE_LAG_S = 1.0  # a file that lags more (computer suspended) continues from there instead of catching up


class Captured:
    """An image with its capture time."""

    def __init__(self, frame: Frame | LateFrame, at: float) -> None:
        """Store a frame and its capture time in s on the clock of `time.monotonic`."""
        self._frame, self.at = frame, at

    @property
    def size(self) -> tuple[int, int]:
        """Size of the image, (width, height) px."""
        return self._frame.size if isinstance(self._frame, Frame) else self._frame.image.size

    @property
    def frame(self) -> Frame:
        """The image, with its index and time in the stream; converted to RGB when it is read first."""
        if not isinstance(self._frame, Frame):
            self._frame = Frame(self._frame.image.read(), self._frame.index, self._frame.time)
        return self._frame


class LiveSource(Protocol):
    """Protocol of a live source."""

    name: str  # name for display
    fps: float  # nominal frame rate, frames/s
    message: str  # current problem, for display; empty without one

    def frames(self, stop: threading.Event) -> Iterator[Captured]:
        """Yield the images as they arrive, until the source ends or `stop` is set.

        Raises:
            PoseError: If the source fails permanently.
        """
        ...

    def close(self) -> None:
        """Release files, devices and connections, which ends `frames` soon after.

        May be called from any thread, and more than once.
        """
        ...


def open_live(spec: str, *, loop: bool = False) -> LiveSource:
    """Open a camera or network stream with automatic reconnection, or a file that is played at its frame rate.

    Args:
        spec: Camera number, path of a file, or address such as `rtsp://...` or `http://...`.

    Raises:
        PoseError: If the source cannot be opened now.
        UsageError: If `spec` is invalid.
    """
    source = open_source(spec, watch=True)
    return Reconnecting(spec, source) if source.info.is_live else Played(source, loop=loop)


class Played:
    """Source that plays a file at its frame rate."""

    # The capture time of a frame is the time at which it is due, so any delay counts as latency.

    def __init__(self, source: Source, *, loop: bool = False) -> None:
        self.name, self.fps, self.message = source.name, source.info.fps, ""
        self._source = source
        self._loop = loop

    def frames(self, stop: threading.Event) -> Iterator[Captured]:
        """See `LiveSource.frames`."""
        start = time.monotonic()
        index, offset, last = 0, 0.0, 0.0
        while True:
            for frame in self._source.late_frames():
                last = offset + frame.time
                wait = start + last - time.monotonic()
                if wait < -MAX_FILE_LAG_S:
                    start -= wait
                if stop.wait(max(wait, 0.0)):
                    return
                yield Captured(LateFrame(frame.image, index, last), start + last)
                index += 1
            self.message = self._source.cut_short or ""
            if not self._loop or self._source.closed:
                return
            offset = last + 1 / self.fps

    def thin(self, level: int) -> None:
        """See `Source.thinning`."""
        self._source.thinning = level

    def close(self) -> None:
        """See `LiveSource.close`."""
        self._source.close()


class Reconnecting:
    """Source that reads a camera or network stream, and opens it again whenever it ends or fails."""

    # The waits between attempts increase from 1 to 16 s. The frame times of all connections are on one time line, so
    # the gaps between connections keep their duration. `left_out` counts outdated images that a connection had buffered
    # before reading began.

    def __init__(self, spec: str, source: Source) -> None:
        """Use a source that `open_source` opened with `watch=True` for the first connection."""
        self.name, self.fps, self.message = source.name, source.info.fps, ""
        self.left_out = 0  # number of outdated images that were skipped
        self._spec = spec
        self._source: Source | None = source  # opened, not yet read
        self._reading: Source | None = None  # source of the last frames
        self._source_lock = threading.Lock()  # guards `_source`
        self._opened = time.monotonic()
        self._pace = Pace()
        self._size: tuple[int, int] | None = None
        self._notice_end = 0.0
        self._closed = threading.Event()

    def frames(self, stop: threading.Event) -> Iterator[Captured]:
        """See `LiveSource.frames`."""
        index, last, offset = 0, 0.0, 0.0
        start: float | None = None
        self._refresh()
        while not (stop.is_set() or self._closed.is_set()):
            is_first = True
            for frame, at in self._connection():
                start = at if start is None else start
                if is_first:  # the start of this connection on the common time line
                    offset = max(at - start, last + 1 / self.fps if index else 0.0) - frame.time
                    is_first = False
                last = offset + frame.time
                self._check_frame(frame.image.size, at)
                yield Captured(LateFrame(frame.image, index, last), at)
                index += 1
                if stop.is_set() or self._closed.is_set():
                    return
            self._reopen(stop)

    def thin(self, level: int) -> None:
        """See `Source.thinning`."""
        if self._reading is not None:
            self._reading.thinning = level

    def _refresh(self) -> None:
        """Reconnect if the open source was not read for more than a second."""
        # Its buffered images are outdated, and servers disconnect clients that do not read.
        if time.monotonic() - self._opened < MAX_UNREAD_S or (old := self._take_source()) is None:
            return
        old.close()
        try:
            self._set_source(open_source(self._spec, watch=True))
        except PoseError as error:
            self._report_loss(str(error))

    def _take_source(self) -> Source | None:
        """Return the open source, and leave None. Only one caller gets the source, and must close it."""
        with self._source_lock:
            source, self._source = self._source, None
        return source

    def _set_source(self, source: Source) -> None:
        """Store an opened source; after `close`, close it instead."""
        with self._source_lock:
            if self._closed.is_set():
                source.close()
            else:
                self._source = source

    def _connection(self) -> Iterator[tuple[LateFrame, float]]:
        """Yield frames with arrival times (s) until the source ends; then set `message` to the reason."""
        source = self._take_source()
        if source is None:
            return
        self._pace = Pace(None if source.has_clock else PACE_FRAMES)
        self._reading = source
        try:
            for frame in source.late_frames():
                yield frame, time.monotonic() if source.arrived is None else source.arrived
            problem = source.cut_short or "it ended"
        except (PoseError, av.FFmpegError) as error:
            problem = reason(error) if isinstance(error, av.FFmpegError) else str(error)
        finally:
            self.left_out += source.left_out
            source.close()
        self._report_loss(problem)

    def _check_frame(self, size: tuple[int, int], at: float) -> None:
        """Report a changed image size, and measure the rate of a stream that does not declare it."""
        self.fps = self._pace.add(at) or self.fps
        if self._size not in (None, size):
            self.message = f"{self.name} sends {size[0]}x{size[1]} now: track ids restart"
            self._notice_end = at + NOTICE_SECONDS
        elif self.message and at > self._notice_end:
            self.message = ""
        self._size = size

    def _report_loss(self, problem: str) -> None:
        """Set `message` for a lost source."""
        problem = problem.removeprefix("cannot read ").removeprefix(f"{self.name}: ")
        self.message = f"{self.name} is gone ({problem})"

    def _reopen(self, stop: threading.Event) -> None:
        """Try to open the source until it succeeds, `stop` is set, or the source is closed."""
        wait = MIN_RETRY_S
        while True:
            gone, again = self.message, time.monotonic() + wait
            while (left := again - time.monotonic()) > 0:
                self.message = f"{gone}, reconnecting in {math.ceil(left)} s"
                if stop.wait(min(left, 1.0)) or self._closed.is_set():
                    return
            try:
                source = open_source(self._spec, watch=True)
            except PoseError as error:
                self._report_loss(str(error))
                wait = min(2 * wait, MAX_RETRY_S)
            else:
                self.fps, self.message = source.info.fps, ""
                self._set_source(source)
                return

    def close(self) -> None:
        """See `LiveSource.close`."""
        self._closed.set()
        if (source := self._take_source()) is not None:
            source.close()


class Pace:
    """Estimator of a frame rate: the reciprocal of the median of the latest intervals, which ignores stalls."""

    def __init__(self, max_images: int | None = None) -> None:
        """Start without images; None estimates nothing, so that `add` always returns None."""
        self._at: deque[float] = deque(maxlen=max_images or 0)

    def add(self, at: float) -> float | None:
        """Add an image that arrived at `at` (s), and return the rate in frames/s; None before the sixth."""
        self._at.append(at)
        if len(self._at) < MIN_PACE_FRAMES:
            return None
        intervals = sorted(later - sooner for sooner, later in pairwise(self._at))
        return 1 / max(intervals[len(intervals) // 2], 1e-3)


class PushedFrames:
    """Source of images that another thread pushes, for example from a browser's camera."""

    def __init__(self, name: str, fps: float = 30.0, *, capacity: int = 4) -> None:
        """Create a source; when `capacity` images wait, the oldest is dropped."""
        self.name, self.fps, self.message = name, fps, ""
        self._mailbox: Mailbox[Captured] = Mailbox(capacity)
        self._next = 0
        self._first: float | None = None

    def push(self, image: U8, at: float | None = None) -> int:
        """Push an image, (H, W, 3) uint8 RGB, captured at `at` (monotonic, s; None: now), and return its index."""
        at = time.monotonic() if at is None else at
        if self._first is None:
            self._first = at
        index = self._next
        self._next += 1
        self._mailbox.put(Captured(Frame(image, index, at - self._first), at))
        return index

    def frames(self, stop: threading.Event) -> Iterator[Captured]:
        """See `LiveSource.frames`."""
        while not stop.is_set():
            captured = self._mailbox.get(timeout=0.1)
            if captured is not None:
                yield captured
            elif self._mailbox.closed:
                return

    def close(self) -> None:
        """End the source after the queued images have been read."""
        self._mailbox.close()
