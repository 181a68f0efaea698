"""Opening of files, network streams and cameras with FFmpeg, with time limits; local copies of remote files.

FFmpeg must seek in many videos (the index of an MP4 is often at its end), which requires HTTP range requests. Simple
servers, such as Python's own, do not support them.
"""

import errno
import http.client
import os
import re
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import av
from av.stream import Disposition

from pose.errors import PoseError, UsageError, without_credentials

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.stream import Stream
    from av.video.stream import VideoStream

TIMEOUT = 10.0  # s to wait for a network stream to open, and for each packet
NO_ANSWER = f"no answer within {TIMEOUT:.0f} s"
FILE_PROTOCOLS = "file,crypto,data"
NETWORK_PROTOCOLS = "http,https,tcp,tls,rtsp,rtsps,rtp,srtp,udp,crypto"
NETWORK_SCHEMES = ("http", "https", "rtsp", "rtsps", "rtp", "udp")
MAX_PIXELS_IN_ONE_THREAD = 1920 * 1088  # larger images are decoded in several threads
MAX_PIXELS_IN_THREADS = 1 << 25  # of the images of these threads together, since each thread keeps several
NO_TIME_STAMPS = 0x0080  # FFmpeg's AVFMT_NOTIMESTAMPS
# Demuxers that render text or programs, or open further files; they are not recorded video.
REFUSED_FORMATS = frozenset({"tty", "bin", "xbin", "adf", "idf", "lavfi", "concat", "hls", "dash", "sdp", "imf"})

_HAS_TITLE_ERRORS = int(av.__version__.partition(".")[0]) < 19  # `av.open` has `metadata_errors` before PyAV 19


@dataclass(frozen=True, slots=True)
class Target:
    """A file, address or device that FFmpeg can open."""

    url: str  # name for FFmpeg: a file with the prefix `file:`, an address, or a device
    display_name: str  # name in messages, without passwords
    is_network: bool = False  # whether it is a network address
    is_live: bool = False  # whether frames arrive in real time
    format: str | None = None  # FFmpeg's name of the input format; None to detect it
    options: dict[str, str] = field(default_factory=dict)  # options for FFmpeg
    stream: int | None = None  # number of the video stream, from 0 and without covers; None for the largest

    def open(self) -> "InputContainer":
        """Open the container; PoseError if it cannot be opened; the message is one line with the reason."""
        protocols = NETWORK_PROTOCOLS if self.is_network else FILE_PROTOCOLS
        options = {"protocol_whitelist": protocols, **self.options} if self.format is None else self.options
        timeout = (TIMEOUT, TIMEOUT) if self.is_network or self.is_live else None
        began = monotonic()
        try:
            if _HAS_TITLE_ERRORS:  # a title in another encoding does not invalidate a video
                container = av.open(
                    self.url, "r", self.format, container_options=options, timeout=timeout, metadata_errors="replace"
                )
            else:
                container = av.open(self.url, "r", self.format, container_options=options, timeout=timeout)
        except av.FFmpegError as error:
            if timeout and monotonic() - began >= TIMEOUT:  # for RTSP, FFmpeg reports a timeout as invalid data
                raise PoseError(f"cannot read {self.display_name}: {NO_ANSWER}") from error
            if self.is_network and error.errno == errno.EIO:  # FFmpeg gives no other information about an unknown host
                why = "no connection, or it broke off (is the address right?)"
                raise PoseError(f"cannot read {self.display_name}: {why}") from error
            raise PoseError(f"cannot read {self.display_name}: {reason(error)}") from error
        if not self.is_network and not REFUSED_FORMATS.isdisjoint(container.format.name.split(",")):
            container.close()
            raise PoseError(f"cannot read {self.display_name}: not a video file ({container.format.long_name})")
        return container


def reason(error: av.FFmpegError) -> str:
    """Describe an FFmpeg error for users, without the address, which may contain a password."""
    if isinstance(error, av.error.ExitError):
        return NO_ANSWER
    if isinstance(error, av.error.InvalidDataError | av.error.PatchWelcomeError):
        return "not a video, or cut short before its index (FFmpeg finds no readable stream)"
    if isinstance(error, av.error.EOFError):
        return "it contains no complete frame"
    text = error.strerror or type(error).__name__
    return text[:1].lower() + text[1:]


