"""Errors of knees and elbows by true angle, against limbs bent by hand."""

from itertools import pairwise

import numpy as np
import pytest

from pose.structures.skeletons import H36M17
from pose.training.evaluation.metrics import EDGES, AngleErrors, flexion

NAMES = H36M17.names


def pose(right_knee: float, left_knee: float, right_elbow: float, left_elbow: float) -> np.ndarray:
    """(17, 3): limbs that hang from their upper ends, each bent by so many degrees in a plane of its own."""
    joints = np.random.default_rng(0).normal(size=(17, 3))
    for number, (parts, side, degrees) in enumerate((
        (("hip", "knee", "ankle"), "right", right_knee), (("hip", "knee", "ankle"), "left", left_knee),
        (("shoulder", "elbow", "wrist"), "right", right_elbow), (("shoulder", "elbow", "wrist"), "left", left_elbow),
    )):  # fmt: skip
        start, middle, end = (NAMES.index(f"{side}_{part}") for part in parts)
        down = np.array([0, 1.0, 0])
        across = np.array([np.cos(number), 0, np.sin(number)])
        angle = np.radians(degrees)
        joints[middle] = joints[start] + 0.4 * down
        joints[end] = joints[middle] + 0.3 * (np.cos(angle) * down + np.sin(angle) * across)
    return joints


@pytest.mark.parametrize("degrees", [0.0, 0.001, 5.0, 90.0, 150.0, 180.0])
def test_flexion_is_the_angle_the_limb_was_bent_by(degrees):
    np.testing.assert_allclose(flexion(pose(degrees, 7, 20, 30), "knee"), [degrees, 7], atol=1e-5)
    np.testing.assert_allclose(flexion(pose(1, 2, 20, degrees), "elbow"), [20, degrees], atol=1e-5)


def test_flexion_needs_bones():
    joints = pose(10, 20, 30, 40)
    joints[NAMES.index("right_knee")] = joints[NAMES.index("right_hip")]
    joints[NAMES.index("left_wrist")] = np.nan
    assert np.isnan(flexion(joints, "knee")).tolist() == [True, False]
    assert np.isnan(flexion(joints, "elbow")).tolist() == [False, True]


def test_errors_fall_into_the_bin_of_the_true_angle():
    """Knees of 2, 6, 20, 20 degrees that come out as 12, 6, 30, 15; elbows of 100, 90, 8, 179 as 80, 95, 4, 170."""
    angles = AngleErrors()
    angles.add(pose(12, 6, 80, 95)[None], pose(2, 6, 100, 90)[None])
    angles.add(pose(30, 15, 4, 170)[None, None], pose(20, 20, 8, 179)[None, None])
    table = angles.table()
    for joint in ("knee", "elbow"):
        assert [(row["above"], row["below"]) for row in table[joint]] == list(pairwise(EDGES))
    found = {joint: [(r["count"], r["error"], r["bias"]) for r in rows] for joint, rows in table.items()}
    nothing = (0, None, None)
    assert found["knee"] == [(2, pytest.approx(5), pytest.approx(5)), nothing,
                             (2, pytest.approx(7.5), pytest.approx(2.5)), nothing, nothing, nothing]  # fmt: skip
    # 90 and 100 are over 90; 8 is from 8 to 15.
    assert found["elbow"] == [nothing, (1, pytest.approx(4), pytest.approx(-4)), nothing, nothing, nothing,
                              (3, pytest.approx(34 / 3), pytest.approx(-8))]  # fmt: skip


def test_missing_truth_is_ignored_and_missing_predictions_count():
    true, pred = np.stack([pose(5, 5, 5, 5)] * 2), np.stack([pose(9, 9, 9, 9)] * 2)
    true[1] = np.nan
    angles = AngleErrors()
    angles.add(pred, true)
    assert angles.table()["knee"][0]["count"] == 2
    pred[0, NAMES.index("right_knee")] = np.nan
    angles.add(pred, true)
    assert np.isnan(angles.table()["knee"][0]["error"])


def test_shapes_must_agree():
    with pytest.raises(ValueError, match="same shape"):
        AngleErrors().add(np.zeros((2, 17, 3)), np.zeros((3, 17, 3)))
