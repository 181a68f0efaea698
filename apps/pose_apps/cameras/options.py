"""Options for several cameras."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pose.errors import UsageError
from pose.multiview.videos import MAX_CAMERAS, MIN_CAMERAS, camera_names, repeated
from pose.utils.options import Options, option

AUTO = "auto"
VIDEO_SUFFIXES = frozenset({".mp4", ".mov", ".mkv", ".avi", ".webm", ".m4v", ".mts", ".mpg", ".mpeg", ".3gp"})
CAMERAS_HELP = (
    "calibration file of several cameras, or auto: the videos of a folder are cameras; default: calibrate from people"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CamerasConfig(Options):
    """Options that describe several cameras: their calibration, distance and start times."""

    cameras: str | None = option(None, CAMERAS_HELP)
    distance: str | None = option(None, "distance between two cameras in m, such as cam1,cam2=3.4")
    offsets: str | None = option(
        None,
        "start times of the videos on a common clock in seconds, in their order, such as 0,1.25; default: estimated",
    )

    frame: Literal["lab", "people"] = option("lab", "vertical and floor: those of the calibration file, or of people")

    def __post_init__(self) -> None:
        Options.__post_init__(self)
        read_offsets(self.offsets)

    @property
    def file(self) -> Path | None:
        """Path of the calibration file; None if the cameras are to be calibrated."""
        return None if self.cameras in (None, AUTO) else Path(str(self.cameras))


def read_offsets(text: str | None) -> list[float] | None:
    """Parse the start times of videos in seconds, such as `0,1.25`; None if unknown."""
    if text is None:
        return None
    try:
        values = [float(word) for word in str(text).split(",")]
    except ValueError:
        values = []
    if not values or not all(abs(value) < 1e5 for value in values):
        raise UsageError(f"offsets: expected seconds separated by commas, such as 0,1.25, got {text!r}")
    return values


def read_distance(text: str, names: Sequence[str]) -> tuple[int, int, float]:
    """Parse two cameras (`cam` and number, or name) and their distance in m, such as `cam1,cam2=3.4`."""
    pair, _, metres = str(text).partition("=")
    words = [word.strip() for word in pair.split(",")]
    known = {f"cam{row + 1}": row for row in range(len(names))} | {
        Path(name).stem: row for row, name in enumerate(names)
    }
    try:
        value = float(metres)
    except ValueError:
        value = 0.0
    if len(words) != 2 or not 0.01 <= value <= 1000 or not all(word in known for word in words) or words[0] == words[1]:
        raise UsageError(
            f"distance: expected two cameras and metres, such as cam1,cam2=3.4, got {text!r}; "
            f"cameras: {', '.join(known)}"
        )
    return known[words[0]], known[words[1]], value


def camera_videos(videos: Sequence[str], cameras: str | None) -> list[str]:
    """Return the video file of each camera: in the given order, or, with `--cameras`, of a folder by name."""
    if len(videos) == 1:
        folder = Path(videos[0])
        if cameras is None or not folder.is_dir():
            raise UsageError(
                f"{videos[0]}: only one video; expected {MIN_CAMERAS} to {MAX_CAMERAS}, or a folder of them"
            )
        videos = sorted(str(path) for path in folder.iterdir() if path.suffix.lower() in VIDEO_SUFFIXES)
    if not MIN_CAMERAS <= len(videos) <= MAX_CAMERAS:
        raise UsageError(
            f"got {len(videos)} videos; allowed: {MIN_CAMERAS} to {MAX_CAMERAS}; use pose-batch for separate clips"
        )
    for video in videos:
        if not Path(video).is_file():
            raise UsageError(f"{video}: no such file; with several cameras, each must be a video file")
    if (twice := repeated(videos)) is not None:
        raise UsageError(f"{twice}: given twice; each camera needs a different video")
    return list(videos)


def joint_folder(videos: Sequence[str]) -> Path:
    """Return the default folder of the results, which is beside the first video and named after all videos."""
    first = Path(videos[0])
    if len(videos) == 1:
        return first.resolve().with_name(f"{first.resolve().name}-poses")
    return first.with_name("+".join(camera_names(videos))[:100])


NO_CAMERAS = CamerasConfig()
