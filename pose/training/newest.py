"""Training for the newest frames of a window, as the sliding window of a stream needs them (`pose.lifting.sliding`).

In training on whole sequences, most frames have context on both sides. In a stream, nothing follows the newest frame.
Here, the network does not see the last frames of a training sequence, and the newest frames that it sees have more
weight in the loss. A teacher network sees all frames. Unlike the ground truth, its output contains few details that
cannot be inferred from the 2D, so it is a target with less variance (Hinton et al., 2015).
"""

import torch
from torch import Tensor

from pose.errors import PoseError
from pose.lifting.checkpoint import load_checkpoint
from pose.lifting.features import Lifted
from pose.lifting.predict import checkpoint_path
from pose.training.batches import TensorBatch, mirrored_joints
from pose.training.config import LossWeights, NewestConfig
from pose.training.losses import lifting_loss

MIN_FRAMES = 3  # frames that the network must see


class NewestFrames:
    """Training for the newest frames of a window: their selection, weights and the loss of the teacher's output."""

    def __init__(self, config: NewestConfig, device: torch.device) -> None:
        """Load the teacher."""
        self.config = config
        self.teacher = None
        if config.teacher:
            self.teacher = load_checkpoint(checkpoint_path(config.teacher)).to(device).requires_grad_(False)
            if self.teacher.config.streaming:
                raise PoseError(f"train.newest.teacher: {config.teacher} is causal; use an offline lifter")

    def without_future(self, batch: TensorBatch) -> TensorBatch:
        """Return the batch without the last `NewestConfig.future` frames, which only the teacher receives."""
        count = batch.times.shape[1] - self.config.future
        if count < MIN_FRAMES:
            raise PoseError(
                f"train.newest.future: {self.config.future} leaves {count} of {batch.times.shape[1]} frames; at least "
                f"{MIN_FRAMES} are needed; reduce it or increase data.frames"
            )
        return batch.frames(slice(0, count))

    def weights(self, valid: Tensor) -> Tensor:
        """Return weights (B, T) of frames in the loss: `weight` for the newest, falling to 1 with age, 0 if invalid."""
        age = torch.arange(valid.shape[1] - 1, -1, -1, device=valid.device)
        return valid * (1 + (self.config.weight - 1) * 0.5 ** (age / self.config.half_life))

    def distillation(self, lifted: Lifted, batch: TensorBatch, weights: LossWeights) -> Tensor:
        """Return the loss against the teacher's output for the last frames of its window, without sigma's term."""
        assert self.teacher is not None
        count, frames = lifted.joints.shape[1], batch.times.shape[1]
        first = max(0, frames - self.teacher.config.window)
        joints, root = self._teacher_output(batch.frames(slice(first, frames)))
        student = Lifted(*(part[:, first:] for part in (lifted.joints, lifted.root, lifted.sigma)))
        shared = slice(0, count - first)
        frame_weights = self.weights(batch.valid[:, :count])[:, first:]
        times = batch.times[:, first:count]
        return lifting_loss(student, joints[:, shared], root[:, shared], times, frame_weights, weights, sigma=False)[0]

    @torch.no_grad()
    def _teacher_output(self, batch: TensorBatch) -> tuple[Tensor, Tensor]:
        """Return the teacher's joints and root, averaged over the batch and its mirror image."""
        assert self.teacher is not None
        both = TensorBatch(*(torch.cat(pair) for pair in zip(batch, batch.mirrored(), strict=True)))
        lifted = self.teacher(both.observe(), both.times)
        (plain, mirrored), (root, other) = lifted.joints.chunk(2), lifted.root.chunk(2)
        return (plain + mirrored_joints(mirrored)) / 2, (root + other * other.new_tensor([-1, 1, 1])) / 2