def file_target(path: Path) -> Target:
    """Make the target of a video file."""
    display_name = str(path)
    if not path.is_file():
        absent = "a symbolic link without a target" if path.is_symlink() else "no such file"
        raise UsageError(f"cannot read {display_name}: {'not a file' if path.exists() else absent}")
    if not os.access(path, os.R_OK):
        raise PoseError(f"cannot read {display_name}: permission denied")
    if path.stat().st_size == 0:
        raise PoseError(f"cannot read {display_name}: the file is empty")
    return Target(f"file:{path}", display_name)  # with the prefix, a name such as "a:b.mp4" is not taken for a protocol


def url_target(url: str) -> Target:
    """Make the target of a network stream; RTSP uses TCP if supported, as it passes firewalls and loses no packets."""
    try:
        parts = urlsplit(url)
        named = parts.port != 0 and bool(parts.netloc)  # an invalid port raises
    except ValueError as error:
        # The address is not shown, because it may contain a password.
        raise UsageError(f"cannot read this address: {str(error).lower()}") from error
    if not named:
        raise UsageError(f"cannot read this address: {parts.scheme}:// must be followed by a host, and a port above 0")
    is_rtsp = parts.scheme.startswith("rtsp")
    options = {"rtsp_flags": "prefer_tcp"} if is_rtsp else {}
    is_live = not parts.scheme.startswith("http")
    return Target(url, without_credentials(url), is_network=True, is_live=is_live, options=options)


def camera_target(number: int) -> Target:
    """Make the target of camera `number` of this computer."""
    display_name = f"camera {number}"
    if sys.platform == "darwin":
        return Target(f"{number}:none", display_name, is_live=True, format="avfoundation", options={"framerate": "30"})
    if sys.platform == "win32":
        cameras = [device.name for device in av.enumerate_input_devices("dshow") if "video" in device.media_types]
        if number >= len(cameras):
            raise UsageError(f"cannot read {display_name}: {_listed(cameras)}")
        return Target(f"video={cameras[number]}", display_name, is_live=True, format="dshow")
    device = Path(f"/dev/video{number}")
    if not device.exists():
        raise UsageError(f"cannot read {display_name}: no such device; {_listed(_linux_cameras())}")
    return Target(str(device), display_name, is_live=True, format="v4l2")


def _linux_cameras() -> list[str]:
    numbers = (re.fullmatch(r"video(\d+)", path.name) for path in Path("/dev").glob("video*"))
    return [match[1] for match in numbers if match]


def _listed(cameras: list[str]) -> str:
    return f"cameras here: {', '.join(sorted(cameras))}" if cameras else "no camera is connected"


def moving_streams(container: "InputContainer") -> list["VideoStream"]:
    """Return the video streams without cover images."""
    return [stream for stream in container.streams.video if not stream.disposition & Disposition.attached_pic]


def video_stream(container: "InputContainer", target: Target) -> "VideoStream":
    """Return the chosen or the largest video stream, set to decode in threads that neither delay nor differ."""
    display_name, streams = target.display_name, moving_streams(container)
    if not streams:
        kind = "only sound" if container.streams.audio else "no video"
        raise PoseError(f"cannot read {display_name}: the file has {kind}")
    if target.stream is None:
        decodable = [stream for stream in streams if stream.codec_context is not None]
        stream = max(decodable, key=lambda one: one.width * one.height, default=streams[0])
    elif target.stream < len(streams):
        stream = streams[target.stream]
    else:
        count = "1 video stream" if len(streams) == 1 else f"{len(streams)} video streams"
        raise UsageError(f"stream: {display_name} has {count}, numbered from 0; got {target.stream}")
    if stream.codec_context is None:
        raise PoseError(f"cannot read {display_name}: its video codec is not supported")
    is_live = target.is_live or (target.is_network and declared_seconds(container, stream) is None)
    # Frame threads would delay live frames, and decode damaged files differently each time.
    is_large = stream.width * stream.height > MAX_PIXELS_IN_ONE_THREAD and not container.format.name.startswith("mpeg")
    stream.thread_type = "SLICE"
    if is_large and not is_live:
        stream.thread_type = "AUTO"
        threads = MAX_PIXELS_IN_THREADS // (stream.width * stream.height)
        stream.codec_context.thread_count = max(1, min(threads, os.cpu_count() or 1))
    return stream


