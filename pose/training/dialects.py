"""Random transformations of scores, which imitate other detectors.

Detectors use different score scales. Some give 0.95 to every visible joint, others 0.6. The scores of some decrease
gradually with uncertainty, those of others abruptly; files from marker systems contain only 1. A lifter trained on one
scale misinterprets others. Each training sequence may therefore get its own transformation, its "dialect". Scores of 0
(not detected) stay 0.
"""

import math

import torch
from torch import Tensor

MIN_DETECTED_SCORE = 0.01  # minimum score of detected joints
_UNCHANGED = 0.2  # fraction of sequences whose scores are unchanged
_CURVED, _SCALED, _CONSTANT, _BY_JOINT, _NOISY, _STEPPED = 0.4, 0.35, 0.3, 0.5, 0.25, 0.1  # fractions of the others


def transform_scores(scores: Tensor, generator: torch.Generator) -> Tensor:
    """Transform scores (B, T, J) of each sequence at random: 0 stays 0, others become 0.01 to 1."""
    # A transformation combines any of these, in this order: a power, a common factor, one constant score, a factor per
    # joint, noise, and quantisation. A fifth of the sequences are unchanged.
    device, (batch, _, joints) = scores.device, scores.shape

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=generator, device=device)

    def chosen(probability: float) -> Tensor:
        return uniform(0, 1, batch, 1, 1) < probability

    changed = scores
    power = uniform(math.log(0.25), math.log(4), batch, 1, 1).exp()
    changed = torch.where(chosen(_CURVED), changed.clamp(min=1e-6) ** power, changed)
    changed = torch.where(chosen(_SCALED), changed * uniform(0.3, 1, batch, 1, 1), changed)
    level = uniform(0.2, 1, batch, 1, 1)
    level = torch.where(chosen(0.4), torch.ones_like(level), level)
    changed = torch.where(chosen(_CONSTANT), level.expand_as(changed), changed)
    changed = torch.where(chosen(_BY_JOINT), changed * uniform(0.3, 1, batch, 1, joints), changed)
    changed = torch.where(chosen(_NOISY), changed * uniform(0.4, 1, *scores.shape), changed)
    steps = uniform(1, 5, batch, 1, 1).floor()
    changed = torch.where(chosen(_STEPPED), (changed * steps).ceil() / steps, changed)
    changed = torch.where(chosen(_UNCHANGED), scores, changed.clamp(MIN_DETECTED_SCORE, 1))
    return torch.where(scores > 0, changed, 0.0)
