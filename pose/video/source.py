"""What every source of pictures has in common, whether it reads a file, a folder, a network stream or a camera."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import TracebackType
from typing import Self

from pose.types import Frame
from pose.video.container import Target
from pose.video.planes import PlanarFrame, Planes

TIME_TOLERANCE = 1e-6  # s; a clip's borders are typed as decimals and compared with binary fractions
STEP = 1e-3  # s, by which a time stamp that does not increase is moved behind its predecessor
JUMP = 1.0  # s; a step back further than this is a clock that was reset, not one bad stamp


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """What is known of a source before it is read.

    width, height: px of the pictures as they are delivered (upright, square pixels). fps: average frames a second, as
    announced; trust `Frame.time`. time_base: s, the tick of the source's clock. duration: s between `start` and `end`,
    and frame_count, its number of frames: estimates, None when unknown. has_audio: the source has sound. is_live:
    frames come when they come and cannot be read twice. focal_35mm: mm on 35 mm film of the lens, where the file says
    it.
    """

    width: int
    height: int
    fps: float
    time_base: Fraction
    duration: float | None
    frame_count: int | None
    has_audio: bool
    is_live: bool
    focal_35mm: float | None = None

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels."""
        return self.width, self.height


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a source that is wanted, in seconds from its first frame: start <= time < end."""

    start: float = 0.0
    end: float = float("inf")

    def starts_after(self, time: float) -> bool:
        """Whether `time` is before the span."""
        return time < self.start - TIME_TOLERANCE

    def ends_before(self, time: float) -> bool:
        """Whether `time` is after the span."""
        return time >= self.end - TIME_TOLERANCE

    def cut(self, duration: float | None, fps: float) -> tuple[float | None, int | None]:
        """How much of a source of that duration lies inside: seconds and frames."""
        if duration is None:
            return None, None
        inside = max(min(self.end, duration) - self.start, 0.0)
        return inside, round(inside * fps)


@dataclass(frozen=True, slots=True)
class Sound:
    """Where the sound that belongs to the delivered frames lies.

    target: the container. origin: s on the container's clock at which the source's first frame is shown. span: the part
    that the frames cover.
    """

    target: Target
    origin: float
    span: Span


class Source(ABC):
    """A sequence of frames. Iterate to read it, `replay()` to read the same frames again, `with` to close it.

    A closed one delivers nothing more, also to who is reading it.

    name: for people. problems: one line for each thing that was lost or repaired, complete when the iteration has
    ended. cut_short: the one of them that says that the end is missing. sound: where the sound lies, None when there is
    none that can be copied. has_clock: its pictures have times of their own; without, the moment of arrival is theirs.
    arrived: s on the clock of `time.monotonic`, when the last delivered frame came; None for what is no live source.
    left_out: pictures of a live source that waited too long to be read.
    """

    name: str
    info: VideoInfo
    problems: list[str]
    cut_short: str | None = None
    sound: Sound | None = None
    has_clock: bool = True
    arrived: float | None = None
    left_out: int = 0
    closed: bool = False

    @abstractmethod
    def __iter__(self) -> Iterator[Frame]:
        """The frames, once, in order, with strictly increasing times."""

    @abstractmethod
    def replay(self) -> Iterator[Frame]:
        """The same frames again. A live source must have been opened with `keep=True`."""

    def content(self) -> str | None:
        """What decides the frames, as a SHA-256 (hex): every byte that is read, and the part that is wanted.

        None for what cannot be read twice or may change meanwhile: cameras and network addresses.
        """
        return None

    def replay_planes(self) -> Iterator[PlanarFrame]:
        """The same frames as `replay()`, as video stores them; all with the colours of the first one."""
        for frame in self.replay():
            yield PlanarFrame(Planes.of_rgb(frame.image), frame.index, frame.time)

    def close(self) -> None:
        """Let go of files, devices and connections. May be called twice, and while another thread reads."""
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Timeline:
    """Makes time stamps strictly increasing, and changes no more of them than it must.

    A missing stamp continues at `interval`; a stamp that does not increase is put STEP behind its predecessor; after a
    jump back (a recorder's clock was reset) everything that follows is shifted to continue at `interval`.
    """

    def __init__(self, interval: float) -> None:
        self.repaired = 0
        self._interval = interval
        self._last: float | None = None
        self._shift = 0.0

    def add(self, stamp: float | None, _arrived: float = 0.0) -> float:
        """The time of the next frame, in seconds, for the container's stamp. When it arrived is no matter."""
        if self._last is None:
            self._last = stamp if stamp is not None else 0.0
            return self._last
        following = self._last + self._interval
        time = following if stamp is None else stamp + self._shift
        if time <= self._last - JUMP:
            self._shift += following - time
            time = following
            self.repaired += 1
        elif time <= self._last:
            time = self._last + min(STEP, self._interval / 2)
            self.repaired += 1
        self._last = time
        return time
