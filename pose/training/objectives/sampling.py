"""Sampling of motion from a network that was pre-trained on `next`, pose by pose, with a cache of constant size.

Axes: B batch, T time, J joint.
"""

import torch
from torch import Tensor

from pose.lifting.attention import Cache, Context
from pose.lifting.features import observe_next, split_features
from pose.lifting.format import PELVIS
from pose.lifting.model import streaming_token
from pose.training.batches import TensorBatch
from pose.training.objectives.pretraining import Pretraining


@torch.inference_mode()
def continued(network: Pretraining, batch: TensorBatch, frames: int, generator: torch.Generator) -> Tensor:
    """Sample a continuation (B, frames, J, 2) px of a batch's motion from a lifter trained on `next`, pose by pose.

    The time between poses is that between the last two frames of the batch. The pelvis stays at its last position,
    because the network predicts joints relative to it. Another network is a ValueError.
    """
    lifter = network.lifter
    if network.objective.name != "next" or not lifter.config.streaming:
        raise ValueError("sampling needs a streaming lifter that was pre-trained with the objective 'next'")
    camera = batch.intrinsics, batch.derived, batch.intrinsics_known
    focal, centre = batch.intrinsics[:, None, (0, 1), (0, 1)], batch.intrinsics[:, None, :2, 2]
    step = batch.times[:, -1] - batch.times[:, -2]
    caches = lifter.init_caches(len(batch.times), batch.times.device)

    def advance(features: Tensor, now: Tensor, caches: list[Cache]) -> tuple[Tensor, list[Cache]]:
        token = streaming_token(features, features, torch.zeros_like(now))[:, None]
        return lifter.mixed_step(token, Context.from_times(now[:, None], lifter.head_dim), caches)

    past = batch.observe().features
    for t in range(past.shape[1]):
        x, caches = advance(past[:, t], batch.times[:, t], caches)
    features, drawn = past[:, -1], []
    for t in range(frames):
        seen = split_features(features)
        offsets = network.head(x, seen.offsets[:, None]).sample(generator)[:, 0]
        offsets[:, PELVIS] = 0.0
        rays = seen.centres[:, None] + seen.spreads[:, None, None] * offsets
        drawn.append((rays * focal + centre).float())
        features = observe_next(drawn[-1], torch.ones_like(offsets[..., 0]), step, features, *camera)
        x, caches = advance(features, batch.times[:, -1] + (t + 1) * step, caches)
    return torch.stack(drawn, dim=1)
