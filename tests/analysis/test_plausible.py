"""Impossible values and differences that the view does not show are left out, with a reason."""

from dataclasses import replace

import numpy as np
import pytest
from stick_figures import squats, walk

from pose.analysis.curves import angle_curves
from pose.analysis.metrics import Curve, Metric
from pose.analysis.plausible import impossible_reason, plausible, with_norm_quality
from pose.analysis.walking import gait_metrics


def metric(name, value, group="angles", half=5.0, unit="degrees"):
    return Metric(1, group, name, value, value - half, value + half, unit, "green", 0.0, 5.0, 3)


@pytest.mark.parametrize(
    ("name", "value", "group"),
    [
        ("jump 1: knee valgus after landing", -91.0, "jumps"),
        ("walking: ankle flexion, left: range of motion", 63.0, "angles"),
        ("squat: knee flexion, right: range of motion", 171.0, "angles"),
        ("jump 1: height from pelvis", 1.9, "jumps"),
    ],
)
def test_impossible_values_have_a_reason(name, value, group):
    kept = plausible([metric(name, value, group), metric("cadence", 110.0, "gait")], [], [])
    assert [one.name for one in kept.metrics] == ["cadence"]
    assert kept.reasons[0].startswith(f"{name}: {value:.3g} degrees is impossible (")
    assert impossible_reason(replace(metric(name, value, group), value=abs(value) / 3)) == ""


def test_an_impossible_range_takes_curve_and_difference_along():
    left, right = (f"walking: ankle flexion, {side}: range of motion" for side in ("left", "right"))
    difference = "walking: ankle flexion: range of motion, left less right"
    curves = [
        Curve(1, "walking", "ankle flexion", side, (0.0,), (0.0,), 10.0, "green", 0.0, 5.0, 3)
        for side in ("left", "right")
    ]
    kept = plausible([metric(left, 80.0), metric(right, 30.0), metric(difference, 50.0)], curves, [])
    assert [one.name for one in kept.metrics] == [right]
    assert [curve.side for curve in kept.curves] == ["right"]


def test_a_range_less_certain_than_the_norm_is_not_green():
    name = "walking: knee flexion, left: range of motion"
    assert with_norm_quality(metric(name, 60.0, half=8.0)).quality == "green"
    rated = with_norm_quality(metric(name, 60.0, half=20.0))
    assert (rated.quality, rated.doubt) == ("amber", "interval wider than the norm")


@pytest.mark.parametrize(("camera", "shown"), [((5.0, 1.0, 0.0), True), ((0.0, 1.0, 50.0), False), (None, True)])
def test_differences_need_a_view_from_the_side(camera, shown):
    """The walker walks along z: from ahead, one leg's swing is as deep as wide."""
    motion = walk(seconds=8)[0]
    motion = replace(motion, camera=None if camera is None else np.array(camera))
    metrics = [*gait_metrics(1, motion)[0], *angle_curves(1, motion)[0]]
    kept = {one.name for one in plausible(metrics, [], [motion]).metrics}
    sagittal = {"asymmetry of step length", "walking: knee flexion: range of motion, left less right"}
    assert sagittal <= {one.name for one in metrics}
    assert (sagittal <= kept) == shown
    assert "cadence" in kept


def test_squats_from_the_front_keep_their_depth():
    motion = replace(squats(4)[0], camera=np.array([0.0, 1.0, 6.0]))
    metrics, curves, _ = angle_curves(1, motion)
    kept = plausible(metrics, curves, [motion])
    assert len(kept.curves) == len(curves)
    assert any("squat: knee flexion" in one.name for one in kept.metrics)
