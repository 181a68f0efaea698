"""The network that corrects skeletons of depth cameras: its inputs, its outputs, and the shipped weights."""

import numpy as np
import pytest
import torch
from sensor_motion import motion

from pose.lifting.config import LifterConfig
from pose.lifting.sensor.features import as_targets, describe, restore
from pose.lifting.sensor.network import SENSOR, SensorNetwork

SMALL = LifterConfig(dim=16, depth=1, heads=2, expansion=1, window=24, hop=12)


def turned(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def test_true_corrections_restore_the_truth():
    joints, times = motion()
    noisy = joints + np.random.default_rng(1).normal(0, 0.02, joints.shape)
    scores = np.ones(joints.shape[:3])
    scores[0, 10:14, 5] = 0
    _, view = describe(noisy, scores, times, np.array([True]))
    np.testing.assert_allclose(restore(view, as_targets(view, joints)), joints, atol=1e-6)


@pytest.mark.parametrize("angle", [0.7, 2.0, -3.0])
def test_inputs_do_not_depend_on_the_heading_or_the_place(angle):
    joints, times = motion()
    expected, _ = describe(joints, np.ones(joints.shape[:3]), times, np.array([False]))
    moved = joints @ turned(angle) + [1.0, 0.2, 5.0]
    found, _ = describe(moved, np.ones(joints.shape[:3]), times, np.array([False]))
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_joint_of_score_zero_has_no_influence():
    joints, times = motion()
    scores = np.ones(joints.shape[:3])
    scores[0, 5:9, 3] = 0
    wrong = joints.copy()
    wrong[0, 5:9, 3] = np.nan
    for expected, found in zip(
        describe(joints, scores, times, np.array([True])), describe(wrong, scores, times, np.array([True])), strict=True
    ):
        if isinstance(found, np.ndarray):
            np.testing.assert_array_equal(found, expected)
    assert np.isfinite(found.base).all()


@pytest.mark.parametrize("attention", ["softmax", "local", "fastformer"])
def test_attention_of_the_lifter_can_be_chosen(attention):
    joints, times = motion()
    features, _ = describe(joints, np.ones(joints.shape[:3]), times, np.array([True]))
    config = LifterConfig(dim=16, depth=2, heads=2, expansion=1, attention=attention)
    corrections, sigma = SensorNetwork(config)(torch.from_numpy(features), torch.from_numpy(times))
    assert corrections.shape == (1, 40, 51)
    assert sigma.shape == (1, 40, 17)
    assert (sigma > 0).all()


def test_network_does_not_stream():
    with pytest.raises(ValueError, match="does not stream"):
        SensorNetwork(LifterConfig(dim=16, depth=1, heads=2, streaming=True))


def test_checkpoint_keeps_weights_and_definition(tmp_path):
    network = SensorNetwork(SMALL)
    network.definition.fill_(0.25)
    SENSOR.save(network, network.config, tmp_path / "a.safetensors")
    again = SENSOR.load(tmp_path / "a.safetensors")
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], tensor)
