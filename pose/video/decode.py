"""Reading video with FFmpeg: files, network streams and cameras.

Frames are decoded on demand, so memory use does not depend on the length of the video. Indices count returned frames
from 0. Times are relative to the first frame of the whole source, even if only a part is returned, so that results
match the original video.
"""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, pairwise
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Literal

import av

from pose.errors import PoseError, UsageError
from pose.structures.types import Frame
from pose.video.arrival import BacklogFilter, LiveTimeline
from pose.video.container import (
    ServerCopy,
    Target,
    check_server,
    declared_seconds,
    has_time_stamps,
    moving_streams,
    names_file,
    reason,
    time_base_of,
    video_stream,
)
from pose.video.frame_store import FrameStore
from pose.video.lens import focal_35mm
from pose.video.planes import PlanarFrame
from pose.video.source import TIME_TOLERANCE, LateFrame, RepairedTimeline, Sound, Source, Span, VideoInfo
from pose.video.trailer import is_cut_off
from pose.video.upright import (
    LateRGB,
    StreamLayout,
    UprightConverter,
    UprightImage,
    UprightPlanes,
    UprightRGB,
    deinterlaced,
)

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.packet import Packet
    from av.video.stream import VideoStream

# Frames that FFmpeg does not decode, by `Source.thinning`.
SKIPPED: tuple[Literal["DEFAULT", "NONREF", "BIDIR"], ...] = ("DEFAULT", "NONREF", "BIDIR")
FALLBACK_FPS = 25.0  # for streams without a declared rate, as in FFmpeg
MAX_MISSING_END_S = 0.5  # s, maximum time from the end of the last frame to the declared end of a complete video
MAX_MISSING_END_WITH_SOUND_S = 2.0  # s, the same for files with sound, which is often longer than the video


@dataclass(slots=True)
class DecodingPass:
    """One pass through the packets of a container, with counts of decoded and damaged frames."""

    container: "InputContainer"
    stream: "VideoStream"  # video stream of the container
    time_base: Fraction  # unit of the stream's time stamps, s
    decoded: int = 0  # number of frames decoded so far
    damaged: int = 0  # number of packets and frames that could not be decoded
    ends_damaged: bool = False  # whether the last frame was damaged
    stop_reason: str | None = None  # reason why reading stopped early; None otherwise
    arrived: float = 0.0  # arrival time of the last packet in s, on the clock of `time.monotonic`
    waited: float = 0.0  # time in s spent waiting for the last packet

    def __iter__(self) -> Iterator[av.VideoFrame]:
        """Yield every decodable frame in display order, deinterlaced."""
        return deinterlaced(self._frames(), self.time_base)

    def _frames(self) -> Iterator[av.VideoFrame]:
        packets = self.container.demux(self.stream)
        while True:
            asked = monotonic()
            try:
                packet = next(packets, None)
            except av.FFmpegError as error:
                self.stop_reason = reason(error)
                yield from self._decode(None)  # frames still in the decoder
                return
            if packet is None:
                return
            self.arrived = monotonic()
            self.waited = self.arrived - asked
            yield from self._decode(packet)

    def _decode(self, packet: "Packet[VideoStream] | None") -> Iterator[av.VideoFrame]:
        try:
            frames = self.stream.decode(packet)
        except av.FFmpegError:
            self.damaged, self.ends_damaged = self.damaged + 1, True
            return
        for frame in frames:
            self.ends_damaged = frame.is_corrupt
            if frame.is_corrupt:
                self.damaged += 1
            else:
                self.decoded += 1
                yield frame


