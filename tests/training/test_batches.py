"""Batches on their way to the device: from any source, and mirrored."""

import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from pose.lifting.config import LifterConfig
from pose.structures.sequences import LiftBatch
from pose.training.batches import TensorBatch, load, mirrored_joints
from pose.training.trainer import Trainer

sys.path.append(str(Path(__file__).parent))
from training_fixtures import train_config

CPU = torch.device("cpu")


class Numbered:
    """A source whose batches say their number. At the top of a module, so that another process can have it."""

    def batch(self, step: int) -> LiftBatch:
        rng = np.random.default_rng(step)
        joints = rng.normal(size=(2, 5, 17, 3)).astype(np.float32)
        joints -= joints[:, :, :1]
        root = np.tile(np.float32([0.3, -0.1, 4]), (2, 5, 1))
        focal, centre = 800.0, (310.0, 250.0)
        matrix = np.array([[focal, 0, centre[0]], [0, focal, centre[1]], [0, 0, 1]])
        points = joints + root[:, :, None]
        return LiftBatch(
            keypoints=(points[..., :2] / points[..., 2:] * focal + np.float32(centre)).astype(np.float32),
            scores=rng.uniform(0.1, 1, (2, 5, 17)).astype(np.float32),
            derived=np.zeros(2, bool),
            times=np.tile(np.arange(5) / 30, (2, 1)),
            valid=np.ones((2, 5), bool),
            intrinsics=np.stack([matrix, matrix]),
            intrinsics_known=np.ones(2, bool),
            image_size=np.tile(np.float32([640, 480]), (2, 1)),
            joints=joints,
            root=root,
        )


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_in_order_for_any_worker_count(workers):
    numbers = range(3, 12, 2)
    for number, batch in zip(numbers, load(Numbered(), TensorBatch.of, numbers, workers, CPU), strict=True):
        expected = TensorBatch.of(Numbered().batch(number))
        assert all(torch.equal(got, want) for got, want in zip(batch, expected, strict=True))


def test_mirrored_batch_projects_to_the_mirrored_image():
    batch = TensorBatch.of(Numbered().batch(0)).mirrored()
    points = batch.joints + batch.root[:, :, None]
    pixels = points[..., :2] / points[..., 2:] * 800 + torch.tensor([310.0, 250.0])
    torch.testing.assert_close(pixels, batch.keypoints, rtol=1e-4, atol=1e-2)
    twice = batch.mirrored()
    for name, got, want in zip(TensorBatch._fields, twice, TensorBatch.of(Numbered().batch(0)), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-3, msg=name)


def test_consistency_loss_is_the_distance_to_the_mirrored_output(tmp_path):
    config = train_config(model=LifterConfig(dim=32, depth=1, heads=2), steps=1, consistency=2.0)
    trainer = Trainer(config, Numbered(), tmp_path)
    batch = TensorBatch.of(Numbered().batch(0))
    with torch.no_grad():
        one, other = (trainer.bare_network(b.observe(), b.times).joints for b in (batch, batch.mirrored()))
    expected = (one - mirrored_joints(other)).norm(dim=-1).mean().item()
    told: list[dict[str, float]] = []
    trainer.run(lambda step, metrics: told.append(metrics))
    assert told[0]["consistency"] == pytest.approx(expected, rel=1e-4)
    weights = asdict(config.loss) | {"consistency": 2.0}
    del weights["ponder"]  # of adaptive depth, which this lifter has not
    assert told[0]["loss"] == pytest.approx(sum(w * told[0][name] for name, w in weights.items()), rel=1e-4)
