"""Predicted densities of pose coordinates: mixtures of Laplace densities."""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pose.lifting.blocks import PreciseLinear
from pose.lifting.format import JOINTS

COMPONENTS = 3
_LOG_SCALES = (-5.0, 3.0)  # logarithm of body spreads, about 7 mm to 10 m; bounds the density


class Mixture(NamedTuple):
    """Mixture of K Laplace densities."""

    log_weights: Tensor  # (..., K) logarithms of the weights, which sum to 1
    means: Tensor  # (..., K) means of the components
    log_scales: Tensor  # (..., K) logarithms of the scales

    def nll(self, values: Tensor) -> Tensor:
        """Return the negative log likelihood (...) of `values` (...), in nats."""
        distances = (values[..., None] - self.means).abs() * torch.exp(-self.log_scales)
        return -torch.logsumexp(self.log_weights - distances - self.log_scales - math.log(2), dim=-1)

    def mean(self) -> Tensor:
        """Return the mean (...) of each mixture."""
        return (self.log_weights.exp() * self.means).sum(dim=-1)

    def sample(self, generator: torch.Generator) -> Tensor:
        """Draw one sample (...) from each mixture."""
        weights = self.log_weights.exp()
        chosen = torch.multinomial(weights.flatten(0, -2), 1, generator=generator).view(*weights.shape[:-1], 1)
        mean, scale = (part.gather(-1, chosen)[..., 0] for part in (self.means, self.log_scales.exp()))
        uniform = torch.rand(mean.shape, generator=generator, device=mean.device) - 0.5
        return mean - scale * uniform.sign() * torch.log1p(-2 * uniform.abs().clamp(max=0.5 - 1e-7))


class PoseHead(nn.Module):
    """Output layer that predicts a mixture for each of the two coordinates of 17 joints."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear: nn.Linear = PreciseLinear(width, JOINTS * 2 * 3 * COMPONENTS)
        nn.init.normal_(self.linear.weight, std=0.1 / width**0.5)
        nn.init.normal_(self.linear.bias, std=0.1)  # equally initialised components would stay equal

    def forward(self, x: Tensor, base: Tensor | None = None) -> Mixture:
        """Return mixtures (B, T, J, 2, K) of tokens (B, T, width), with `base` (B, T, J, 2) added to the means."""
        weights, means, scales = self.linear(x).float().unflatten(-1, (3, JOINTS, 2, COMPONENTS)).unbind(-4)
        if base is not None:
            means = means + base[..., None]
        return Mixture(weights.log_softmax(dim=-1), means, (scales - 1).clamp(*_LOG_SCALES))
