"""The beginning of a clip, not encoded again."""

from pathlib import Path

import av


def beginning(video: Path, target: Path, seconds: float, front: bool = False) -> Path:
    """Write the first seconds of a video to `target`. front: with its index first."""
    options = {"movflags": "faststart"} if front else {}
    target.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(video)) as source, av.open(str(target), "w", options=options) as written:
        stream = written.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.dts is not None and packet.dts * packet.time_base < seconds:
                packet.stream = stream
                written.mux(packet)
    return target
