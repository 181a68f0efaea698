"""The network that corrects skeletons of depth cameras: its inputs, its outputs, and the shipped weights."""

import numpy as np
import pytest
import torch

from pose.lifting.config import LifterConfig
from pose.lifting.sensor.features import as_targets, describe, restore
from pose.lifting.sensor.network import SENSOR, SensorNetwork, export_sensor
from pose.lifting.sensor.runtime import SensorCorrector
from pose.structures.skeletons import H36M17

SMALL = LifterConfig(dim=16, depth=1, heads=2, expansion=1, window=24, hop=12)


def motion(frames=40, seed=0):
    """Return joints (1, T, 17, 3) m of a person who faces z, and times (1, T)."""
    rng = np.random.default_rng(seed)
    times = np.arange(frames)[None] / 30
    rest = rng.uniform(-0.4, 0.4, (17, 3))
    rest[H36M17.index("left_hip"), 0], rest[H36M17.index("left_shoulder"), 0] = 0.3, 0.4
    rest[H36M17.index("right_hip"), 0], rest[H36M17.index("right_shoulder"), 0] = -0.3, -0.4
    return rest + 0.1 * np.sin(3 * times[..., None, None] + rng.uniform(0, 6, (17, 3))) + [0.5, 1, -3], times


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


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """A network with random corrections of centimetres, and its exported file."""
    torch.manual_seed(3)
    network = SensorNetwork(SMALL).eval()
    torch.nn.init.normal_(network.head.weight, std=0.005)
    path = tmp_path_factory.mktemp("sensor") / "sensor.onnx"
    export_sensor(network, path)
    return network, path


def test_exported_file_equals_the_network(exported):
    network, path = exported
    joints, times = motion(frames=20)  # one window
    scores = np.ones(joints.shape[:3])
    features, view = describe(joints, scores, times, np.array([True]))
    with torch.inference_mode():
        corrections, sigma = network(torch.from_numpy(features), torch.from_numpy(times))
    found, spread = SensorCorrector(path).correct(joints[0], scores[0], times[0], kinect=True)
    np.testing.assert_allclose(found, restore(view, corrections.numpy())[0], atol=1e-4)
    np.testing.assert_allclose(spread, sigma.numpy()[0], rtol=1e-3)


def test_long_recordings_with_gaps_keep_their_frames(exported):
    joints, times = motion(frames=130)
    times = times[0] + np.where(np.arange(130) < 60, 0, 2.0) + np.where(np.arange(130) < 126, 0, 2.0)
    scores = np.ones((130, 17))
    scores[70:75, 6] = 0
    found, sigma = SensorCorrector(exported[1]).correct(joints[0], scores, times, kinect=False)
    assert np.isfinite(found).all()
    assert (sigma > 0).all()
    assert np.linalg.norm(found - joints[0], axis=-1).max() < 0.2
    np.testing.assert_array_equal(found[126:], joints[0, 126:])  # too short for the network


def test_checkpoint_keeps_weights_and_definition(tmp_path):
    network = SensorNetwork(SMALL)
    network.definition.fill_(0.25)
    SENSOR.save(network, network.config, tmp_path / "a.safetensors")
    again = SENSOR.load(tmp_path / "a.safetensors")
    for name, tensor in network.state_dict().items():
        torch.testing.assert_close(again.state_dict()[name], tensor)
