"""A blend of a one-shot decoder and a residual MLP, which is also a baseline."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from pose.lifting.blocks import PreciseLinear
from pose.lifting.forecast.config import FEATURES, PAST_STEPS, POINTS, ForecasterConfig
from pose.lifting.forecast.decoder import OneShot
from pose.lifting.forecast.network import Displacements, ForecasterNetwork, Head, interpolate_steps, step_times

_DEFAULTS = ForecasterConfig()


class Blended(ForecasterNetwork):
    """Forecaster whose output is a weighted mean of those of a one-shot decoder and of a residual MLP.

    The decoder predicts the weight w of its own output for every point and time; the MLP has the weight 1 - w. Both
    weights are initialised to one half.
    """

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__(config)
        alone = replace(config, kind="one-shot", mlp_dim=_DEFAULTS.mlp_dim, mlp_depth=_DEFAULTS.mlp_depth)
        self.decoding = OneShot(alone)
        self.trend = ResidualMLP(config.mlp)
        self.trust: nn.Linear = PreciseLinear(config.dim, POINTS)
        self.point: Tensor
        self.register_buffer("point", torch.arange(POINTS).repeat_interleave(3), persistent=False)
        nn.init.zeros_(self.trust.weight)
        nn.init.zeros_(self.trust.bias)

    def predict(self, past: Tensor, ahead: Tensor | None = None) -> Displacements:
        assert ahead is not None
        tokens = self.decoding.tokens(past, ahead)
        own, other = self.decoding.read(tokens, past, ahead), interpolate_steps(self.trend.predict(past), ahead)
        weight = torch.sigmoid(self.trust(self.decoding.head.norm(tokens)).float())
        displacement = other.displacement + weight.index_select(-1, self.point) * (
            own.displacement - other.displacement
        )
        return Displacements(displacement, other.log_sigma + weight * (own.log_sigma - other.log_sigma))


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
