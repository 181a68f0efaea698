"""Copies of videos that every browser plays, and in which it finds a frame fast."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pose.video.planes import Planes

MAX_SIDE = 960  # px of a copy
KEY_INTERVAL_S = 0.25  # between the key frames of a copy
# A seek decodes the frames since the last key frame. More pixels than this take longer than 0.1 s.
MAX_SEEK_PIXELS = 30e6


def is_quick(video: Path) -> bool:
    """Return whether browsers play a video as it is, and find each frame of it fast."""
    import av

    try:
        with av.open(f"file:{video}") as container:
            stream = container.streams.video[0]
            context = stream.codec_context
            if "mp4" not in container.format.name or context.name != "h264":
                return False
            if len(container.streams.video) > 1 or context.pix_fmt not in ("yuv420p", "yuvj420p"):
                return False
            longest = frames = 0
            for entry in stream.index_entries:
                frames = 1 if entry.is_keyframe else frames + 1
                longest = max(longest, frames)
            return 0 < longest * stream.width * stream.height <= MAX_SEEK_PIXELS
    except (av.FFmpegError, IndexError):
        return False


def write_preview(video: Path, target: Path) -> None:
    """Write a copy of a video of at most `MAX_SIDE` px, with times and sound; PoseError if it fails."""
    from pose.video import VideoWriter, open_source

    with open_source(str(video)) as source:
        scale = min(1.0, MAX_SIDE / max(source.info.size))
        width, height = (max(2, 2 * round(scale * side / 2)) for side in source.info.size)
        frames = source.replay_planes()
        first = next(frames)
        with VideoWriter(
            target, (width, height), fps=source.info.fps, time_base=source.info.time_base,
            colours=first.planes.colours, sound=source.sound, key_interval_s=KEY_INTERVAL_S,
        ) as writer:  # fmt: skip
            writer.write_planes(_scaled(first.planes, (width, height)), first.time)
            for frame in frames:
                writer.write_planes(_scaled(frame.planes, (width, height)), frame.time)


def _scaled(planes: "Planes", size: tuple[int, int]) -> "Planes":
    import cv2

    small = type(planes).empty(size, planes.colours)
    for plane, target in ((planes.y, small.y), (planes.u, small.u), (planes.v, small.v)):
        cv2.resize(plane, target.shape[::-1], dst=target, interpolation=cv2.INTER_AREA)
    return small
