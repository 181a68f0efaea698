"""Smoothing must not delay, must not slow constant motion, and must take away what is too fast."""

import numpy as np
import pytest

from pose.structures.smooth import OneEuro, zero_phase

TIMES = np.arange(150) / 30


def test_constant_speed_is_unchanged():
    path = np.outer(TIMES, [1.0, -2.0, 0.5]) + np.array([3, 0, 1])
    np.testing.assert_allclose(zero_phase(path, TIMES, 4.0), path, atol=1e-9)


@pytest.mark.parametrize(("hertz", "gain"), [(1.0, 1.0), (6.0, 0.5), (12.0, 1 / 17)])
def test_gain_equals_a_double_butterworth(hertz, gain):
    wave = np.sin(2 * np.pi * hertz * TIMES)
    smooth = zero_phase(wave, TIMES, 6.0)[30:-30]
    assert np.abs(smooth - gain * wave[30:-30]).max() < 0.02


def test_smoothing_does_not_depend_on_frame_rate():
    def at(times):
        return zero_phase(np.sin(2 * np.pi * 4 * times), times, 4.0)

    many = np.arange(600) / 120
    np.testing.assert_allclose(at(many)[::4][:-6], at(TIMES)[:-6], atol=0.02)


def test_uneven_times_are_smoothed(rng):
    times = np.cumsum(rng.uniform(0.02, 0.05, 200))
    assert np.abs(zero_phase(3 * times, times, 4.0) - 3 * times).max() < 1e-9
    wave = np.sin(2 * np.pi * 0.5 * times)
    assert np.abs(zero_phase(wave, times, 5.0) - wave)[20:-20].max() < 0.01


def test_one_euro_suppresses_jitter_and_follows_motion(rng):
    still, moving = OneEuro(1.0, 1.0), OneEuro(1.0, 1.0)
    noise = 0.01 * rng.standard_normal(len(TIMES))
    calm = np.array([still(np.array([x]), t)[0] for x, t in zip(noise, TIMES, strict=True)])
    fast = np.array([moving(np.array([3 * t]), t)[0] for t in TIMES])
    assert calm[30:].std() < 0.5 * noise[30:].std()
    assert np.abs(fast - 3 * TIMES)[60:].max() < 0.15  # m behind at 3 m/s: 50 ms
