"""Joint angles over cycles, published norms, and the user's own norms."""

from dataclasses import replace

import numpy as np
import pytest
from command_errors import error_line
from pose_apps.analyse import main
from stick_figures import motion, squats, standing, walk
from test_analyse_command import write

from pose.analysis import analyse
from pose.analysis.curves import angle_curves, body_angles
from pose.analysis.metrics import with_interval_quality
from pose.analysis.norms import CHILDREN, POINTS, read_norms
from pose.analysis.report_tables import ANGLES
from pose.results import load_poses
from pose.structures.skeletons import H36M17

TIMES = np.arange(0, 2, 1 / 30)


def angle(joints, name, side=""):
    return float(np.median(body_angles(motion(TIMES, joints))[name, side]))


def turned(joints, names, axis, degrees, centre):
    """Some joints turned about an axis through a joint."""
    rows = [H36M17.index(name) for name in names]
    origin = joints[:, [H36M17.index(centre)]]
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    a, b = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    arms = joints[:, rows] - origin
    arms[..., a], arms[..., b] = c * arms[..., a] - s * arms[..., b], s * arms[..., a] + c * arms[..., b]
    joints[:, rows] = arms + origin
    return joints


ARMS = [f"{side}_{joint}" for side in ("left", "right") for joint in ("shoulder", "elbow", "wrist")]
UPPER = ["spine", "thorax", "neck", "head", *ARMS]


@pytest.mark.parametrize(
    ("names", "axis", "degrees", "centre", "angle_name", "side"),
    [
        (["left_knee", "left_ankle"], "x", -20, "left_hip", "hip flexion", "left"),
        (["left_knee", "left_ankle"], "z", -20, "left_hip", "hip adduction", "left"),
        (["right_knee", "right_ankle"], "z", 20, "right_hip", "hip adduction", "right"),
        (["left_ankle"], "x", 20, "left_knee", "knee flexion", "left"),
        (["right_elbow", "right_wrist"], "x", -20, "right_shoulder", "shoulder flexion", "right"),
        (["left_wrist"], "x", -20, "left_elbow", "elbow flexion", "left"),
        (UPPER, "x", 20, "pelvis", "trunk flexion", ""),
        (UPPER, "z", 20, "pelvis", "trunk bending", ""),
        (UPPER, "y", 20, "pelvis", "trunk rotation", ""),
    ],
)
def test_joint_angle_signs_follow_the_convention(names, axis, degrees, centre, angle_name, side):
    """Flexion, adduction, bending to the right and rotation to the left are positive."""
    at_rest = angle(standing(TIMES), angle_name, side)
    moved = angle(turned(standing(TIMES), names, axis, degrees, centre), angle_name, side)
    assert moved - at_rest == pytest.approx(20, abs=1.5)


def test_pelvis_curves_exist_for_each_side():
    joints = standing(TIMES)
    joints[:, H36M17.index("left_hip"), 1] += 0.02
    joints[:, H36M17.index("right_hip"), 1] -= 0.02
    tilt = np.degrees(np.arctan2(0.04, 0.2))
    assert angle(joints, "pelvis obliquity", "left") == pytest.approx(tilt)
    assert angle(joints, "pelvis obliquity", "right") == pytest.approx(-tilt)


def test_a_walk_has_curves_for_both_sides_beside_norms():
    metrics, curves, reason = angle_curves(1, walk(seconds=10)[0])
    assert reason == ""
    by_name = {(curve.angle, curve.side): curve for curve in curves}
    knees = [by_name["knee flexion", side] for side in ("left", "right")]
    assert all(len(curve.mean) == len(curve.norm_mean) == POINTS for curve in knees)
    assert np.mean(np.abs(np.subtract(knees[0].mean, knees[1].mean))) < 2, "both legs do the same, half a stride apart"
    assert by_name["trunk flexion", ""].norm_mean == ()
    difference = next(f for f in metrics if f.name == "walking: knee flexion: range of motion, left less right")
    assert difference.low < 0 < difference.high
    assert set(ANGLES) - {"ankle flexion"} == {curve.angle for curve in curves}, "nobody sees the feet here"


