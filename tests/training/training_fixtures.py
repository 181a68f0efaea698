"""A tiny training run: made-up and real motion, and a source of batches of it."""

from pathlib import Path

import pytest
from pose_datasets.mocap import Clip, save_clips
from pose_datasets.training import MocapConfig, MocapSource

from pose.lifting.config import LifterConfig
from pose.training.config import OptimizerConfig, TrainConfig
from pose.training.schedules import ScheduleConfig
from pose.training.trainer import Trainer

BATCH, FRAMES = 4, 12


def train_config(**changes) -> TrainConfig:
    """A few steps of a network of a few thousand parameters, logged at every step."""
    values = {
        "model": LifterConfig(dim=16, depth=1, heads=2),
        "optimizer": OptimizerConfig(lr=3e-3),
        "schedule": ScheduleConfig(decay="none"),
        "steps": 6,
        "precision": "fp32",
        "ema": 0.5,
        "log_every": 1,
        "checkpoint_every": 2,
    }
    return TrainConfig(**(values | changes))


def source_of(clips: list[Clip], folder: Path, **changes) -> MocapSource:
    """Batches of these clips, which must hold a training subject."""
    path = folder / "clips.npz"
    save_clips(clips, path)
    config = {"mocap": str(path), "frames": (FRAMES,), "batch_frames": BATCH * FRAMES}
    return MocapSource(MocapConfig(**(config | changes)), seed=0)


class KilledError(Exception):
    """What happens to a run in the middle of it."""


class KillingSource:
    """Gives the batches of another source until it is asked for one too many."""

    def __init__(self, source, last: int) -> None:
        self.source, self.last = source, last

    def batch(self, step: int):
        if step > self.last:
            raise KilledError
        return self.source.batch(step)


def killed(config: TrainConfig, source, folder: Path, last: int) -> None:
    """A run that was killed after its batch `last`."""
    with pytest.raises(KilledError):
        Trainer(config, KillingSource(source, last), folder).run()


def resumed(config: TrainConfig, source, folder: Path) -> Trainer:
    """The run of `folder`, gone on to its end."""
    trainer = Trainer(config, source, folder)
    trainer.resume()
    trainer.run()
    return trainer
