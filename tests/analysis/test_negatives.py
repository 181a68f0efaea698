"""People and recordings without figures, and impossible values that are left out: one line says why."""

from dataclasses import replace

import numpy as np
import pytest
from stick_figures import UPPER, bend_knees, motion, move, squats, standing, walk
from test_analyse_command import write

from pose.analysis import GROUPS, analyse
from pose.analysis.curves import angle_curves
from pose.analysis.metrics import Curve, Metric
from pose.analysis.plausible import impossible_reason, plausible, unobserved_angles, with_norm_quality
from pose.analysis.walking import gait_metrics
from pose.results import load_poses
from pose.structures.skeletons import BLAZEPOSE33

TIMES = np.arange(0, 8, 1 / 30)


def analysed(tmp_path, motions, groups=GROUPS, **facts):
    return analyse(load_poses(write(tmp_path / "poses.npz", motions, **facts)), groups)


def reasons(analysis):
    return [(row.person, row.group, row.reason) for row in analysis.omissions]


def test_without_a_walk_there_are_no_gait_metrics(tmp_path):
    analysis = analysed(tmp_path, {1: motion(TIMES, standing(TIMES))}, ["gait"])
    assert (analysis.metrics, reasons(analysis)) == ([], [(1, "gait", "no walk of two strides or more")])


@pytest.mark.parametrize(
    ("group", "reason"),
    [
        ("repetitions", "the joints move by less than 6 cm"),
        ("jumps", "only 5 frames/s, at least 10 are needed"),
        ("sit-to-stand", "only 5 frames/s, at least 10 are needed"),
        ("angles", "fewer than 2 strides or complete repetitions"),
    ],
)
def test_omission_reasons_are_given_per_metric_group(tmp_path, group, reason):
    slow = np.arange(0, 8, 1 / 5)
    analysis = analysed(tmp_path, {1: motion(slow, standing(slow))}, [group])
    assert (analysis.metrics, reasons(analysis)) == ([], [(1, group, reason)])


def test_low_frame_rate_omits_metrics(tmp_path):
    slow = np.arange(0, 8, 0.5)
    analysis = analysed(tmp_path, {1: motion(slow, standing(slow))})
    assert (analysis.metrics, reasons(analysis)) == ([], [(1, "all", "frames are more than 0.25 s apart")])


def test_impossible_angles_are_rejected(tmp_path):
    """The reason depends on what the 2D network sees, not on the lifted skeleton alone."""
    table = load_poses(write(tmp_path / "poses.npz", {1: motion(TIMES, standing(TIMES))}))
    seen = replace(table, skeleton=BLAZEPOSE33).with_columns(
        hand_keypoints=np.zeros((len(table.id), 2, 21, 2), np.float32)
    )
    without, with_both = unobserved_angles(table), unobserved_angles(seen)
    assert [line.partition(":")[0] for line in without] == ["ankle", "wrist", "pelvic tilt"]
    assert "no heel and toe" in without[0]
    assert "heels and toes are not seen" in with_both[0]
    assert "--hands" in without[1]
    assert "estimated hand" in with_both[1]


@pytest.mark.parametrize(("heights", "small"), [({1: (1.1, 0.0)}, True), ({1: (1.25, 0.15)}, False), ({}, False)])
def test_child_proportions_flag_ergonomics(tmp_path, heights, small):
    analysis = analysed(tmp_path, {1: walk()[0]}, heights=heights)
    line = [(1, "all", "body height 1.10 m: the errors of small children are not known")]
    assert (reasons(analysis) == line) == small
    assert bool(analysis.metrics) != small


def test_wheelchair_user_has_no_gait_or_jump_metrics(tmp_path):
    joints = standing(TIMES)
    zero = np.zeros_like(TIMES)
    move(joints, UPPER, np.stack([zero, zero - 0.4, zero - 0.4], axis=1))
    bend_knees(joints)
    push = 0.2 * np.sin(2 * np.pi * TIMES)
    move(joints, ["left_wrist", "right_wrist"], np.stack([zero, zero, push], axis=1))
    joints[..., 2] += TIMES[:, None]
    analysis = analysed(tmp_path, {1: motion(TIMES, joints)})
    assert analysis.metrics == []
    ((person, group, reason),) = reasons(analysis)
    assert (person, group) == (1, "all")
    assert reason.startswith("moves without steps, seated (wheelchair or vehicle)")


def test_person_leaving_the_image_has_no_jump(tmp_path):
    analysis = analysed(tmp_path, {1: walk(seconds=3)[0]}, partial=range(12, 90))
    assert analysis.metrics == []
    assert reasons(analysis) == [(1, "all", "the person is fully visible for less than 0.5 s at a time")]


@pytest.mark.parametrize("swapped", [True, False])
def test_swapped_tracks_are_flagged(tmp_path, swapped):
    """They walk towards each other, and pass at half a metre."""
    one = walk(seconds=6)[0]
    joints = one.joints.copy()
    joints[..., 2] = joints[0, 0, 2] + joints[-1, 0, 2] - joints[..., 2]
    joints[..., 0] = 0.5 - joints[..., 0]
    first, second = one.joints.copy(), joints
    if swapped:
        half = len(first) // 2
        first[half:], second[half:] = second[half:].copy(), first[half:].copy()
    analysis = analysed(tmp_path, {1: replace(one, joints=first), 2: replace(one, joints=second)})
    if not swapped:
        assert {row.person for row in analysis.metrics if row.group == "gait"} == {1, 2}
        return
    assert analysis.metrics == []
    assert [row[:2] for row in reasons(analysis)] == [(1, "all"), (2, "all")]
    for row in reasons(analysis):
        words, _, time = row[2].removesuffix(" s").rpartition(" ")
        assert words == "the tracks of persons 1 and 2 are probably swapped at"
        assert float(time) == pytest.approx(3.0, abs=0.3)


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