@pytest.mark.parametrize(("camera", "seen"), [((5, 1, 0), "hip flexion"), ((0, 1, 5), "hip adduction")])
def test_squat_curves_out_of_the_image_plane_have_lower_quality(camera, seen):
    """From the side flexion, from the front adduction; arms may move in any plane."""
    metrics, _, _ = angle_curves(1, replace(squats(3)[0], camera=np.array(camera, float)))
    doubts = {metric.name: metric.doubt for metric in metrics if "less" not in metric.name}
    for angle in ("hip flexion", "hip adduction"):
        assert ("plane seen at" in doubts[f"squat: {angle}, left: range of motion"]) == (angle != seen)
    assert "plane" not in doubts["squat: elbow flexion, left: range of motion"]


def test_ankles_have_curves_where_feet_are_seen():
    """Gaps of a few frames are interpolated; longer ones leave no curve of that side."""
    mover, _ = walk(seconds=10)
    ankles = np.tile(10 * np.sin(2 * np.pi * mover.times / 1.1)[:, None], (1, 2))
    ankles[50:54, 0] = np.nan
    ankles[50:70, 1] = np.nan
    metrics, curves, _ = angle_curves(1, replace(mover, ankles=ankles))
    (curve,) = (one for one in curves if one.angle == "ankle flexion")
    assert curve.side == "left"
    assert np.isfinite(curve.mean).all()
    metric = next(one for one in metrics if "ankle" in one.name)
    assert metric.value == pytest.approx(20, abs=1)
    assert with_interval_quality(metric).quality == "red", "the error of the method is as large as the movement"


def test_reference_norms_equal_the_published_values():
    mean, deviation = CHILDREN.of("walking", "knee flexion")
    assert (mean[0], mean[72], deviation[60]) == pytest.approx((5.6, 59.1, 6.6))
    hip, _ = CHILDREN.of("walking", "hip flexion")
    assert hip[52] == pytest.approx(-5.8 - 11.9), "hip flexion less pelvic tilt"
    assert CHILDREN.of("walking", "elbow flexion") is None


HEAD = "angle,percent,mean,sd\n"


def test_own_norms_replace_those_of_children(tmp_path):
    result, norms = write(tmp_path / "poses.npz", {1: walk(seconds=8)[0]}), tmp_path / "adults.csv"
    norms.write_text(HEAD + "knee flexion,0,10,4\nknee flexion,50,60,6\nknee flexion,100,10,4\n")
    curves = analyse(load_poses(result), ["angles"], norms=read_norms(norms)).curves
    shown = {curve.angle: curve for curve in curves if curve.norm_mean}
    assert set(shown) == {"knee flexion"}
    assert shown["knee flexion"].norm_mean[25] == pytest.approx(35, abs=0.01)
    assert shown["knee flexion"].norm_sd[75] == pytest.approx(5, abs=0.01)
    assert main([str(result), "--norms", str(norms), "--only", "angles", "--out", str(tmp_path), "--quiet"]) == 0
    assert "grey: adults.csv" in (tmp_path / "analysis.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("angle,mean\nknee flexion,3\n", "needs the columns angle, percent, mean and sd"),
        (HEAD + "knee flexion,0,x,4\n", "needs the columns angle, percent, mean and sd, with numbers"),
        (HEAD + "tail flexion,0,1,4\ntail flexion,100,1,4\n", "unknown angle 'tail flexion'; known: hip flexion"),
        (HEAD + "knee flexion,0,1,4\nknee flexion,90,1,4\n", "percent must reach from 0 to 100"),
        (HEAD + "knee flexion,0,1,-4\nknee flexion,100,1,4\n", "with sd of 0 or more"),
        (HEAD, "contains no row"),
        (None, "No such file"),
    ],
)
def test_invalid_norms_are_named(tmp_path, capsys, text, message):
    result, norms = write(tmp_path / "poses.npz", {1: walk(seconds=2)[0]}), tmp_path / "own.csv"
    if text is not None:
        norms.write_text(text)
    assert main([str(result), "--norms", str(norms)]) == 2
    assert message in error_line(capsys)
