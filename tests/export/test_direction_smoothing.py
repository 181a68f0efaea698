"""Directions of heads and feet of characters do not jitter."""

import numpy as np

from pose.body.soles import StreamingSmoother, smoothed

TIMES = np.arange(90) / 30


def test_smoothing_keeps_a_constant_and_calms_noise():
    rng = np.random.default_rng(0)
    constant, noise = np.tile([0.1, 0.5, 0.0], (90, 1)), 0.1 * rng.standard_normal((90, 3))
    stream = StreamingSmoother(0.1)
    in_parts = np.concatenate([stream.step(constant[:7], TIMES[:7]), stream.step(constant[7:], TIMES[7:])])
    np.testing.assert_allclose(in_parts, constant)
    np.testing.assert_allclose(smoothed(constant, TIMES, 0.07), constant)
    for calm in (StreamingSmoother(0.1).step(noise, TIMES), smoothed(noise, TIMES, 0.07)):
        assert np.diff(calm, axis=0).std() < np.diff(noise, axis=0).std() / 3


def test_window_smoothing_has_no_delay_and_streaming_has():
    ramp = TIMES[:, None].copy()
    middle = slice(20, 70)
    np.testing.assert_allclose(smoothed(ramp, TIMES, 0.07)[middle], ramp[middle], atol=1e-9)
    behind = (ramp - StreamingSmoother(0.1).step(ramp, TIMES))[middle]
    np.testing.assert_allclose(behind, 0.1, atol=0.02)
