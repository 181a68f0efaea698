"""Opening of any kind of video source by path, address or camera number."""

import math
import os
from dataclasses import replace
from numbers import Real
from pathlib import Path

from pose.errors import PoseError, UsageError
from pose.structures.defaults import IMAGE_FPS
from pose.utils.shown import shown
from pose.video.container import NETWORK_SCHEMES, camera_target, file_target, url_target
from pose.video.decode import StreamSource
from pose.video.images import WILDCARDS, ImageSource, is_still
from pose.video.source import Source, Span


def open_source(
    spec: str | Path,
    *,
    start: float | None = None,
    end: float | None = None,
    image_fps: float = IMAGE_FPS,
    keep: bool = False,
    watch: bool = False,
    stream: int | None = None,
) -> Source:
    """Open a video file, a folder or glob of images, an http(s), RTSP, RTP or UDP address, or a camera number.

    Use the source in a `with` statement or call `close()`. Frames from `start` to `end` s after the first one are
    returned, with unchanged times. `image_fps` is the rate of images. `keep` stores the frames of a live source, so
    that `replay()` works. `watch`: only the current view matters; buffered frames of a live source are dropped, and
    frames that change their size are not scaled to the first size. `stream` is the number of the video stream, from 0
    and without covers; default: that with the largest images.

    Raises:
        UsageError: If an argument is invalid.
        PoseError: If the source cannot be opened; the message names the source and the reason.
    """
    if not isinstance(spec, str | Path | int):
        raise UsageError(f"source: expected a path, an address or a camera number, got {type(spec).__name__}")
    spec = str(spec)
    span = _span(start, end)
    if stream is not None and not (isinstance(stream, int) and stream >= 0):
        raise UsageError(f"stream: expected a number from 0, got {shown(stream)}")
    if not 0 < image_fps <= 1000:
        raise UsageError(f"image_fps: must be above 0 and at most 1000, got {image_fps:g}")
    scheme, separator, _ = spec.partition("://")
    if separator:
        if scheme.lower() not in NETWORK_SCHEMES:
            raise UsageError(f"cannot read {scheme}:// addresses; supported: {', '.join(NETWORK_SCHEMES)}")
        return StreamSource(replace(url_target(spec), stream=stream), span, keep=keep, watch=watch)
    try:
        return _local_source(spec, span, image_fps, keep, watch, stream)
    except OSError as error:  # for example a folder without permission, or a name that is too long
        raise PoseError(f"cannot read {spec}: {(error.strerror or str(error)).lower()}") from error


def check_source(spec: str) -> str:
    """Check an address, camera or file without connecting to it; return its name. UsageError if invalid."""
    scheme, separator, _ = spec.partition("://")
    if separator and scheme.lower() in NETWORK_SCHEMES:
        return url_target(spec).display_name
    if is_camera(spec):
        return camera_target(int(spec)).display_name
    with open_source(spec) as source:
        return source.name


def is_camera(spec: str) -> bool:
    """Return whether `spec` is a camera number and not the name of a file."""
    return spec.isascii() and spec.isdigit() and not Path(spec).exists()


def _local_source(spec: str, span: Span, image_fps: float, keep: bool, watch: bool, stream: int | None) -> Source:
    """Open a path or camera number; existing files have priority over other meanings of a name."""
    path = Path(spec)
    if spec.startswith("~") and not path.exists():  # shells do not expand `~` after `=`, and YAML never does
        spec = os.path.expanduser(spec)
        path = Path(spec)
    if path.is_dir() or is_still(path):
        return ImageSource(spec, span, fps=image_fps)
    if path.exists():
        return StreamSource(replace(file_target(path), stream=stream), span, watch=watch)
    if is_camera(spec):
        return StreamSource(camera_target(int(spec)), span, keep=keep, watch=watch)
    if WILDCARDS.search(spec):
        return ImageSource(spec, span, fps=image_fps)
    return StreamSource(file_target(path), span)


def _span(start: float | None, end: float | None) -> Span:
    for name, value in (("start", start), ("end", end)):
        if not isinstance(value, Real | None):
            raise UsageError(f"{name}: expected a number, got {shown(repr(value))}")
    span = Span(0.0 if start is None else start, math.inf if end is None else end)
    if not 0 <= span.start < math.inf:
        raise UsageError(f"start: expected 0 s or more, got {span.start:g}")
    if not span.end > span.start:
        raise UsageError(f"end: {span.end:g} s is not after the start, {span.start:g} s")
    return span
