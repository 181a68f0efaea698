"""The chain solver and the structured one against dense linear algebra, and the bundle's derivatives."""

from dataclasses import replace

import numpy as np
import pytest
import scenes

from pose.lifting.fit.motion import Chain
from pose.multiview import residuals
from pose.multiview.bundle import BundleAdjustment, Freedom, rotation_matrix, start_body
from pose.multiview.joints import Problem
from pose.multiview.lifted import lifted_prior, lifted_views, trust_of
from pose.multiview.observations import observe
from pose.multiview.residuals import Weights
from pose.multiview.types import POINTS, CameraBatch


def dense_chain(rng, count=8, size=5):
    frames = rng.standard_normal((count, size, size))
    frames = frames @ np.swapaxes(frames, 1, 2) + 12 * np.eye(size)
    one, two = rng.standard_normal(count - 1), rng.standard_normal(count - 2)
    whole = np.zeros((count, size, count, size))
    for k in range(count):
        whole[k, :, k] = frames[k]
    for step, values in ((1, one), (2, two)):
        for k, value in enumerate(values):
            whole[k, :, k + step] = whole[k + step, :, k] = value * np.eye(size)
    return frames, one, two, whole.reshape(count * size, count * size)


def test_block_solver_equals_dense_algebra(rng):
    frames, one, two, whole = dense_chain(rng)
    right = rng.standard_normal((8, 5, 3))
    found = Chain.factorise(frames, one, two).solve(right)
    np.testing.assert_allclose(found.reshape(40, 3), np.linalg.solve(whole, right.reshape(40, 3)), atol=1e-10)


def known(cameras):
    """Nothing of the cameras is free."""
    shape = (cameras, residuals.PARAMETERS)
    return Freedom(np.zeros(shape, bool), np.zeros(shape), np.zeros(shape))


@pytest.mark.parametrize("parameter", range(residuals.PARAMETERS))
def test_camera_derivatives_equal_finite_differences(rng, parameter):
    [_, camera] = scenes.exact(scenes.cameras(radial=0.1, seed=3))
    points = camera.to_world(rng.uniform([-1, -1, 3], [1, 1, 5], (4, 3, 3)))
    velocity, own = rng.standard_normal((4, 3, 2)) * 50, rng.uniform(0, 3, 4)

    def residual(move):
        moved = replace(
            camera, rotation=rotation_matrix(move[:3]) @ camera.rotation, translation=camera.translation + move[3:6],
            focal=camera.focal * np.exp(move[6]), lens=camera.lens.moved(move[7]),
        )  # fmt: skip
        # The observation is velocity * own time further on, and own time falls with offset and drift.
        clock = -move[8] - own * move[9]
        return moved.project(points) - velocity * clock[:, None, None] if parameter >= 8 else moved.project(points)

    step = np.zeros(10)
    step[parameter] = 1e-5
    expected = (residual(step) - residual(-step)) / 2e-5
    pixels, by_seen, seen = residuals.projected(camera, points)
    found = residuals.by_parameters(camera, seen, pixels, by_seen, velocity, own)[..., parameter]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-3 * max(1.0, np.abs(expected).max() * 1e-3))


def test_exact_input_recovers_the_joints():
    points = scenes.person(1, seconds=1.5)
    views = scenes.cameras((0.0, 90.0, 200.0), people=[points], seconds=1.5)
    cameras = scenes.exact(views)
    tracks = {i: scenes.track(view, i, points) for i, view in enumerate(views)}
    knots = np.arange(4, 34) / 30
    seen = observe(tracks, cameras, knots)
    start = start_body(
        np.zeros((30, len(POINTS), 3)) + [0, 0, 4.0] + 0.1 * np.random.default_rng(0).random((30, 14, 3))
    )
    body = BundleAdjustment([seen], known(3)).solve(cameras, [start], iterations=40, tolerance=1e-9).bodies[0]
    world = scenes.truth_at(points, scenes.RATE, knots)
    truth = scenes.observed_joints(world)[:, POINTS] @ views[0].rotation.T + views[0].translation
    off = np.linalg.norm(body.points - truth, axis=-1)
    assert np.median(off) < 0.004
    assert off.max() < 0.03


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
