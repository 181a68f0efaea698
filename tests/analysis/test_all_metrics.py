"""Properties of every figure, event, curve and omission, whatever the motion."""

import numpy as np
import pytest
from stick_figures import jump, motion, run, squats, standing, throw, walk
from test_analyse_command import write

from pose.analysis import ALL, GROUPS, Analysis, analyse
from pose.analysis.metrics import QUALITIES
from pose.analysis.norms import CHILDREN, POINTS
from pose.analysis.plausible import RANGE, impossible_reason, norm_width
from pose.results import load_poses

UNITS = {"m", "s", "m/s", "steps/min", "share", "%", "degrees", "score", "repetitions", "repetitions/min", "log jerk"}
SIGNED = ("asymmetry", "less", "valgus", "smoothness", "hand above shoulder")


def resting(seconds=6.0, rate=30.0):
    times = np.arange(0, seconds, 1 / rate)
    return motion(times, standing(times))


def slower(mover, step, noise, seed):
    """Each so-many-th frame, with noise."""
    joints = mover.joints[::step] + np.random.default_rng(seed).normal(0, noise, mover.joints[::step].shape)
    return motion(mover.times[::step], joints, sigma=20 + 1000 * noise)


def check(analysis: Analysis, first: float, last: float) -> None:
    for metric in analysis.metrics:
        numbers = [metric.low, metric.value, metric.high]
        assert np.isfinite(numbers).all(), metric
        assert numbers == sorted(numbers), metric
        assert metric.unit in UNITS, metric
        assert metric.group in GROUPS
        assert metric.quality in QUALITIES
        assert (metric.quality == "green") == (metric.doubt == ""), metric
        assert first - 1e-6 <= metric.start <= metric.end <= last + 1e-6, metric
        assert metric.count >= 1
        assert impossible_reason(metric) == "", metric
        if metric.name.endswith(RANGE) and metric.quality == "green":
            assert metric.high - metric.low <= norm_width(metric, CHILDREN), metric
        if not any(word in metric.name for word in SIGNED):
            assert metric.low >= 0, metric
        if metric.unit == "share":
            assert metric.high <= 1, metric
        elif metric.unit != "score":
            assert metric.low < metric.high, metric
    names = [(metric.person, metric.group, metric.name, metric.start) for metric in analysis.metrics]
    assert len(names) == len(set(names)), "a figure is stated once"
    for event in analysis.events:
        assert first - 1e-6 <= event.time <= last + 1e-6, event
    for curve in analysis.curves:
        assert len(curve.mean) == len(curve.sd) == POINTS
        assert np.isfinite([*curve.mean, *curve.sd, curve.error]).all()
        assert min(curve.sd) >= 0 < curve.error
    for row in analysis.omissions:
        assert row.reason, row
        assert "\n" not in row.reason
        assert row.group in (*GROUPS, ALL)


@pytest.mark.parametrize(("step", "noise"), [(1, 0.03), (3, 0.0), (6, 0.03)])
def test_every_figure_has_an_interval_and_a_flag(tmp_path, step, noise):
    movers = [walk(8)[0], squats(3)[0], jump(rate=30)[0], run()[0], resting(), throw()[0]]
    for seed, mover in enumerate(movers):
        seen = slower(mover, step, noise, seed)
        analysis = analyse(load_poses(write(tmp_path / f"{seed}.npz", {7: seen})), GROUPS)
        check(analysis, seen.times[0], seen.times[-1])
        answered = {row.group for row in (*analysis.metrics, *analysis.omissions)}
        assert answered == set(GROUPS) or answered == {ALL}


def test_ergonomics_score_spans_a_gap_in_the_track(tmp_path):
    """Each part of the motion adds to the same figures."""
    mover = resting()
    path = write(tmp_path / "poses.npz", {1: mover}, partial=range(60, 90))
    analysis = analyse(load_poses(path), ["ergonomics"])
    check(analysis, 0.0, mover.times[-1])
    (mean,) = (metric for metric in analysis.metrics if metric.name == "RULA: mean score")
    assert (mean.start, mean.count) == (0.0, len(mover.times) - 30)
    assert mean.end == pytest.approx(mover.times[-1])
    assert len([event for event in analysis.events if event.name == "RULA worst moment"]) == 1
