"""The shipped forecaster: its files belong together, and it does what the page says of it."""

import json

import numpy as np
import pytest

from pose.lifting.forecast import forecast, load_forecaster
from pose.lifting.forecast.config import HORIZONS
from pose.lifting.forecast.runtime import OnnxForecaster, shipped_path
from pose.networks.weights import sha256_of
from pose.structures.sequences import Sequence3D

BODY = np.zeros((17, 3), np.float32)
BODY[1:4] = [[-0.13, 0, 0], [-0.13, 0.45, 0], [-0.13, 0.88, 0]]
BODY[4:7] = BODY[1:4] * [-1, 1, 1]
BODY[7:11] = [[0, -0.25, 0], [0, -0.5, 0], [0, -0.6, 0], [0, -0.72, 0]]
BODY[11:14] = [[0.17, -0.47, 0], [0.2, -0.2, 0], [0.2, 0.05, 0]]
BODY[14:17] = BODY[11:14] * [-1, 1, 1]


def person(fps=30, lift=0.0, sigma=0.0):
    """A person 4 m away, who stands or raises both hands at `lift` m/s."""
    times = np.arange(fps + 1) / fps
    joints = np.repeat(BODY[None], len(times), axis=0)
    joints[:, [13, 16], 1] -= lift * times[:, None].astype(np.float32)
    root = np.tile(np.float32([0, 0, 4]), (len(times), 1))
    return Sequence3D(joints, root, np.full((len(times), 17), sigma, np.float32), times)


def test_shipped_forecaster_files_match():
    path = shipped_path()
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    assert card["sha256"] == sha256_of(path)
    assert OnnxForecaster.beside(path, "forecaster") is not None
    assert path.stat().st_size + path.with_suffix(".onnx").stat().st_size < 10e6
    assert isinstance(load_forecaster(), OnnxForecaster)


def test_shipped_onnx_equals_its_checkpoint():
    pytest.importorskip("torch")
    from pose.lifting.forecast.build import load_network
    from pose.lifting.forecast.runtime import TorchForecaster

    network = TorchForecaster(load_network(shipped_path()), "torch")
    found = [forecast(person(lift=0.5), list(HORIZONS), forecaster=one) for one in (load_forecaster(), network)]
    assert np.allclose(found[0].sequence.joints, found[1].sequence.joints, atol=1e-4)
    assert np.allclose(found[0].sequence.sigma, found[1].sequence.sigma, rtol=1e-3)


@pytest.mark.parametrize("fps", [15, 30, 60])
def test_standing_person_is_forecast_standing(fps):
    still = person(fps)
    found = forecast(still, list(HORIZONS))
    moved = np.linalg.norm(found.sequence.joints - still.joints[-1], axis=-1).mean(axis=-1)
    assert moved[0] < 0.005
    assert moved.max() < 0.05


def test_rising_hands_are_forecast_to_rise():
    found = forecast(person(lift=0.5), [0.08, 0.16]).sequence
    rise = person(lift=0.5).joints[-1, [13, 16], 1] - found.joints[:, [13, 16], 1]
    assert ((rise[0] > 0.01) & (rise[0] < 0.06)).all()  # 0.04 m at the speed they have
    assert ((rise[1] > 1.3 * rise[0]) & (rise[1] < 0.12)).all()


@pytest.mark.parametrize("sigma", [0, 40])  # mm, of the past: known exactly, and a lifter's
def test_forecast_sigma_grows_with_the_horizon(sigma):
    found = forecast(person(lift=0.5, sigma=sigma), list(HORIZONS))
    mean = found.sequence.sigma[:, 1:].mean(axis=1)
    assert (np.diff(mean) > 0).all()
    assert (np.diff(found.root_sigma) > 0).all()
