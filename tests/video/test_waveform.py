"""The sound of a video as numbers, in step with its images."""

import av
import numpy as np
import pytest

from pose.video import open_source
from pose.video.container import Target
from pose.video.recorded import Recorded, recorded_at
from pose.video.waveform import RATE, read_waveform


def write_clip(path, click: float | None, metadata=None):
    """Two seconds of black with a click in the sound; no sound if None."""
    with av.open(str(path), "w") as output:
        output.metadata.update(metadata or {})
        pictures = output.add_stream("mpeg4", rate=10)
        pictures.width, pictures.height, pictures.pix_fmt = 64, 48, "yuv420p"
        sound = None if click is None else output.add_stream("aac", rate=48000, layout="mono")
        for _ in range(20):
            output.mux(pictures.encode(av.VideoFrame.from_ndarray(np.zeros((48, 64, 3), np.uint8))))
        if sound is not None:
            wave = np.zeros(96000, np.float32)
            spot = wave[int(click * 48000) :][:480]
            spot[:] = np.random.default_rng(1).uniform(-0.9, 0.9, len(spot))
            for first in range(0, len(wave), 1024):
                frame = av.AudioFrame.from_ndarray(wave[None, first : first + 1024], "fltp", "mono")
                frame.sample_rate, frame.pts = 48000, first
                output.mux(sound.encode(frame))
            output.mux(sound.encode(None))
        output.mux(pictures.encode(None))
    return path


def test_click_position_is_found_in_the_waveform(tmp_path):
    with open_source(str(write_clip(tmp_path / "clip.mp4", 1.2))) as source:
        wave = read_waveform(source.sound)
    at = wave.first + np.argmax(np.abs(wave.samples) > 0.2) / RATE
    assert at == pytest.approx(1.2, abs=0.03)
    assert wave.seconds == pytest.approx(2.0, abs=0.1)


def test_a_silent_video_has_no_waveform(tmp_path):
    with open_source(str(write_clip(tmp_path / "clip.mp4", 5.0))) as source:
        assert read_waveform(source.sound) is None


def test_recording_time_is_read_from_metadata(tmp_path):
    path = write_clip(tmp_path / "clip.mov", None, {"creation_time": "2026-05-04T10:00:00.000000Z"})
    assert recorded_at(Target(f"file:{path}", str(path))).date == pytest.approx(1777888800.0)
    (tmp_path / "no.mp4").write_bytes(b"nothing")
    assert recorded_at(Target(f"file:{tmp_path / 'no.mp4'}", "no.mp4")) == Recorded()
