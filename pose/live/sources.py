"""Where live pictures come from: a camera or stream that may die and come back, a file played at its own speed, or
pictures that somebody pushes.
"""

import math
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import av

from pose.errors import PoseError
from pose.live.mailbox import Mailbox
from pose.types import U8, Frame
from pose.video import Source, open_source
from pose.video.container import reason

FIRST_WAIT, LONGEST_WAIT = 1.0, 16.0  # s before a source that died is opened again; doubles from try to try
STALE = 1.0  # s; an opened source that waited longer to be read is opened anew
NOTICE_SECONDS = 5.0
PACE_FRAMES, PACE_LEAST = 31, 6
FAR_BEHIND = 1.0  # s; a file that lags more (the computer slept) goes on from there instead of catching up


@dataclass(frozen=True, slots=True)
class Captured:
    """A picture and when it was there: `at`, s on the clock of `time.monotonic`."""

    frame: Frame
    at: float


class LiveSource(Protocol):
    """name: for people. fps: frames a second, as announced. message: what is wrong now, empty while all is well."""

    name: str
    fps: float
    message: str

    def frames(self, stop: threading.Event) -> Iterator[Captured]:
        """The pictures as they come, until the source ends or `stop` is set.

        Indices count from 0, times increase over reconnections and repeats, the size may change. Raises PoseError when
        the source fails for good.
        """
        ...

    def close(self) -> None:
        """Let go of files, devices and connections; `frames` ends soon. May be called from any thread, and twice."""
        ...


def open_live(spec: str, *, loop: bool = False) -> LiveSource:
    """A camera number or an RTSP, HTTP, ... address that reconnects, or a file played at its own speed.

    loop: begin the file again at its end. Raises PoseError (UsageError for a wrong call) when it cannot be opened now.
    """
    source = open_source(spec, watch=True)
    return Reconnecting(spec, source) if source.info.is_live else Played(source, loop=loop)


class Played:
    """A file at its own speed. A picture counts as captured when it is due, so a late one is counted late."""

    def __init__(self, source: Source, *, loop: bool = False) -> None:
        self.name, self.fps, self.message = source.name, source.info.fps, ""
        self._source = source
        self._loop = loop

    def frames(self, stop: threading.Event) -> Iterator[Captured]:
        start = time.monotonic()
        index, begun, last = 0, 0.0, 0.0
        while True:
            for frame in self._source:
                last = begun + frame.time
                wait = start + last - time.monotonic()
                if wait < -FAR_BEHIND:
                    start -= wait
                if stop.wait(max(wait, 0.0)):
                    return
                yield Captured(Frame(frame.image, index, last), start + last)
                index += 1
            self.message = self._source.cut_short or ""
            if not self._loop or self._source.closed:
                return
            begun = last + 1 / self.fps

    def close(self) -> None:
        self._source.close()


