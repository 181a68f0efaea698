"""Scores as other detectors would say them.

Every detector has a dialect: one calls all it sees 0.95, another 0.6; one falls gently with doubt, another at once; one
is modest about wrists, and a file from a marker system says 1. A lifter that knows only one takes the level for the
size of the errors. So each training sequence may speak a dialect of its own, drawn here; what is not seen stays so.
"""

import math

import torch
from torch import Tensor

LOWEST = 0.01  # what is seen keeps a score above 0
_PLAIN = 0.2  # share of sequences whose scores stay as they are
_CURVED, _SCALED, _CONSTANT, _BY_JOINT, _NOISY, _STEPPED = 0.4, 0.35, 0.3, 0.5, 0.25, 0.1  # shares of the others


def in_dialects(scores: Tensor, generator: torch.Generator) -> Tensor:
    """Scores (B, T, J) in [0, 1], each sequence in a random dialect; 0 stays 0, all else lies in [0.01, 1].

    A dialect is a power, a factor for all joints, one level for all that is seen, a factor for each joint, noise, or a
    few steps instead of a scale: any of these together, in that order.
    """
    device, (batch, _, joints) = scores.device, scores.shape

    def uniform(low: float, high: float, *shape: int) -> Tensor:
        return low + (high - low) * torch.rand(shape, generator=generator, device=device)

    def chosen(share: float) -> Tensor:
        return uniform(0, 1, batch, 1, 1) < share

    said = scores
    power = uniform(math.log(0.25), math.log(4), batch, 1, 1).exp()
    said = torch.where(chosen(_CURVED), said.clamp(min=1e-6) ** power, said)
    said = torch.where(chosen(_SCALED), said * uniform(0.3, 1, batch, 1, 1), said)
    level = uniform(0.2, 1, batch, 1, 1)
    level = torch.where(chosen(0.4), torch.ones_like(level), level)
    said = torch.where(chosen(_CONSTANT), level.expand_as(said), said)
    said = torch.where(chosen(_BY_JOINT), said * uniform(0.3, 1, batch, 1, joints), said)
    said = torch.where(chosen(_NOISY), said * uniform(0.4, 1, *scores.shape), said)
    steps = uniform(1, 5, batch, 1, 1).floor()
    said = torch.where(chosen(_STEPPED), (said * steps).ceil() / steps, said)
    said = torch.where(chosen(_PLAIN), scores, said.clamp(LOWEST, 1))
    return torch.where(scores > 0, said, 0.0)
