"""Train a lifter with a loss of your own. Needs `pip install "pose-run[train]"` and the file of `pose-prepare mocap`.

python examples/own_loss.py clips.npz run 200
"""

import sys
from pathlib import Path

from pose_datasets.training import MocapConfig, MocapSource
from torch import Tensor

from pose.lifting.config import LifterConfig
from pose.structures.skeletons import H36M17
from pose.training.batches import TensorBatch
from pose.training.config import TrainConfig
from pose.training.trainer import Trainer, tensor_loss

RIGHT, LEFT = (
    [H36M17.names.index(f"{side}_{joint}") for joint in ("hip", "knee", "ankle")] for side in ("right", "left")
)


class SymmetricTrainer(Trainer):
    """The usual loss, plus the difference in length of left and right legs. `parts` are columns of training.csv."""

    def loss(self, batch: TensorBatch, step: int) -> tuple[Tensor, dict[str, Tensor]]:
        loss, parts, lifted = tensor_loss(self.network, batch, 0, self.config.loss)
        right, left = (lifted.joints[:, :, leg].diff(dim=2).norm(dim=-1) for leg in (RIGHT, LEFT))
        parts["symmetry"] = (right - left).abs().mean()
        return loss + 0.5 * parts["symmetry"], parts


clips, folder, steps = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
config = TrainConfig(model=LifterConfig(dim=64, depth=2, heads=2), steps=steps, log_every=1, precision="fp32")
trainer = SymmetricTrainer(config, MocapSource(MocapConfig(mocap=clips), config.seed), folder)
trainer.run(lambda step, means: print(f"step {step}: {1000 * means['symmetry']:.1f} mm between left and right bones"))
