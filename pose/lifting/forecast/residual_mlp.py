"""Residual MLP forecaster, a part of the blended forecaster and a baseline for transformers."""

import torch
from torch import Tensor, nn

from pose.lifting.blocks import PreciseLinear
from pose.lifting.forecast.config import ForecasterConfig
from pose.lifting.forecast.format import FEATURES, PAST_STEPS
from pose.lifting.forecast.network import Displacements, ForecasterNetwork, Head, step_times


class ResidualMLP(ForecasterNetwork):
    """Residual MLP forecaster after siMLPe (Guo et al., 2023), of displacements from the last frame."""

    # Its blocks mix the coefficients of the cosine transform over time, but not the features.

    predicts_steps = True

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__(config)
        self.cosines: Tensor
        self.register_buffer("cosines", cosine_transform(PAST_STEPS), persistent=False)
        self.embed: nn.Linear = PreciseLinear(FEATURES, config.dim)
        self.blocks = nn.ModuleList(TimeBlock(config.dim) for _ in range(config.depth))
        self.head = Head(config.dim, "none")

    def predict(self, past: Tensor, ahead: Tensor | None = None) -> Displacements:
        x = self.cosines @ self.embed(past)
        for block in self.blocks:
            x = block(x)
        return Displacements(*self.head(self.cosines.mT @ x, step_times(past.device)))

    def scheduled_sampling(
        self, past: Tensor, truth: Tensor, truth_probability: float, generator: torch.Generator
    ) -> Displacements:
        """Return `predict(past)`. The other arguments are not used, because steps do not depend on each other."""
        return self.predict(past)


class TimeBlock(nn.Module):
    """Residual block x + norm(W x), where W mixes the K coefficients of the cosine transform."""

    # W has no bias, because it would be equal for all features and LayerNorm would remove it.

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.mix = nn.Linear(PAST_STEPS, PAST_STEPS, bias=False)
        self.norm = nn.LayerNorm(dim)
        nn.init.xavier_uniform_(self.mix.weight, gain=1e-2)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.mix.weight @ x
        result: Tensor = x + self.norm(y)
        return result


def cosine_transform(length: int) -> Tensor:
    """Return the matrix (K, K) of the orthonormal DCT-II, whose transpose is its inverse, for K = `length`."""
    n = torch.arange(length, dtype=torch.float64)
    cosines = torch.cos(torch.pi * (n + 0.5) * n[:, None] / length) * (2 / length) ** 0.5
    cosines[0] /= 2**0.5
    result: Tensor = cosines.float()
    return result
