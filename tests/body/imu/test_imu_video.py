"""Sensors beside a video: the wearer, directions of bones in camera axes, and the fit with them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_walk import walk

from pose.body.imu import find_worn, solve_imus
from pose.body.imu.mounting import MotionPrior
from pose.body.imu.recording import ImuRecording
from pose.body.imu.video import VideoMotion, measured_directions, worn_sensors
from pose.errors import PoseError
from pose.lifting.fit.windows import fit_motion
from pose.networks.weights import sha256_of
from pose.results.run import FirstRun
from pose.structures.camera import Camera, project
from pose.structures.rotations import about, dot, from_matrix, multiply, rotate, unit
from pose.structures.sequences import Sequence2D, Sequence3D
from pose.structures.skeletons import H36M17

MODELS = Path(__file__).parents[3] / "pose" / "models"
RATE = 30.0
OFFSET = 2.7
THIGHS = [H36M17.edges.index((1, 2)), H36M17.edges.index((4, 5))]
SHANKS = [H36M17.edges.index((2, 3)), H36M17.edges.index((5, 6))]


@pytest.fixture(scope="module")
def truth():
    """A walk in camera axes, (T,) s and (T, 17, 3) m, and the sensors on its shanks."""
    recording, *_ = walk(0.4, seconds=9.0)
    motion = solve_imus(recording, rate=RATE)
    turn = multiply(from_matrix(np.diag([1.0, -1, -1])), about(np.array([0, 1.0, 0]), np.array(0.8)))
    joints = rotate(turn, motion.joints - motion.joints[:, :1].mean(axis=0)) + np.array([0, 0, 4.0])
    shanks = [sensor for sensor in recording.sensors if sensor.segment.endswith("shank")]
    return motion.times + OFFSET, joints, ImuRecording.of(shanks, "walk")


def degrees(found, true):
    return np.degrees(np.arccos(np.clip(dot(found, true), -1, 1)))


def biased(joints):
    """Return joints whose shanks lean 12 degrees along the line of sight, as those of a lifter may."""
    wrong = joints.copy()
    for knee, ankle in ((2, 3), (5, 6)):
        wrong[:, ankle] = joints[:, knee] + rotate(
            about(np.array([1.0, 0, 0]), np.radians(12.0)), joints[:, ankle] - joints[:, knee]
        )
    return wrong


def test_wearer_offset_and_directions_are_found_among_two_people(truth):
    times, joints, recording = truth
    random = np.random.default_rng(0)
    other = joints[::-1] + random.normal(0, 0.02, joints.shape)
    seen = np.ones(len(times), bool)
    people = {
        7: VideoMotion(times, other, seen),
        3: VideoMotion(times, joints + random.normal(0, 0.01, joints.shape), seen),
    }
    worn = worn_sensors(recording, people, times)
    assert worn.people == (3,)
    assert worn.segments == ("left_shank", "right_shank")
    assert abs(worn.offset - OFFSET) < 1 / RATE
    along = unit(joints[:, [3, 6]] - joints[:, [2, 5]])
    assert degrees(worn.directions.directions[:, SHANKS], along).mean() < 3
    assert not np.isfinite(np.delete(worn.directions.sigma, SHANKS, axis=1)).any()


def test_directions_follow_a_camera_that_turns(truth):
    times, joints, recording = truth
    turns = np.stack(
        [rotate(about(np.array([0, 1.0, 0]), np.array(0.02 * at)), np.eye(3)).T for at in range(len(times))]
    )
    in_frames = np.einsum("tba,tjb->tja", turns, joints)
    worn = worn_sensors(recording, {1: VideoMotion(times, joints, np.ones(len(times), bool))}, times)
    expected = np.einsum("tba,tsb->tsa", turns, worn.directions.directions[:, SHANKS])
    found = find_worn(recording)(FirstRun(results_of(times, in_frames), turns, None))
    # The first and the last frame may lie outside the recording by rounding.
    np.testing.assert_allclose(found.directions.directions[1:-1, SHANKS], expected[1:-1], atol=0.01)


def results_of(times, joints):
    from pose.structures.types import FrameResult, People, Poses3D

    for index, (time, points) in enumerate(zip(times.tolist(), joints, strict=True)):
        zeros = np.zeros((1, 17), np.float32)
        people = People(
            index,
            time,
            np.array([1]),
            np.zeros((1, 4), np.float32),
            zeros[:, 0],
            np.zeros((1, 17, 2), np.float32),
            zeros + 1,
        )
        yield FrameResult(
            people, Poses3D((points - points[:1])[None].astype(np.float32), points[:1].astype(np.float32), zeros)
        )


def test_fit_turns_shanks_to_what_the_sensors_measure_and_bridges_hidden_frames(truth):
    times, joints, recording = truth
    matrix = np.array([[900.0, 0, 500], [0, 900.0, 500], [0, 0, 1]])
    hidden = np.abs(times - times[-1] + 3.0) < 1.0
    scores = np.ones((len(times), 17), np.float32) * ~hidden[:, None]
    observed = Sequence2D(
        project(joints, matrix).astype(np.float32), scores, times, Camera(matrix, True, (1000, 1000)), "h36m17"
    )
    wrong = biased(joints)
    wrong[hidden] = wrong[~hidden][0]  # a lifter knows nothing there
    lifted = Sequence3D(
        (wrong - wrong[:, :1]).astype(np.float32),
        wrong[:, 0].astype(np.float32),
        np.full((len(times), 17), 60, np.float32),
        times,
    )
    directions = measured_directions(recording, VideoMotion(times, joints, ~hidden), times, OFFSET)
    along = unit(joints[:, [3, 6]] - joints[:, [2, 5]])
    errors = []
    for given in (None, directions):
        fitted = fit_motion(lifted, observed, None, given)
        off = degrees(unit(fitted.joints[:, [3, 6]] - fitted.joints[:, [2, 5]]).astype(float), along).mean(axis=1)
        errors.append((off[~hidden].mean(), off[hidden].mean()))
    assert errors[1][0] < 0.5 * errors[0][0]
    assert errors[1][1] < 1.5 * errors[1][0] + 2 < errors[0][1]
    assert (fitted.sigma[hidden][:, 3] < 60).all()
    assert fitted.root[hidden, 2].min() > 3


def test_axes_of_the_knees_turn_thighs_that_lean_along_the_line_of_sight(truth):
    times, joints, recording = truth
    turn = about(np.array([0, 1.0, 0]), np.array(-0.8))  # the walker is seen from the side
    joints = rotate(turn, joints - joints.mean(axis=(0, 1))) + np.array([0, 0, 4.0])
    wrong = joints.copy()
    for hip, knee, ankle in ((1, 2, 3), (4, 5, 6)):
        lean = about(np.array([1.0, 0, 0]), np.radians(12.0))
        wrong[:, knee] = joints[:, hip] + rotate(lean, joints[:, knee] - joints[:, hip])
        wrong[:, ankle] += wrong[:, knee] - joints[:, knee]
    seen = np.ones(len(times), bool)
    measured = measured_directions(recording, VideoMotion(times, joints, seen), times, OFFSET)
    axes = measured.hinges[5:-5, THIGHS]
    along = unit(joints[:, [2, 5]] - joints[:, [1, 4]])
    assert np.abs(dot(axes, along[5:-5])).mean() < np.sin(np.radians(3))
    matrix = np.array([[900.0, 0, 500], [0, 900.0, 500], [0, 0, 1]])
    observed = Sequence2D(
        project(joints, matrix).astype(np.float32), np.ones((len(times), 17), np.float32), times,
        Camera(matrix, True, (1000, 1000)), "h36m17",
    )  # fmt: skip
    lifted = Sequence3D(
        (wrong - wrong[:, :1]).astype(np.float32), wrong[:, 0].astype(np.float32),
        np.full((len(times), 17), 60, np.float32), times,
    )  # fmt: skip
    errors = []
    for given in (replace(measured, hinges=None), measured):
        fitted = fit_motion(lifted, observed, None, given)
        errors.append(degrees(unit(fitted.joints[:, [2, 5]] - fitted.joints[:, [1, 4]]).astype(float), along).mean())
    assert errors[1] < 0.4 * errors[0]


@pytest.mark.parametrize("drift", [0.0, 3e-4])
def test_drift_of_the_clock_is_found_in_a_long_video(drift):
    recording, *_ = walk(0.4, seconds=90.0, faster=0.001)
    motion = solve_imus(recording, rate=RATE)
    turn = multiply(from_matrix(np.diag([1.0, -1, -1])), about(np.array([0, 1.0, 0]), np.array(0.8)))
    joints = rotate(turn, motion.joints - motion.joints[:, :1].mean(axis=0)) + np.array([0, 0, 4.0])
    shanks = [
        replace(sensor, times=sensor.times * (1 - drift))
        for sensor in recording.sensors
        if sensor.segment.endswith("shank")
    ]
    noisy = joints + np.random.default_rng(0).normal(0, 0.01, joints.shape)
    times = motion.times + OFFSET
    people = {1: VideoMotion(times, noisy, np.ones(len(times), bool))}
    worn = worn_sensors(ImuRecording.of(shanks, "walk"), people, times)
    assert worn.drift == pytest.approx(drift, abs=2e-5)
    assert ("ppm" in worn.line) == (drift > 0)
    off = worn.directions.directions[:, SHANKS] - unit(joints[:, [3, 6]] - joints[:, [2, 5]])
    ends = np.degrees(np.linalg.norm(off, axis=-1)).mean(axis=1)
    assert max(ends[:60].mean(), ends[-60:].mean()) < 3


def test_too_few_frames_with_the_wearer_are_refused(truth):
    times, joints, recording = truth
    with pytest.raises(PoseError, match="in view for long enough"):
        worn_sensors(recording, {1: VideoMotion(times, joints, np.arange(len(times)) < 10)}, times)


def test_expected_directions_are_those_of_the_dense_gaussian():
    card = json.loads((MODELS / "motion.json").read_text())
    assert sha256_of(MODELS / "motion.npz") == card["sha256"]
    prior, random = MotionPrior.shipped(), np.random.default_rng(2)
    lags, bones = prior.mean.shape[:2]
    directions = unit(prior.mean + random.normal(0, 0.2, prior.mean.shape))
    precision = np.where(random.random((lags, bones)) < 0.5, random.uniform(50, 400, (lags, bones)), 0)
    expected, sigma = prior.expected(directions[None], precision[None])
    # The oracle conditions the joint distribution of all directions on those that are known.
    factors = prior.factors.reshape(-1, prior.factors.shape[-1])
    covariance = factors @ factors.T
    known = np.flatnonzero(np.repeat(precision.ravel() > 0, 3))
    noise = np.repeat(1 / precision.ravel()[precision.ravel() > 0], 3) + prior.rest**2
    now = np.arange(lags * bones * 3).reshape(lags, bones, 3)[lags // 2].ravel()
    gain = covariance[np.ix_(now, known)] @ np.linalg.inv(covariance[np.ix_(known, known)] + np.diag(noise))
    mean = prior.mean.ravel()
    oracle = unit((mean[now] + gain @ (directions.ravel() - mean)[known]).reshape(bones, 3))
    np.testing.assert_allclose(expected[0], oracle, atol=1e-6)
    left = np.diag(covariance[np.ix_(now, now)] - gain @ covariance[np.ix_(known, now)]).reshape(bones, 3).sum(axis=1)
    np.testing.assert_allclose(sigma[0], np.sqrt((left + 3 * prior.rest**2) / 2), rtol=1e-5)
