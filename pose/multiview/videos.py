"""Names of several cameras' videos, and checks before any video is opened. Fast to import."""

from collections.abc import Sequence
from pathlib import Path

MIN_CAMERAS, MAX_CAMERAS = 2, 8


def unique_names(names: Sequence[str]) -> list[str]:
    """Make names unique by numbering equal ones: left, left, right becomes left-1, left-2, right."""
    return [name if names.count(name) == 1 else f"{name}-{row + 1}" for row, name in enumerate(names)]


def camera_names(videos: Sequence[str]) -> list[str]:
    """Return unique names of the cameras, which are made from the file names of their videos."""
    return unique_names([Path(video).stem for video in videos])


def source_names(names: Sequence[str]) -> list[str]:
    """Return unique camera names for videos or live sources. Names of files lose their suffix."""
    return unique_names([Path(name).stem if Path(name).suffix else name for name in names])


def repeated(videos: Sequence[str]) -> str | None:
    """Return the first video or stream that is given twice, also by two paths to one file; None without duplicates."""
    for row, video in enumerate(videos):
        if any(video == other or _same_file(Path(video), Path(other)) for other in videos[:row]):
            return video
    return None


def _same_file(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and one.samefile(other)
