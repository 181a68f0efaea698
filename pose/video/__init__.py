"""Reading and writing video.

    with open_source("clip.mp4") as source:
        for frame in source:
            ...

`open_source` reads files, images, network streams and cameras; `VideoWriter` writes H.264 with the time stamps and
sound of the source.
"""

from pose.video.encode import VideoWriter
from pose.video.opening import check_source, open_source
from pose.video.source import Source, VideoInfo

__all__ = ["Source", "VideoInfo", "VideoWriter", "check_source", "open_source"]
