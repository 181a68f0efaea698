"""Gait of a walker whose steps are known."""

from dataclasses import replace

import numpy as np
import pytest
from stick_figures import motion, run, standing, walk

from pose.analysis.walking import gait_metrics
from pose.body.gait import OFF_SHIFT_S, RUN_OFF_SHIFT_S, RUN_STRIKE_SHIFT_S, STRIKE_SHIFT_S, analyse_gait


@pytest.mark.parametrize("rate", [15.0, 30.0, 50.0, 120.0])
def test_heel_strikes_are_where_the_ankle_is_farthest_ahead(rate):
    walker, farthest = walk(rate=rate)
    found = analyse_gait(walker).strikes
    for side, true in farthest.items():
        np.testing.assert_allclose(np.array(found[side]) - STRIKE_SHIFT_S, true, atol=0.5 / rate + 0.005)


def test_step_length_and_time_equal_the_synthetic_walk():
    walker, _ = walk(step_s=0.6, step_m=0.7)
    strides = analyse_gait(walker).strides
    assert len(strides) >= 6
    for stride in strides:
        assert stride.duration == pytest.approx(1.2, abs=0.02)
        assert stride.length == pytest.approx(1.4, abs=0.03)
        assert stride.step_length == pytest.approx(0.7, abs=0.04)
        assert stride.width == pytest.approx(0.2, abs=0.01)
        assert stride.straight
        assert stride.stance == pytest.approx(0.5 + (OFF_SHIFT_S - STRIKE_SHIFT_S) / 1.2, abs=0.03)


def test_gait_metrics_do_not_depend_on_walking_direction():
    walker, _ = walk()
    turn = np.array([[0.6, 0, 0.8], [0, 1, 0], [-0.8, 0, 0.6]])
    turned = motion(walker.times, walker.joints @ turn.T)
    for first, second in zip(analyse_gait(walker).strides, analyse_gait(turned).strides, strict=True):
        assert second.length == pytest.approx(first.length, abs=1e-6)
        assert second.start == pytest.approx(first.start, abs=1e-6)


def test_a_treadmill_walker_has_the_speed_of_the_belt():
    walker, _ = walk(step_s=0.55, step_m=0.65)
    on_belt = walker.joints.copy()
    on_belt[..., 2] -= (0.65 / 0.55 * walker.times)[:, None]
    metrics, _, _ = gait_metrics(1, motion(walker.times, on_belt))
    speed = next(metric for metric in metrics if metric.name == "speed")
    assert speed.value == pytest.approx(0.65 / 0.55, rel=0.15)


def test_strides_during_turns_are_excluded():
    walker, _ = walk(seconds=8)
    bend = np.cumsum(np.where((walker.times > 3) & (walker.times < 5), np.pi / 2 / 60, 0))
    joints = walker.joints.copy()
    path = np.cumsum(np.stack([np.sin(bend), 0 * bend, np.cos(bend)], axis=1), axis=0) * 0.65 / 0.55 / 30
    local = joints - np.array([0, 0, 1.0]) * (0.65 / 0.55 * walker.times)[:, None, None]
    cos, sin = np.cos(bend)[:, None], np.sin(bend)[:, None]
    turned = np.stack(
        [local[..., 0] * cos + local[..., 2] * sin, local[..., 1], -local[..., 0] * sin + local[..., 2] * cos], axis=-1
    )
    metrics, events, _ = gait_metrics(1, motion(walker.times, turned + path[:, None]))
    assert all("strides in turns left out" in metric.note for metric in metrics)
    assert any(3 < event.time < 5 for event in events)


def test_confidence_intervals_contain_the_true_gait_values():
    walker, farthest = walk()
    metrics, events, reason = gait_metrics(7, walker)
    assert reason == ""
    true = {"cadence": 60 / 0.55, "speed": 0.65 / 0.55, "stride length": 1.3, "stride time": 1.1}
    for metric in metrics:
        assert metric.person == 7
        assert metric.low <= metric.value <= metric.high
        if metric.name in true:
            assert metric.low <= true[metric.name] <= metric.high
    assert {event.name for event in events} == {"Foot Strike", "Foot Off"}
    assert sum(event.name == "Foot Strike" for event in events) == sum(map(len, farthest.values()))


def test_a_runner_has_the_events_and_figures_of_a_run():
    runner, strikes = run(step_s=0.36)
    gait = analyse_gait(runner)
    assert gait.running
    for side, true in strikes.items():
        found = np.array(gait.strikes[side])
        assert np.abs(found[:, None] - true).min(axis=0).max() < 0.02
    metrics, _, _ = gait_metrics(1, runner)
    by_name = {metric.name: metric for metric in metrics}
    assert by_name["cadence"].low < 60 / 0.36 < by_name["cadence"].high
    # The off is half a stride after the foremost ankle, less the shift; step 0.36 s = contact + flight.
    contact = 0.36 + RUN_OFF_SHIFT_S - RUN_STRIKE_SHIFT_S
    assert by_name["contact time"].value == pytest.approx(contact, abs=0.01)
    assert by_name["flight time"].value == pytest.approx(0.36 - contact, abs=0.01)
    assert "double support" not in by_name
    assert by_name["cadence"].note == "running"


def test_standing_or_shaking_is_not_walking():
    times = np.arange(0, 5, 1 / 30)
    still = standing(times)
    noise = np.random.default_rng(0).normal(0, 0.03, still.shape)
    for joints in (still, still + noise):
        metrics, events, reason = gait_metrics(1, motion(times, joints))
        assert (metrics, events) == ([], [])
        assert reason == "no walk of two strides or more"


def test_foot_contacts_agree_with_zeni_events():
    """Feet whose contacts begin 0.1 s after the strikes, and end with the offs."""
    mover, _ = walk(seconds=8)
    gait = analyse_gait(mover)
    contacts = np.zeros((len(mover.times), 2))
    for column, side in enumerate(("left", "right")):
        for strike in gait.strikes[side]:
            off = min((time for time in gait.offs[side] if time > strike), default=mover.times[-1])
            contacts[(mover.times >= strike + 0.1) & (mover.times < off), column] = 1
    metrics = {metric.name: metric for metric in gait_metrics(1, replace(mover, contacts=contacts))[0]}
    assert metrics["foot strike: contacts less Zeni"].value == pytest.approx(0.117, abs=0.02)
    assert metrics["foot off: contacts less Zeni"].value == pytest.approx(0.017, abs=0.02)
    assert "foot strike: contacts less Zeni" not in {metric.name for metric in gait_metrics(1, mover)[0]}
