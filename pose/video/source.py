"""Common interface of all sources: files, folders, network streams and cameras."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Self

from pose.structures.types import U8, Frame
from pose.video.container import Target
from pose.video.planes import PlanarFrame, Planes
from pose.video.upright import LateImage

TIME_TOLERANCE = 1e-6  # s; borders of a clip are typed as decimals and compared with binary fractions
MIN_STEP_S = 1e-3  # s by which a time stamp that does not increase is moved after its predecessor
MIN_RESET_S = 1.0  # s; a larger step back is a clock reset, not a single wrong stamp


@dataclass(frozen=True, slots=True)
class VideoInfo:
    """Properties of a source, known before it is read; images are upright with square pixels."""

    width: int  # width of the returned images in px (upright, square pixels)
    height: int  # height of the returned images in px
    fps: float  # declared average frames per second; `Frame.time` is authoritative
    time_base: Fraction  # unit of the source's time stamps, s
    duration: float | None  # estimated duration in s of the part of the source that is returned; None if unknown
    frame_count: int | None  # estimated number of returned frames; None if unknown
    has_audio: bool  # whether the source has sound
    is_live: bool  # whether frames arrive in real time, so that they cannot be read twice
    focal_35mm: float | None = None  # 35 mm equivalent focal length in mm, if the file contains it

    @property
    def size(self) -> tuple[int, int]:
        """(width, height) in px."""
        return self.width, self.height


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a source: the frames with `start` <= time < `end`."""

    start: float = 0.0  # start (inclusive) in s after the first frame of the source
    end: float = float("inf")  # end (exclusive) in s after the first frame of the source

    def starts_after(self, time: float) -> bool:
        """Return whether `time` is before the span."""
        return time < self.start - TIME_TOLERANCE

    def ends_before(self, time: float) -> bool:
        """Return whether `time` is after the span."""
        return time >= self.end - TIME_TOLERANCE

    def cut(self, duration: float | None, fps: float) -> tuple[float | None, int | None]:
        """Return duration in s and number of frames of a source inside the span; None for both if unknown."""
        if duration is None:
            return None, None
        inside = max(min(self.end, duration) - self.start, 0.0)
        return inside, round(inside * fps)


@dataclass(frozen=True, slots=True)
class Sound:
    """Location of the audio that belongs to the returned frames."""

    target: Target  # container with the audio
    origin: float  # time stamp of the source's first frame in the container, in s
    span: Span  # part of the source that the frames cover


@dataclass(frozen=True, slots=True)
class LateFrame:
    """A frame whose image is converted when it is needed."""

    image: LateImage
    index: int  # as in `Frame`
    time: float  # as in `Frame`, s


class Source(ABC):
    """A sequence of frames to iterate once; `replay()` reads them again, and `close()` ends iteration in any thread."""

    name: str  # name for messages
    info: VideoInfo  # properties of the source
    # One message for each kind of lost frames or repaired time stamps, complete when the iteration has ended.
    problems: list[str]
    cut_short: str | None = None  # message that the end of the video is missing; None if it is complete
    sound: Sound | None = None  # file and track of the sound; None if there is none that can be copied
    has_clock: bool = True  # whether frames have time stamps from the source; otherwise times are arrival times
    # Arrival time of the last returned frame in s, on the clock of `time.monotonic`; None if not live.
    arrived: float | None = None
    left_out: int = 0  # number of frames of a live source that were dropped because they were outdated
    closed: bool = False  # whether `close()` was called
    # Frames that may be left out from now on, which saves decoding. 0: none, 1: those on which no others depend, about
    # half; 2: all that are predicted from later frames, about three quarters.
    thinning: int = 0

    @abstractmethod
    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames once, in order, with strictly increasing times."""

    def late_frames(self) -> Iterator[LateFrame]:
        """Yield the frames like iteration, without the images' conversion where it can wait."""
        for frame in self:
            yield LateFrame(LateImage(frame.size, partial(_same, frame.image)), frame.index, frame.time)

    @abstractmethod
    def replay(self) -> Iterator[Frame]:
        """Yield the same frames again. A live source must have been opened with `keep=True`."""

    def content(self) -> str | None:
        """Return a hash of the content, or None for sources that cannot be read twice or may change."""
        return None

    def replay_planes(self) -> Iterator[PlanarFrame]:
        """Yield the frames of `replay()` as YUV planes, all in the colour encoding of the first frame."""
        for frame in self.replay():
            yield PlanarFrame(Planes.of_rgb(frame.image), frame.index, frame.time)

    def close(self) -> None:
        """Release files, devices and connections. May be called twice, and while another thread reads."""
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _same(image: U8) -> U8:
    return image


class RepairedTimeline:
    """Correction that makes time stamps strictly increasing with minimal changes."""

    # A missing stamp becomes the previous time plus `interval`. A stamp that does not increase is moved to `MIN_STEP_S`
    # after its predecessor. If the stamps jump back by `MIN_RESET_S` or more (a recorder's clock was reset), all
    # following stamps are shifted, so that they continue after `interval`.

    def __init__(self, interval: float) -> None:
        """Start before the first frame; `interval` is the nominal time between frames, s."""
        self.repaired = 0  # number of corrected stamps that did not increase
        self._interval = interval
        self._last: float | None = None
        self._shift = 0.0

    def add(self, stamp: float | None, _arrived: float = 0.0) -> float:
        """Return the time of the next frame in s, for its time stamp or None."""
        if self._last is None:
            self._last = stamp if stamp is not None else 0.0
            return self._last
        following = self._last + self._interval
        time = following if stamp is None else stamp + self._shift
        if time <= self._last - MIN_RESET_S:
            self._shift += following - time
            time = following
            self.repaired += 1
        elif time <= self._last:
            time = self._last + min(MIN_STEP_S, self._interval / 2)
            self.repaired += 1
        self._last = time
        return time