class StreamSource(Source):
    """Frames of a video opened by FFmpeg. Made by `pose.video.open_source`."""

    def __init__(self, target: Target, span: Span, *, keep: bool = False, watch: bool = False) -> None:
        """Open the target and decode the first frame."""
        # `keep` stores the frames of a live source in a temporary H.264 file, so that `replay()` works, with slight
        # compression losses. `watch` drops buffered frames of a live source, and does not scale frames that change
        # their size to the first size.
        self.name = target.display_name
        self.problems: list[str] = []
        self._target = target
        self._span = span
        self._watch = watch
        self._recording: FrameStore | None = None
        self._copy: ServerCopy | None = None
        self._opened: DecodingPass | None = None
        self._lock = threading.Lock()  # reading and closing may begin in two threads at once
        try:
            self._begin()
        except BaseException:
            self.close()
            raise
        if keep and self.info.is_live:
            self._recording = FrameStore(self.info)

    def _begin(self) -> None:
        """Open the target and decode its first frame; if FFmpeg cannot read it from its server, use a local copy."""
        if is_file := names_file(self._target):
            check_server(self._target)
        try:
            self._opened = self._open()
            self._first_frames = self._prepare(self._opened)
            if not (is_file or self.info.is_live):
                check_server(self._target)
        except PoseError as error:
            self._release()
            if not (is_file or isinstance(error, UsageError)):
                check_server(self._target, timeout=1)
            if isinstance(error, UsageError) or isinstance(error.__cause__, av.error.ExitError):
                raise  # a usage error or no response: a copy does not help
            self._copy = ServerCopy.where_needed(self._target)
            if self._copy is None:
                raise
            self._target = self._copy.target
            self._opened = self._open()
            self._first_frames = self._prepare(self._opened)

    def _open(self) -> DecodingPass:
        container = self._target.open()
        try:
            stream = video_stream(container, self._target)
            return DecodingPass(container, stream, time_base_of(stream, self._target))
        except BaseException:
            container.close()
            raise

    def _prepare(self, decoding: DecodingPass) -> Iterator[av.VideoFrame]:
        """Decode the first frame, which determines size, orientation and the origin of time; return all frames."""
        frames = iter(decoding)
        first = next(frames, None)
        if first is None:
            raise PoseError(f"cannot read {self.name}: it contains no frame that can be decoded")
        stream, container = decoding.stream, decoding.container
        streams = moving_streams(container)
        self._number = streams.index(stream)
        self.problems = self._several_streams(streams) if self._target.stream is None else []
        # AVI stores no presentation times; FFmpeg reports the storage order instead.
        self.has_clock = has_time_stamps(container)
        self._uses_dts = "avi" in container.format.name.split(",")
        self._origin = self._stamp(first) or 0
        self._time_base = decoding.time_base
        self._layout = StreamLayout.of(first, stream.sample_aspect_ratio)
        self._declared_s = declared_seconds(container, stream)
        is_live = self._target.is_live or (self._target.is_network and self._declared_s is None)
        local = None if self._target.is_network or is_live else Path(self._target.url.removeprefix("file:"))
        local = local if local is not None and local.is_file() else None
        self._restarts = self._span.start > 0 and local is not None and self._jumps_back()
        if self._restarts:
            self._declared_s = None  # that of one part
        if self._declared_s is not None and not is_live and self._span.start >= self._declared_s:
            raise UsageError(
                f"start: {self._span.start:g} s is not before the end of {self.name} ({self._declared_s:.2f} s)"
            )
        fps = _rate(stream)
        duration, count = self._span.cut(None if is_live else self._declared_s, fps)
        if stream.frames and self._span == Span():
            count = stream.frames
        has_audio = bool(container.streams.audio)
        focal = None if local is None else focal_35mm(local, self._layout.size)
        self.info = VideoInfo(*self._layout.size, fps, decoding.time_base, duration, count, has_audio, is_live, focal)
        if has_audio and not is_live:
            shown = 0.0 if self._uses_dts else float(self._origin * decoding.time_base)
            self.sound = Sound(self._target, shown, self._span)
        return chain([first], frames)

    def _jumps_back(self) -> bool:
        """Return whether time stamps of packets jump back, as in joined transport streams, so that a seek misleads."""
        decoding = self._open()
        with decoding.container as container:
            if av.format.Flags.ts_discont not in av.format.Flags(container.format.flags):
                return False
            stamps = (packet.dts for packet in container.demux(decoding.stream) if packet.dts is not None)
            try:
                return any(later < earlier for earlier, later in pairwise(stamps))
            except av.FFmpegError:  # damaged: decoding everything is right, too
                return True

    def _several_streams(self, streams: "list[VideoStream]") -> list[str]:
        """Return a message that says which of several streams is read."""
        if len(streams) == 1:
            return []
        sizes = ", ".join(f"{number}: {one.width}x{one.height}" for number, one in enumerate(streams))
        return [
            f"{self.name}: stream {self._number}, the largest of {len(streams)} video streams ({sizes}), is read; "
            "choose another with stream"
        ]

    def __iter__(self) -> Iterator[Frame]:
        decoding = self._claim_pass()
        return self.replay() if decoding is None else self._recorded_pass(decoding)

    def late_frames(self) -> Iterator[LateFrame]:
        """See `Source.late_frames`."""
        if self._recording is not None or self.closed:
            return super().late_frames()
        decoding, late = self._claim_pass(), LateRGB(self._layout)
        if decoding is not None:
            shown = self._first_pass(decoding, late)
        else:
            decoding = self._reopen()
            shown = self._upright_frames(decoding, iter(decoding), late, [])
        return (LateFrame(image, index, time) for index, (image, time) in enumerate(shown))

    def _claim_pass(self) -> DecodingPass | None:
        """Return the open container to the first caller, which must read and close it; None to later callers."""
        with self._lock:
            decoding, self._opened = self._opened, None
        return decoding

    def _recorded_pass(self, decoding: DecodingPass) -> Iterator[Frame]:
        try:
            for index, (image, time) in enumerate(self._first_pass(decoding, UprightRGB(self._layout))):
                frame = Frame(image, index, time)
                if self._recording is not None:
                    self._recording.write(frame)
                yield frame
        finally:
            if self._recording is not None:
                self._recording.finish()

    def _first_pass(
        self, decoding: DecodingPass, upright: UprightConverter[UprightImage]
    ) -> Iterator[tuple[UprightImage, float]]:
        count = 0
        for shown in self._upright_frames(decoding, self._first_frames, upright, self.problems):
            yield shown
            count += 1
        if count == 0 and not self.closed:
            where = "" if self._span == Span() else f" between {self._span.start:g} s and {self._span.end:g} s"
            raise PoseError(f"cannot read {self.name}: no frames found{where}")

    def replay(self) -> Iterator[Frame]:
        """Yield the same frames again, as `Source.replay` does."""
        if self.closed:
            return iter(())
        if self._recording is not None:
            return self._recording.frames()
        decoding = self._reopen()
        return self._frames(decoding, iter(decoding), UprightRGB(self._layout), [])

    def replay_planes(self) -> Iterator[PlanarFrame]:
        """Yield the same frames again as planes, as `Source.replay_planes` does."""
        if self.closed:
            return iter(())
        if self._recording is not None:
            return super().replay_planes()
        decoding = self._reopen()
        shown = self._upright_frames(decoding, iter(decoding), UprightPlanes(self._layout), [])
        return (PlanarFrame(planes, index, time) for index, (planes, time) in enumerate(shown))

    def _reopen(self) -> DecodingPass:
        if self.info.is_live:
            raise PoseError(f"{self.name} is a live source: its frames can be read only once")
        return self._open()

    def _frames(
        self, decoding: DecodingPass, frames: Iterator[av.VideoFrame], upright: UprightRGB, problems: list[str]
    ) -> Iterator[Frame]:
        shown = self._upright_frames(decoding, frames, upright, problems)
        return (Frame(image, index, time) for index, (image, time) in enumerate(shown))

    def _upright_frames(
        self,
        decoding: DecodingPass,
        frames: Iterator[av.VideoFrame],
        upright: UprightConverter[UprightImage],
        problems: list[str],
    ) -> Iterator[tuple[UprightImage, float]]:
        """Yield upright images inside the span with times in s; append losses to `problems`, close the container."""
        try:
            if self._span.start > 0 and not (self.info.is_live or self._restarts):
                decoding, frames = self._seek(decoding)
            yield from self._timed(decoding, frames, upright, problems)
        finally:
            decoding.container.close()

    def _seek(self, decoding: DecodingPass) -> tuple[DecodingPass, Iterator[av.VideoFrame]]:
        """Seek the last key frame before the span; return the pass and its frames from there, else from the first."""
        decoding = DecodingPass(decoding.container, decoding.stream, decoding.time_base)
        with suppress(av.FFmpegError):
            decoding.container.seek(self._origin + int(self._span.start / self._time_base), stream=decoding.stream)
            frames = iter(decoding)
            first = next(frames, None)
            time = None if first is None else self._seconds(first)
            if first is not None and time is not None and time <= self._span.start + TIME_TOLERANCE:
                return decoding, chain([first], frames)
        decoding.container.close()  # no index, or a wrong one: decode from the start, so that no frame is lost
        decoding = self._open()
        return decoding, iter(decoding)

    def _stamp(self, frame: av.VideoFrame) -> int | None:
        return frame.dts if self._uses_dts or frame.pts is None else frame.pts

    def _seconds(self, frame: av.VideoFrame) -> float | None:
        stamp = self._stamp(frame)
        if stamp is None or (self.info.is_live and not self.has_clock):
            return None
        return (stamp - self._origin) * self._time_base.numerator / self._time_base.denominator

    def _timed(
        self,
        decoding: DecodingPass,
        frames: Iterator[av.VideoFrame],
        upright: UprightConverter[UprightImage],
        problems: list[str],
    ) -> Iterator[tuple[UprightImage, float]]:
        timeline, backlog = self._timeline(), BacklogFilter(self._watch and self.info.is_live)
        end = 0.0
        for frame in frames:
            if self.closed:
                break
            decoding.stream.codec_context.skip_frame = SKIPPED[self.thinning]
            if backlog.drops(decoding.waited):
                self.left_out += 1
                continue
            time = timeline.add(self._seconds(frame), decoding.arrived)
            end = time + self._duration(frame)
            if self._span.ends_before(time):
                break
            if self._span.starts_after(time):
                continue
            if self._watch and not upright.fits(frame):
                upright = type(upright)(StreamLayout.of(frame, decoding.stream.sample_aspect_ratio))
            try:
                image = upright(frame)
            except av.FFmpegError:
                decoding.damaged += 1
                continue
            self.arrived = decoding.arrived if self.info.is_live else None
            yield image, time
        else:
            self.cut_short = self._missing_end(decoding, end)
            problems.extend([self.cut_short] if self.cut_short else [])
        if decoding.damaged:
            problems.append(f"{self.name}: {decoding.damaged} damaged packets were skipped")
        if timeline.repaired:
            problems.append(f"{self.name}: {timeline.repaired} time stamps that did not increase were corrected")
        if upright.resized:
            problems.append(f"{self.name}: {upright.resized} frames of different size were scaled to that of the first")

    def _timeline(self) -> RepairedTimeline | LiveTimeline:
        """Make the timeline. Live sources use arrival times if they are watched or have no time stamps."""
        if self.info.is_live and (self._watch or not self.has_clock):
            return LiveTimeline(1 / self.info.fps)
        return RepairedTimeline(1 / self.info.fps)

    def _duration(self, frame: av.VideoFrame) -> float:
        """Return the estimated time in s until the next frame."""
        return max(1 / self.info.fps, float((frame.duration or 0) * self._time_base))

    def _missing_end(self, decoding: DecodingPass, end: float) -> str | None:
        """Return a message if the video stopped at `end` s, before its declared end; else None."""
        half = 0.5 / self.info.fps
        stopped = f"{self.name}: stopped after {end:.2f} s"
        if decoding.stop_reason is not None:
            return f"{stopped}: {decoding.stop_reason}"
        if decoding.stream.frames and self._span.start == 0:
            if decoding.decoded < decoding.stream.frames and self._is_short(end, half):
                return f"{stopped}: cut short, {decoding.decoded} of {decoding.stream.frames} frames could be decoded"
        elif self._is_short(end, MAX_MISSING_END_WITH_SOUND_S if self.info.has_audio else max(MAX_MISSING_END_S, half)):
            return f"{stopped}: cut short, {self._declared_s:.2f} s expected"
        if decoding.ends_damaged and self._span == Span() and decoding.container.format.name in ("mpegts", "mpeg"):
            return f"{stopped}: cut short, its last image is damaged"
        if not (self._target.is_network or self._target.is_live) and is_cut_off(Path(self._target.url[len("file:") :])):
            return f"{stopped}: cut short, the file ends before its container does"
        return None

    def _is_short(self, end: float, slack: float) -> bool:
        return self._declared_s is not None and end + slack < self._declared_s

    def content(self) -> str | None:
        """Return the hash of the file and the span, as `Source.content` does."""
        if self._target.is_network or self._target.is_live or self._copy is not None:
            return None
        with open(self._target.display_name, "rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        digest.update(repr(self._span).encode())
        if self._number:
            digest.update(f"stream {self._number}".encode())
        return digest.hexdigest()

    def close(self) -> None:
        """Close the source, as `Source.close` does, and delete temporary files."""
        super().close()
        self._release()

    def _release(self) -> None:
        if (decoding := self._claim_pass()) is not None:
            decoding.container.close()
        if self._recording is not None:
            self._recording.close()
        if self._copy is not None:
            self._copy.close()


def _rate(stream: "VideoStream") -> float:
    """Return the declared frame rate, or `FALLBACK_FPS` if none or outside of 1/60 to 1000 (a broken header)."""
    rates = (float(rate) for rate in (stream.average_rate, stream.guessed_rate) if rate)
    return next((rate for rate in rates if 1 / 60 <= rate <= 1000), FALLBACK_FPS)
