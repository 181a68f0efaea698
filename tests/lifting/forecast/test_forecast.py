"""What every forecaster promises, and the two that need no network, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from pose.lifting.forecast import DampedVelocity, Past, ZeroVelocity, forecast, load_forecaster
from pose.lifting.forecast.baselines import LIMB_TIME_CONSTANT_S, ROOT_TIME_CONSTANT_S, recent_velocity
from pose.structures.sequences import Sequence3D

BODY = np.random.default_rng(3).normal(0, 0.4, (17, 3)).astype(np.float32)
SPEED = np.random.default_rng(4).normal(0, 1, (17, 3)).astype(np.float32)
WAY = np.array([0.5, 0.0, -1.0], np.float32)


def line(times, speed=SPEED, way=WAY):
    """A body that moves along straight lines, at `times` s."""
    times = np.asarray(times, np.float64)
    t = times[:, None, None].astype(np.float32)
    joints = BODY - BODY[0] + t * (speed - speed[0])
    return Sequence3D(joints, [0, 1, 5] + t[:, 0] * way, np.full((len(times), 17), 20, np.float32), times)


BASELINES = [ZeroVelocity(), DampedVelocity()]
FORECASTERS = [*BASELINES, load_forecaster()]
by_name = {"ids": lambda one: one.name}


@pytest.fixture(params=FORECASTERS, **by_name)
def forecaster(request):
    return request.param


@pytest.mark.parametrize("unsure", [20, 150, 700])
def test_forecast_sigma_is_never_below_the_source_sigma(forecaster, unsure):
    past = line(np.arange(31) / 30, speed=0.1 * SPEED)
    sigma = past.sigma.copy()
    sigma[:, 10:] = unsure  # some joints that the lifter was not sure of
    found = forecast(replace(past, sigma=sigma), [0.05, 0.1, 0.3, 1.0], forecaster=forecaster)
    assert (found.sequence.sigma >= sigma[-1] - 1e-3).all()


def test_zero_velocity_holds_the_last_pose():
    past = line(np.arange(31) / 30)
    found = forecast(past, [0.1, 0.4], forecaster=ZeroVelocity())
    assert np.array_equal(found.sequence.joints, np.repeat(past.joints[-1:], 2, axis=0))
    assert np.array_equal(found.sequence.root, np.repeat(past.root[-1:], 2, axis=0))


@pytest.mark.parametrize("fps", [15, 25, 30, 60])
def test_damped_velocity_decelerates_along_a_line(fps):
    past = line(np.arange(fps) / fps)
    h = 0.3
    found = forecast(past, [h], forecaster=DampedVelocity()).sequence
    limbs, body = (tau * (1 - np.exp(-h / tau)) for tau in (LIMB_TIME_CONSTANT_S, ROOT_TIME_CONSTANT_S))
    assert np.allclose(found.joints[0], past.joints[-1] + limbs * (SPEED - SPEED[0]), atol=1e-4)
    assert np.allclose(found.root[0], past.root[-1] + body * WAY, atol=1e-4)


def test_velocity_uses_the_last_tenth_of_a_second():
    times = np.array([0.0, 0.4, 0.5, 0.52, 0.57, 0.6])
    bent = line(times)
    bent.joints[:2] += 1  # longer ago
    joints, root = recent_velocity(Past.from_sequences([bent]))
    assert np.allclose(joints[0], SPEED - SPEED[0], atol=1e-3)
    assert np.allclose(root[0], WAY, atol=1e-3)


@pytest.mark.parametrize("forecaster", BASELINES, **by_name)  # a network: test_shipped_forecaster.py
def test_constant_pose_is_forecast_unchanged(forecaster):
    still = line(np.arange(20) / 20, 0 * SPEED, 0 * WAY)
    found = forecast(still, 1.0, forecaster=forecaster).sequence
    assert np.allclose(found.joints, still.joints[-1], atol=1e-5)
    assert np.allclose(found.root, still.root[-1], atol=1e-5)


@pytest.mark.parametrize("forecaster", BASELINES, **by_name)
def test_sigma_grows_with_the_horizon_from_that_of_the_last_frame(forecaster):
    found = forecast(line(np.arange(30) / 30), np.linspace(1e-6, 1, 20), forecaster=forecaster)
    assert np.allclose(found.sequence.sigma[0], 20, atol=1)
    assert (np.diff(found.sequence.sigma[:, 1:], axis=0) > 0).all()
    assert (np.diff(found.root_sigma) > 0).all()


def test_invalid_frames_have_no_effect(forecaster):
    past = Past.from_sequences([line(np.arange(30) / 30)])
    joints, root, times, sigma = past.joints.copy(), past.root.copy(), past.times.copy(), past.sigma.copy()
    valid = past.valid.copy()
    gap = [3, 4, 20, 29]
    valid[:, gap] = False
    holed = replace(past, valid=valid)
    for array in (joints, root, times, sigma):
        array[:, gap] = np.nan
    broken = Past(joints, root, sigma, times, valid)
    kept = [frame for frame in range(30) if frame not in gap]
    left_out = Past(*(array[:, kept] for array in (past.joints, past.root, past.sigma, past.times, past.valid)))
    query = np.array([[1.0, 1.2, 1.5]])
    found = [forecaster.predict(one, query) for one in (holed, broken, left_out)]
    for other in found[1:]:
        assert np.allclose(other.joints, found[0].joints, atol=1e-6)
        assert np.allclose(other.root, found[0].root, atol=1e-6)
        assert np.allclose(other.sigma, found[0].sigma, rtol=1e-5)
    assert np.allclose(found[0].ahead, query - 28 / 30)


def test_batch_people_are_independent(forecaster):
    people = [line(np.arange(30) / 30), line(np.arange(9) / 15, -SPEED, 2 * WAY), line([4.0])]
    query = np.array([one.times[-1] + np.array([0.05, 0.5]) for one in people])
    together = forecaster.predict(Past.from_sequences(people), query)
    for row, person in enumerate(people):
        alone = forecast(person, [0.05, 0.5], forecaster=forecaster)
        assert np.allclose(together.joints[row], alone.sequence.joints, atol=1e-5)
        assert np.allclose(together.root[row], alone.sequence.root, atol=1e-5)
        assert np.allclose(together.ahead[row], [0.05, 0.5])


def test_time_origin_does_not_change_forecasts(forecaster):
    past = line(np.arange(30) / 30)
    later = replace(past, times=past.times + 1e6)
    one, other = (forecast(p, 0.5, forecaster=forecaster).sequence for p in (past, later))
    assert np.allclose(one.joints, other.joints, atol=1e-4)


def test_forecast_frames_keep_the_frame_rate():
    found = forecast(line(np.arange(50) / 50), 0.13)
    assert np.allclose(found.ahead, [0.02, 0.04, 0.06, 0.08, 0.1, 0.12, 0.13])
    assert np.allclose(forecast(line(np.arange(50) / 50), 0.1).ahead, [0.02, 0.04, 0.06, 0.08, 0.1])
    assert np.allclose(forecast(line([0.0]), 0.1).ahead, [1 / 30, 2 / 30, 0.1])


@pytest.mark.parametrize("horizon", [0, -1, float("nan"), [], [0.2, 0.1], [[0.1]]])
def test_invalid_horizons_are_rejected(horizon):
    with pytest.raises(ValueError, match="horizon"):
        forecast(line([0.0, 0.1]), horizon)


def test_invalid_pasts_are_rejected():
    past = Past.from_sequences([line(np.arange(3.0) / 30)])
    with pytest.raises(ValueError, match="has no valid frame"):
        replace(past, valid=np.zeros((1, 3), bool))
    with pytest.raises(ValueError, match="increase"):
        replace(past, times=past.times[:, ::-1])
    with pytest.raises(ValueError, match="joints: NaN"):
        replace(past, joints=past.joints * np.nan)
    with pytest.raises(ValueError, match="1 people"):
        ZeroVelocity().predict(past, np.zeros((2, 1)))
