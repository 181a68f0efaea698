"""The clock of a live camera is followed where it is right, and led back where it is not."""

import numpy as np
import pytest

from pose.video.arrival import WINDOW_S, LiveTimeline

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