def time_base_of(stream: "Stream", target: Target) -> Fraction:
    """Return the time base of a stream: the unit of its time stamps in s."""
    if stream.time_base is None:
        raise PoseError(f"cannot read {target.display_name}: its {stream.type} has no time base")
    return stream.time_base


def declared_seconds(container: "InputContainer", stream: "VideoStream") -> float | None:
    """Return the declared duration of the stream in s, or else that of the container; None if neither is declared."""
    if stream.duration is not None and stream.duration > 0 and stream.time_base is not None:
        return float(stream.duration * stream.time_base)
    if container.duration is not None and container.duration > 0:
        return container.duration / av.time_base
    return None


def has_time_stamps(container: "InputContainer") -> bool:
    """Return whether a container's format stores time stamps; without, FFmpeg assumes 25 frames/s (MJPEG over HTTP)."""
    return not container.format.flags & NO_TIME_STAMPS


_FILE = re.compile(r"https?://[^?#]*\.(mp4|m4v|mov|mkv|webm|avi|gif|webp|mpg|wmv|flv|ogv|3gp)([?#]|$)", re.IGNORECASE)
MIN_PORTION = 1 << 14  # minimum number of bytes of a response, unless the file is shorter
BLOCK = 1 << 18  # bytes per read


def names_file(target: Target) -> bool:
    """Return whether an HTTP address names a video file. Others may be cameras, some of which accept one connection."""
    return _FILE.match(target.url) is not None


def check_server(target: Target, timeout: float = TIMEOUT) -> None:
    """Check that an HTTP server does not answer with so few bytes that thousands of requests would follow.

    Raises:
        PoseError: If it does.
    """
    if not target.url.lower().startswith(("http://", "https://")):
        return
    with suppress(OSError, http.client.HTTPException, ValueError), _whole_file(target, timeout) as response:
        found = re.fullmatch(r"bytes 0-(\d+)/(\d+)", response.headers.get("Content-Range", "").strip())
        if found is not None and (portion := int(found[1]) + 1) < min(int(found[2]), MIN_PORTION):
            raise PoseError(f"cannot read {target.display_name}: its server sends too little per request ({portion} B)")


def _whole_file(target: Target, timeout: float = TIMEOUT) -> http.client.HTTPResponse:
    """Request all bytes of a file on a server."""
    request = urllib.request.Request(target.url, headers={"Range": "bytes=0-", "User-Agent": "pose-run"})
    response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=timeout)
    return response


class ServerCopy:
    """A temporary copy of a file on a server; messages show the name of the original."""

    def __init__(self, target: Target, save: Callable[[Path], None]) -> None:
        """Make the copy by `save`, which writes the file to a path."""
        self._folder = Path(tempfile.mkdtemp(prefix="pose-copy-"))
        path = self._folder / "video"
        self.target = Target(f"file:{path}", target.display_name, stream=target.stream)  # target that opens the copy
        try:
            save(path)
        except OSError as error:
            self.close()
            raise PoseError(
                f"cannot copy {target.display_name} to {self._folder}: {error.strerror or error}"
            ) from error
        except BaseException:
            self.close()
            raise

    @classmethod
    def where_needed(cls, target: Target) -> Self | None:
        """Copy a file whose server does not support range requests; return None for everything else."""
        if not target.url.lower().startswith(("http://", "https://")):
            return None
        try:
            response = _whole_file(target)
        except (OSError, http.client.HTTPException, ValueError):
            return None
        with response:
            if response.status != http.HTTPStatus.OK or not response.headers.get("Content-Length"):
                return None

            def save(path: Path) -> None:
                with path.open("wb") as file:
                    shutil.copyfileobj(response, file, BLOCK)

            return cls(target, save)

    def close(self) -> None:
        """Delete the copy."""
        shutil.rmtree(self._folder, ignore_errors=True)
