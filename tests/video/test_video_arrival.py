"""The clock of a live camera, and the sound of a video in step with its images."""

import av
import numpy as np
import pytest

from pose.video import open_source
from pose.video.arrival import WINDOW_S, LiveTimeline
from pose.video.container import Target
from pose.video.recorded import Recorded, recorded_at
from pose.video.waveform import RATE, read_waveform

FPS = 25.0


def followed(stamps, arrived) -> np.ndarray:
    timeline = LiveTimeline(1 / FPS)
    times = np.array([timeline.add(stamp, at) for stamp, at in zip(stamps, arrived, strict=True)])
    assert (np.diff(times) > 0).all()
    return times


def frames(seconds: float) -> np.ndarray:
    return np.arange(round(seconds * FPS)) / FPS


def test_arrival_jitter_does_not_change_even_stamps(rng):
    real = frames(60)
    times = followed(1000 + real, 7 + real + rng.uniform(0, 0.03, len(real)))
    np.testing.assert_allclose(np.diff(times), 1 / FPS, atol=0.002)
    assert abs(times[-1] - real[-1]) < 0.03


def test_stalled_images_keep_their_timestamps():
    """The network stands still for 4 s; then everything comes at once."""
    real = frames(20)
    arrived = np.where((real > 8) & (real < 12), 12, real)
    np.testing.assert_allclose(followed(real, arrived), real, atol=1e-6)


@pytest.mark.parametrize("jump", [3600.0, 5.0, -5.0, -3600.0])
def test_clock_change_is_followed(jump):
    real = frames(20)
    times = followed(np.where(real < 10, real, real + jump), real)
    np.testing.assert_allclose(times, real, atol=1e-6)


def test_frozen_clock_is_caught_up():
    """A camera stops for 3 s, with its clock."""
    stamps = frames(20)
    real = np.where(stamps < 8, stamps, stamps + 3)
    times = followed(stamps, real)
    assert np.abs(times - real)[real > 11 + 2 * WINDOW_S].max() < 1e-6
    assert (times - real).max() < 1e-6


@pytest.mark.parametrize("rate", [0.995, 1.0002, 1.005])
def test_clock_drift_is_compensated(rate, rng):
    real = frames(600)
    times = followed(rate * real, real + rng.uniform(0, 0.01, len(real)))
    assert np.abs(times - real).max() < 0.06
    assert np.abs(np.diff(times) * FPS - 1).max() < 0.05  # not visible


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
