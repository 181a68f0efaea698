"""`pose-train sensor`: a short run from motion capture and recordings, as a user calls it."""

import csv

import numpy as np
import pytest
import yaml
from command_errors import error_line
from pose_apps.train import main
from pose_datasets.kinect import Pair, save_pairs
from pose_datasets.mocap import Clip, save_clips

from pose.lifting.sensor.network import SENSOR
from pose.lifting.sensor.runtime import SensorCorrector


def moving(frames, seed, points):
    rng = np.random.default_rng(seed)
    rest = rng.uniform(-0.4, 0.4, (points, 3))
    times = np.arange(frames) / 60
    return (rest + 0.1 * np.sin(3 * times[:, None, None] + rng.uniform(0, 6, (points, 3)))).astype(np.float32), times


@pytest.fixture
def data(tmp_path):
    save_clips(
        [Clip(subject, f"{subject}_01", *moving(150, 1, 19)) for subject in ("01", "05")], tmp_path / "clips.npz"
    )
    pairs = []
    for subject in ("uiprmd-s02", "uiprmd-s07"):
        truth = moving(40, 2, 17)[0]
        offset = np.array([0, 0.05, 0], np.float32) * (np.arange(17)[:, None] > 0)
        pairs.append(Pair(subject, f"{subject}_m01_e01", truth + offset.astype(np.float32), truth))
    save_pairs(pairs, tmp_path / "pairs.npz")
    return tmp_path


def words(data, *more):
    recipe = {
        "data": {
            "mocap": str(data / "clips.npz"), "pairs": str(data / "pairs.npz"), "frames": [16, 24], "batch_frames": 48,
        },
        "train": {
            "model": {"dim": 16, "depth": 1, "heads": 2, "expansion": 1, "window": 24, "hop": 12}, "steps": 3,
            "log_every": 1, "evaluate_every": 3, "precision": "fp32", "schedule": {"warmup": "none"},
        },
    }  # fmt: skip
    (data / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return ["sensor", "--config", str(data / "recipe.yaml"), "--out", str(data / "run"), "--quiet", *more]


@pytest.mark.slow
def test_run_writes_a_calibrated_network_for_use(data, capsys):
    assert main(words(data)) == 0
    assert "validation people, recorded" in capsys.readouterr().out
    with (data / "run/training.csv").open() as file:
        assert [row["step"] for row in csv.DictReader(file)] == ["1", "2", "3"]
    network = SENSOR.load(data / "run/final.safetensors")
    # The mean offset of the training person, 50 mm upwards, is subtracted; the pelvis stays.
    np.testing.assert_allclose(
        network.definition.numpy().reshape(17, 3)[1:], np.tile([0, -0.05, 0], (16, 1)), atol=1e-5
    )
    assert (network.calibration[1] != 0).all()
    assert main(words(data)) == 2
    assert "already contains a training run" in error_line(capsys)
    joints = moving(40, 2, 17)[0][None][0].astype(float)
    found, sigma = SensorCorrector(data / "run/final.onnx").correct(joints, np.ones((40, 17)), np.arange(40) / 30, True)
    assert np.abs(found - joints).max() < 0.5
    assert (sigma > 0).all()


def test_missing_motion_capture_is_named(tmp_path, capsys):
    assert main(["sensor", "--out", str(tmp_path / "run")]) == 2
    assert "--data.mocap is missing" in error_line(capsys)
