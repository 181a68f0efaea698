"""Training for the newest frames of a window: what the network sees, what the frames weigh, what the teacher adds."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from pose_datasets.mocap import Clip

from pose.errors import PoseError
from pose.lifting.checkpoint import save_checkpoint
from pose.lifting.config import LifterConfig
from pose.lifting.features import Lifted
from pose.lifting.model import LifterNetwork
from pose.training.batches import TensorBatch
from pose.training.config import LossWeights, NewestConfig
from pose.training.losses import lifting_loss
from pose.training.trainer import NewestFrames, Trainer

sys.path.append(str(Path(__file__).parent))
from training_fixtures import BATCH, FRAMES, source_of, train_config

FUTURE = 4
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A person whose joints swing."""
    rng = np.random.default_rng(0)
    times = np.arange(90) / 30
    swing = np.sin(2 * times[:, None, None] + rng.uniform(0, 6, (1, 19, 3)))
    points = rng.uniform(-0.5, 0.5, (1, 19, 3)) + [0, 0, 1] + 0.1 * swing
    return source_of([Clip("01", "01", points.astype(np.float32), times)], tmp_path_factory.mktemp("clips"))


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """A checkpoint of random weights with a visible output."""
    torch.manual_seed(5)
    network = LifterNetwork(LifterConfig(dim=16, depth=1, heads=2))
    torch.nn.init.normal_(network.head.weight, std=0.1)
    path = tmp_path_factory.mktemp("teacher") / "teacher.safetensors"
    save_checkpoint(network, path)
    return str(path)


def with_other_future(batch):
    keypoints = batch.keypoints.copy()
    keypoints[:, -FUTURE:] += 50
    return replace(batch, keypoints=keypoints)


def parts_of(config: NewestConfig, source, folder: Path, change=lambda batch: batch) -> dict[str, float]:
    trainer = Trainer(train_config(newest=config), source, folder)
    return {
        name: float(part.detach()) for name, part in trainer.loss(TensorBatch.of(change(source.batch(0))), 0)[1].items()
    }


def test_the_newest_frame_has_the_given_weight_and_old_ones_have_1():
    newest = NewestFrames(NewestConfig(weight=9, half_life=2), CPU)
    valid = torch.tensor([[False, *[True] * 40]])
    weights = newest.weights(valid)[0]
    assert weights[-1] == 9
    assert weights[-3] == 5  # two frames older: half of the excess
    assert weights[-5] == 3
    assert weights[1].item() == pytest.approx(1, abs=1e-4)
    assert weights[0] == 0


def test_frame_weights_equal_repeated_frames():
    """Without terms of two frames, a frame of weight 2 counts as much as the same frame twice."""
    generator = torch.Generator().manual_seed(0)
    joints, off = (torch.randn(1, 3, 17, 3, generator=generator) for _ in range(2))
    lifted = Lifted(joints + off, torch.ones(1, 3, 3), torch.full((1, 3, 17), 100.0))
    times = torch.arange(3.0, dtype=torch.float64)[None]
    rows, weights = [0, 1, 1, 2], LossWeights(velocity=0, bend=1)
    repeated = Lifted(*(part[:, rows] for part in (lifted.joints, lifted.root, lifted.sigma)))
    root = torch.full((1, 3, 3), 2.0)
    expected, _ = lifting_loss(
        repeated, joints[:, rows], root[:, rows], times[:, rows], torch.ones(1, 4, dtype=torch.bool), weights
    )
    got, _ = lifting_loss(lifted, joints, root, times, torch.tensor([[1.0, 2.0, 1.0]]), weights)
    assert got.item() == pytest.approx(expected.item(), rel=1e-5)


def test_only_the_teacher_sees_the_future(source, teacher, tmp_path):
    config = NewestConfig(future=FUTURE, teacher=teacher)
    before = parts_of(config, source, tmp_path / "before")
    after = parts_of(config, source, tmp_path / "after", with_other_future)
    assert before["distillation"] != after["distillation"]
    del before["distillation"], after["distillation"]
    assert before == after


def test_loss_uses_the_shorter_sequence(source, tmp_path):
    """Without a teacher, and with equal weights."""
    expected = Trainer(train_config(), source, tmp_path / "plain")
    batch = TensorBatch.of(source.batch(0)).frames(slice(0, FRAMES - FUTURE))
    assert batch.times.shape == (BATCH, FRAMES - FUTURE)
    found = parts_of(NewestConfig(future=FUTURE), source, tmp_path / "newest")
    assert found == pytest.approx(
        {name: float(part.detach()) for name, part in expected.loss(batch, 0)[1].items()}, rel=1e-5
    )


def test_agreeing_teacher_costs_nothing(source, teacher):
    """Of its own mean with the mirror image, the distance is 0."""
    newest = NewestFrames(NewestConfig(teacher=teacher), CPU)
    batch = TensorBatch.of(source.batch(0))
    both = TensorBatch(*(torch.cat(pair) for pair in zip(batch, batch.mirrored(), strict=True)))
    lifted = newest.teacher(both.observe(), both.times)
    (one, other), (root, turned) = lifted.joints.chunk(2), lifted.root.chunk(2)
    mirror = TensorBatch.of(source.batch(0))._replace(joints=other).mirrored().joints
    root = (root + turned * torch.tensor([-1.0, 1, 1])) / 2
    mean = Lifted((one + mirror) / 2, root, lifted.sigma[:BATCH])
    assert newest.distillation(mean, batch, LossWeights(bend=1)).item() == pytest.approx(0, abs=1e-6)


def test_sequences_without_frames_for_the_network_are_refused(source, tmp_path):
    trainer = Trainer(train_config(newest=NewestConfig(future=FRAMES - 2)), source, tmp_path)
    with pytest.raises(PoseError, match="leaves 2 of 12 frames"):
        trainer.run()


def test_a_causal_teacher_is_refused(source, tmp_path):
    with pytest.raises(PoseError, match="stream is causal"):
        Trainer(train_config(newest=NewestConfig(teacher="stream")), source, tmp_path)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"future": -1}, "future: must be at least 0"),
        ({"weight": 0.5}, "weight must be at least 1"),
        ({"share": 0.0}, "share: must be above 0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes, reason):
    with pytest.raises(ValueError, match=reason):
        NewestConfig(**changes)


def test_newest_training_needs_an_offline_network():
    with pytest.raises(ValueError, match="not for streaming models"):
        train_config(model=LifterConfig(streaming=True), newest=NewestConfig(weight=2))
