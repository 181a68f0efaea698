"""Joints from fixed cameras: the structured solver against dense linear algebra, and cameras that contradict others."""

from dataclasses import replace

import numpy as np
import scenes

from pose.multiview.joints import Problem
from pose.multiview.lifted import lifted_prior, lifted_views, trust_of
from pose.multiview.observations import observe
from pose.multiview.residuals import Weights
from pose.multiview.types import POINTS, CameraBatch

KNOTS = np.arange(15, 39) / 30


def problem_of(azimuths=(0.0, 90.0), hide=True):
    """A problem with an outlier, a joint that one camera misses, and the truth (K, N, 3) m."""
    points = scenes.person(1, seconds=2.0)
    views = scenes.cameras(azimuths, people=[points], seed=2, seconds=2.0)
    cameras = scenes.exact(views)
    tracks = {i: scenes.track(view, i, points, noise_px=3.0) for i, view in enumerate(views)}
    if hide:
        tracks[1].scores[:, 13] = 0
        tracks[0].keypoints[60:63, 6] += 80
    seen = observe(tracks, cameras, KNOTS)
    world = scenes.truth_at(points, scenes.RATE, KNOTS)
    truth = scenes.observed_joints(world)[:, POINTS] @ views[0].rotation.T + views[0].translation
    trust = np.ones(seen.noise.shape)
    weights = Weights()
    cameras = CameraBatch.of(cameras)
    lifted = lifted_prior(seen, cameras, lifted_views(seen, cameras, 1.0), 1.0, weights, trust)
    return Problem(seen, cameras, lifted, scenes.bones_of(world), trust, weights), truth


def dense(system, count):
    """The system's matrix, column by column."""
    width = 3 * len(POINTS)
    unit = np.eye(count * width).reshape(-1, count, width)
    return np.stack([system.apply(column).ravel() for column in unit], axis=1)


def test_solver_steps_equal_dense_algebra(rng):
    problem, truth = problem_of()
    system, right = problem.linearised(truth + 0.05 * rng.standard_normal(truth.shape))
    whole = dense(system, len(truth))
    np.testing.assert_allclose(whole, whole.T, atol=1e-6)
    expected = np.linalg.solve(whole, right.ravel()).reshape(right.shape)
    np.testing.assert_allclose(system.solve(right, 1e-9), expected, atol=1e-6)


def test_normal_matrix_equals_finite_differences(rng):
    """Where nothing is an outlier, the matrix of Gauss-Newton is near the change of the gradient."""
    problem, truth = problem_of(hide=False)
    problem = replace(problem, weights=Weights(cauchy=1e3))
    system, right = problem.linearised(truth)
    for _ in range(3):
        step = 1e-5 * rng.standard_normal(truth.shape)
        change = right - problem.linearised(truth + step)[1]
        expected = system.apply(step.reshape(right.shape)) - step.reshape(right.shape)  # without what keeps it regular
        assert np.linalg.norm(change - expected) < 0.02 * np.linalg.norm(expected)


def test_variances_approximate_the_inverse():
    problem, truth = problem_of()
    system, _ = problem.linearised(problem.solve(truth, steps=4))
    inverse = np.linalg.inv(dense(system, len(truth))).reshape(len(truth), 14, 3, len(truth), 14, 3)
    expected = np.einsum("knikni->kn", inverse) / 3
    ratio = np.sqrt(system.variances() / expected)[4:-4]  # at the ends of a window less is known
    assert ratio.min() > 0.8
    assert ratio.max() < 1.25


def test_bad_start_converges_to_the_truth(rng):
    problem, truth = problem_of((0.0, 90.0, 200.0), hide=False)
    points = problem.solve(truth + 0.3 * rng.standard_normal(truth.shape), steps=20)
    assert np.median(np.linalg.norm(points - truth, axis=-1)) < 0.02


def test_contradicting_camera_is_downweighted():
    problem, truth = problem_of((0.0, 90.0, 200.0), hide=False)
    seen = problem.observed
    pixels = seen.pixels.copy()
    pixels[2, :, [10, 9, 8]] += 90  # the left arm, for as long as the window
    lifted = lifted_views(seen, problem.cameras, 1.0)
    trust = trust_of(replace(seen, pixels=pixels), problem.cameras, lifted, truth)
    assert trust[2, :, 8:11].max() < 0.4
    assert trust[:2].min() > 0.75
    assert trust[2, :, :6].min() > 0.75
