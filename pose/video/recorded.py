"""Recording date and timecode from the metadata of a video."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

import av

from pose.errors import PoseError
from pose.video.container import Target

DATES = ("com.apple.quicktime.creationdate", "creation_time", "date")
_TIMECODE = re.compile(r"(\d\d):(\d\d):(\d\d)[:;](\d\d)")


@dataclass(frozen=True, slots=True)
class Recorded:
    """Recording time of the first image of a video."""

    # Recording date in s since 1970 according to the camera, accurate to one or two seconds. Some cameras store the end
    # of the recording instead. None if unknown.
    date: float | None = None
    timecode: float | None = None  # time in s since midnight, accurate to a frame. None if unknown


def recorded_at(target: Target) -> Recorded:
    """Read the recording time from the metadata of a video; values that cannot be read are None."""
    try:
        with target.open() as container:
            metadata: dict[str, str] = dict(container.metadata)
            fps = Fraction(30)
            for stream in container.streams:
                metadata = {**stream.metadata, **metadata}
                rate = getattr(stream, "average_rate", None)
                fps = rate if rate else fps
    except (av.FFmpegError, PoseError):
        return Recorded()
    return Recorded(read_date(metadata), read_timecode(metadata.get("timecode", ""), float(fps)))


def read_date(metadata: Mapping[str, str]) -> float | None:
    """Return the first date after 1980 among the keys `DATES`, in s since 1970; None if there is none."""
    # Earlier dates are ignored, since cameras with an unset clock write 1970 or 1904.
    for key in DATES:
        try:
            found = datetime.fromisoformat(metadata[key].replace("Z", "+00:00")).timestamp()
        except (KeyError, ValueError, OverflowError, OSError):
            continue
        if found > 315_532_800:
            return found
    return None


def read_timecode(text: str, fps: float) -> float | None:
    """Convert a timecode such as `10:22:33:12`, whose last number counts frames, to s; None if invalid."""
    found = _TIMECODE.fullmatch(text.strip())
    if found is None or not fps > 0:
        return None
    hours, minutes, seconds, frames = (int(part) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds + frames / max(round(fps), 1)
