"""What the tests of `pose-batch` share: short clips of the real ones."""

from pathlib import Path

import av
import pytest


@pytest.fixture(scope="session")
def short_clip():
    """short_clip(video, target, seconds): the beginning of a video, not encoded again. front: with its index first."""

    def cut(video: Path, target: Path, seconds: float, front: bool = False) -> Path:
        options = {"movflags": "faststart"} if front else {}
        target.parent.mkdir(parents=True, exist_ok=True)
        with av.open(str(video)) as source, av.open(str(target), "w", options=options) as written:
            stream = written.add_stream_from_template(source.streams.video[0])
            for packet in source.demux(video=0):
                if packet.dts is not None and packet.dts * packet.time_base < seconds:
                    packet.stream = stream
                    written.mux(packet)
        return target

    return cut


@pytest.fixture
def at_hand(weights_dir, monkeypatch) -> None:
    monkeypatch.setenv("POSE_WEIGHTS_DIR", str(weights_dir))