class Reconnecting:
    """A camera or a network stream, opened again with growing waits whenever it ends or fails.

    Time is the wall's, over all connections: what comes after a gap is later by as much. left_out: pictures that waited
    in buffers before a connection was read.
    """

    def __init__(self, spec: str, source: Source) -> None:
        """source: `spec`, opened with `watch`."""
        self.name, self.fps, self.message = source.name, source.info.fps, ""
        self.left_out = 0
        self._spec = spec
        self._source: Source | None = source  # opened, and read by nobody yet
        self._changing = threading.Lock()  # of that
        self._opened = time.monotonic()
        self._pace = Pace()
        self._size: tuple[int, int] | None = None
        self._notice_end = 0.0
        self._closed = threading.Event()

    def frames(self, stop: threading.Event) -> Iterator[Captured]:
        index, last, begun = 0, 0.0, 0.0
        start: float | None = None
        self._refresh()
        while not (stop.is_set() or self._closed.is_set()):
            is_first = True
            for frame, at in self._connection():
                start = at if start is None else start
                if is_first:  # of this connection: where it begins on the time line of all
                    begun = max(at - start, last + 1 / self.fps if index else 0.0) - frame.time
                    is_first = False
                last = begun + frame.time
                self._look(frame, at)
                yield Captured(Frame(frame.image, index, last), at)
                index += 1
                if stop.is_set() or self._closed.is_set():
                    return
            self._reopen(stop)

    def _refresh(self) -> None:
        """Connect anew if nobody read for a while: what waited is old, and servers give up on who does not read."""
        if time.monotonic() - self._opened < STALE or (old := self._taken()) is None:
            return
        old.close()
        try:
            self._put(open_source(self._spec, watch=True))
        except PoseError as error:
            self._say(str(error))

    def _taken(self) -> Source | None:
        """What was opened, for one caller only: who reads it closes it."""
        with self._changing:
            source, self._source = self._source, None
        return source

    def _put(self, source: Source) -> None:
        """It was opened; to be closed at once where nobody wants it any more."""
        with self._changing:
            if self._closed.is_set():
                source.close()
            else:
                self._source = source

    def _connection(self) -> Iterator[tuple[Frame, float]]:
        """The frames of the opened source and when they came; says afterwards why they ended."""
        source = self._taken()
        if source is None:
            return
        self._pace = Pace(None if source.has_clock else PACE_FRAMES)
        try:
            for frame in source:
                yield frame, time.monotonic() if source.arrived is None else source.arrived
            problem = source.cut_short or "it ended"
        except (PoseError, av.FFmpegError) as error:
            problem = reason(error) if isinstance(error, av.FFmpegError) else str(error)
        finally:
            self.left_out += source.left_out
            source.close()
        self._say(problem)

    def _look(self, frame: Frame, at: float) -> None:
        """Say when the pictures change their size, and learn the rate of a stream that cannot know it."""
        self.fps = self._pace.add(at) or self.fps
        if self._size not in (None, frame.size):
            self.message = f"{self.name} sends {frame.size[0]}x{frame.size[1]} now: everybody is new"
            self._notice_end = at + NOTICE_SECONDS
        elif self.message and at > self._notice_end:
            self.message = ""
        self._size = frame.size

    def _say(self, problem: str) -> None:
        problem = problem.removeprefix("cannot read ").removeprefix(f"{self.name}: ")
        self.message = f"{self.name} is gone ({problem})"

    def _reopen(self, stop: threading.Event) -> None:
        """Try until the source is there again, or nobody wants it any more."""
        wait = FIRST_WAIT
        while True:
            gone, again = self.message, time.monotonic() + wait
            while (left := again - time.monotonic()) > 0:
                self.message = f"{gone}, reconnecting in {math.ceil(left)} s"
                if stop.wait(min(left, 1.0)) or self._closed.is_set():
                    return
            try:
                source = open_source(self._spec, watch=True)
            except PoseError as error:
                self._say(str(error))
                wait = min(2 * wait, LONGEST_WAIT)
            else:
                self.fps, self.message = source.info.fps, ""
                self._put(source)
                return

    def close(self) -> None:
        self._closed.set()
        if (source := self._taken()) is not None:
            source.close()


class Pace:
    """The rate of pictures that come without one: of the median of the last intervals, so that a stall is no rate."""

    def __init__(self, most: int | None = None) -> None:
        """most: how many pictures to look back; None where the rate is known."""
        self._at: deque[float] = deque(maxlen=most or 0)

    def add(self, at: float) -> float | None:
        """Frames a second, once enough pictures came. at: s, of the newest."""
        self._at.append(at)
        if len(self._at) < PACE_LEAST:
            return None
        intervals = sorted(later - sooner for sooner, later in pairwise(self._at))
        return 1 / max(intervals[len(intervals) // 2], 1e-3)


class PushedFrames:
    """Pictures that another thread hands in, say those of a browser's camera."""

    def __init__(self, name: str, fps: float = 30.0, *, waiting: int = 4) -> None:
        """waiting: so many pictures may wait to be read; the oldest are dropped."""
        self.name, self.fps, self.message = name, fps, ""
        self._mailbox: Mailbox[Captured] = Mailbox(waiting)
        self._next = 0
        self._first: float | None = None

    def push(self, image: U8, at: float | None = None) -> int:
        """Hand in (H, W, 3) uint8 RGB; its index, which the `LiveResult` of this picture carries.

        at: s on the clock of `time.monotonic` at which it was captured, increasing; by default now.
        """
        at = time.monotonic() if at is None else at
        if self._first is None:
            self._first = at
        index = self._next
        self._next += 1
        self._mailbox.put(Captured(Frame(image, index, at - self._first), at))
        return index

    def frames(self, stop: threading.Event) -> Iterator[Captured]:
        while not stop.is_set():
            captured = self._mailbox.get(timeout=0.1)
            if captured is not None:
                yield captured
            elif self._mailbox.closed:
                return

    def close(self) -> None:
        """No more pictures will come; those that wait are still read."""
        self._mailbox.close()
