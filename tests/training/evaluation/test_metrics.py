"""Every measure against a slow, obvious definition, and on poses whose answer is known."""

import math
from itertools import pairwise

import numpy as np
import pytest

from pose.structures.alignment import best_rotation, similarity_residuals
from pose.structures.skeletons import H36M17
from pose.training.evaluation import metrics
from pose.training.evaluation.metrics import EDGES, AngleErrors, flexion

FRAMES, JOINTS = 40, 17
MEASURES = [metrics.mpjpe, metrics.p_mpjpe, metrics.n_mpjpe, metrics.mpjve, metrics.accel_error]


@pytest.fixture
def poses(rng):
    """A standing body that moves (T, 17, 3) m, and a prediction of it that is turned, scaled and noisy."""
    body = rng.normal(size=(JOINTS, 3)) * [0.15, 0.5, 0.1]
    true = body + 0.05 * rng.normal(size=(FRAMES, JOINTS, 3)).cumsum(axis=0) / 3
    pred = 1.2 * true @ rotation_about([0.3, 1.0, -0.2], 0.4) + 0.03 * rng.normal(size=true.shape) + [0.1, 0.0, 0.3]
    return pred, true


def rotation_about(axis, angle):
    """Rodrigues' formula, for row vectors."""
    x, y, z = np.array(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return (np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross).T


def reference_align(source, target):
    """One pose, by the textbook: SVD, sign of the determinant, scale, translation."""
    a, b = source - source.mean(axis=0), target - target.mean(axis=0)
    u, s, vt = np.linalg.svd(a.T @ b)
    sign = np.array([1.0, 1.0, np.sign(np.linalg.det(u @ vt))])
    if (a**2).sum() == 0:
        return np.zeros_like(a) + target.mean(axis=0)
    return (s * sign).sum() / (a**2).sum() * a @ (u * sign) @ vt + target.mean(axis=0)


def reference(measure, pred, true, valid):
    """The mean in plain loops over frames and joints, mm."""
    total, count = 0.0, 0
    for t in range(len(true)):
        p, q = pred[t], true[t]
        needed = {"mpjve": 2, "accel_error": 3}.get(measure.__name__, 1)
        if t + 1 < needed or not all(valid[t + 1 - needed : t + 1]):
            continue
        if measure is metrics.p_mpjpe:
            p = reference_align(p, q)
        elif measure is metrics.n_mpjpe:
            p = (p * q).sum() / (p * p).sum() * p
        for j in range(len(p)):
            error = p[j] - q[j]
            if measure is metrics.mpjve:
                error = error - (pred[t - 1, j] - true[t - 1, j])
            elif measure is metrics.accel_error:
                error = error - 2 * (pred[t - 1, j] - true[t - 1, j]) + (pred[t - 2, j] - true[t - 2, j])
            total += 1000 * math.sqrt(sum(float(e) ** 2 for e in error))
            count += 1
    return total / count


@pytest.mark.parametrize("measure", MEASURES)
def test_metrics_equal_a_slow_reference(measure, poses):
    pred, true = poses
    assert measure(pred, true) == pytest.approx(reference(measure, pred, true, [True] * FRAMES), abs=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
def test_frames_without_truth_are_left_out(measure, poses):
    pred, true = poses
    valid = np.ones(FRAMES, bool)
    valid[[0, 7, 8, 20, 39]] = False
    expected = reference(measure, pred, true, valid)
    assert measure(pred, true, valid) == pytest.approx(expected, abs=1e-9)
    missing = true.copy()
    missing[~valid, 3] = np.nan
    assert measure(pred, missing) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("measure", MEASURES)
def test_nothing_to_measure_is_nan(measure, poses):
    pred, true = poses
    assert math.isnan(measure(pred, true, np.zeros(FRAMES, bool)))
    assert math.isnan(measure(pred[:0], true[:0]))


@pytest.mark.parametrize("measure", MEASURES[:3])
def test_nan_in_a_counted_prediction_shows(measure, poses):
    pred, true = poses
    pred[3, 4] = np.nan
    assert math.isnan(measure(pred, true))


def test_unequal_shapes_are_refused(poses):
    pred, true = poses
    with pytest.raises(ValueError, match=r"same shape, got \(39, 17, 3\) and \(40, 17, 3\)"):
        metrics.mpjpe(pred[1:], true)


def test_alignment_does_not_mirror(rng):
    true = rng.normal(size=(100, JOINTS, 3)) * 0.4
    errors = metrics.aligned_errors(true * [-1, 1, 1], true).mean(axis=-1)
    assert errors.min() > 50


POINT = np.ones((JOINTS, 3))
LINE = np.outer(np.linspace(-1, 1, JOINTS), [0.1, 0.5, 0.2])
BENT = LINE + np.outer(np.linspace(-1, 1, JOINTS) ** 2, [0.2, 0.0, 0.0])


@pytest.mark.parametrize(
    "true", [POINT, LINE, BENT, BENT * 1e-9, BENT * 1e9], ids=["point", "line", "flat", "tiny", "huge"]
)
@pytest.mark.parametrize("pred", [POINT, LINE, BENT, 0 * POINT, -BENT], ids=["point", "line", "flat", "zero", "mirror"])
def test_degenerate_poses_give_the_reference_number(pred, true):
    size = max(np.abs(true).max(), 1.0)
    errors = metrics.aligned_errors(pred[None], true[None])[0]
    expected = 1000 * np.linalg.norm(reference_align(pred, true) - true, axis=-1)
    assert np.abs(np.sort(errors) - np.sort(expected)).max() < 1e-9 * size
    assert math.isfinite(metrics.n_mpjpe(pred[None], true[None]))


@pytest.mark.parametrize("thickness", [1.0, 1e-1, 1e-2, 1e-4, 1e-8])
@pytest.mark.parametrize("noise", [0.0, 0.01, 1.0])
def test_alignment_keeps_its_precision_on_thin_poses(rng, thickness, noise):
    """The closed form must hand over to the SVD before its rounding shows."""
    true = rng.normal(size=(500, JOINTS, 3)) * [thickness, 1.0, thickness**0.5]
    pred = true + noise * rng.normal(size=true.shape) * [thickness, 1.0, thickness**0.5]
    expected = np.array([reference_align(*pair) for pair in zip(pred, true, strict=True)])
    distances = np.linalg.norm(similarity_residuals(pred, true), axis=-1) - np.linalg.norm(expected - true, axis=-1)
    assert np.abs(distances).max() * 1000 < 1e-9


def test_best_rotation_is_proper(rng):
    covariance = rng.normal(size=(500, 3, 3))
    rotation = best_rotation(covariance)
    assert np.allclose(rotation @ np.swapaxes(rotation, 1, 2), np.eye(3), atol=1e-12)
    assert np.allclose(np.linalg.det(rotation), 1, atol=1e-12)


def test_pck_and_auc(rng):
    errors = np.array([0.0, 5.0, 149.9, 150.0, 151.0, np.nan])
    assert metrics.pck(metrics.counts_below(errors), 6) == pytest.approx(100 * 3 / 6)
    sample = rng.uniform(0, 200, size=(30, JOINTS))
    below = [sum(e < t for e in sample.ravel()) for t in range(0, 151, 5)]
    parts = metrics.counts_below(sample[:7]) + metrics.counts_below(sample[7:])
    assert parts.tolist() == below
    assert metrics.auc(parts, sample.size) == pytest.approx(100 * np.mean(below) / sample.size)
    nothing = metrics.counts_below(sample[:0])
    assert math.isnan(metrics.auc(nothing, 0))
    assert math.isnan(metrics.pck(nothing, 0))


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
