"""Rates and percentiles of known latencies."""

import math

import numpy as np
import pytest

from pose.live import meter as module
from pose.live.meter import BIN_MS, RECENT_SECONDS, Meter


@pytest.fixture
def now(monkeypatch):
    """A clock that the test sets."""
    clock = [0.0]
    monkeypatch.setattr(module, "monotonic", lambda: clock[0])
    return clock


def test_meter_reports_recent_rate_and_percentiles(now):
    meter = Meter()
    times = np.arange(300) / 25  # 12 s at 25 frames/s; the first half is slow
    latencies = np.where(times < 6, 0.2, 0.010 + 0.0001 * (np.arange(300) % 50))
    for done, latency in zip(times.tolist(), latencies.tolist(), strict=True):
        meter.add(done, latency)
    now[0] = 299 / 25
    fps, median, high = meter.recent()
    assert fps == pytest.approx(25)
    last = 1000 * latencies[times >= now[0] - RECENT_SECONDS]
    assert (median, high) == pytest.approx((np.percentile(last, 50), np.percentile(last, 95)))
    assert high < 20
    assert meter.percentile(50) > 14


def test_meter_without_recent_frames_has_no_rate(now):
    meter = Meter()
    assert meter.recent()[0] == 0
    assert math.isnan(meter.recent()[1])
    assert math.isnan(meter.percentile(50))
    meter.add(0.0, 0.02)
    assert meter.recent()[:2] == (0.0, 20.0)
    now[0] = RECENT_SECONDS + 1
    assert math.isnan(meter.recent()[1])


@pytest.mark.parametrize("percent", [1, 50, 95, 99, 100])
def test_meter_percentiles_equal_numpy_within_a_bin(rng, percent):
    latencies = rng.gamma(3, 0.01, 5000)
    meter = Meter()
    for latency in latencies.tolist():
        meter.add(0.0, latency)
    exact = 1000 * np.percentile(latencies, percent, method="inverted_cdf")
    assert meter.percentile(percent) == pytest.approx(exact, abs=BIN_MS)
    assert meter.max_ms == pytest.approx(1000 * latencies.max())
