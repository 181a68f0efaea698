"""People and recordings without figures: one line says why."""

from dataclasses import replace

import numpy as np
import pytest
from stick_figures import UPPER, bend_knees, motion, move, standing, walk
from test_analyse_command import write

from pose.analysis import GROUPS, analyse
from pose.analysis.plausible import unobserved_angles
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
