"""A blend of a one-shot decoder and a residual MLP."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from pose.lifting.blocks import PreciseLinear
from pose.lifting.forecast.config import ForecasterConfig
from pose.lifting.forecast.decoder import OneShot
from pose.lifting.forecast.format import POINTS
from pose.lifting.forecast.network import Displacements, ForecasterNetwork, interpolate_steps
from pose.lifting.forecast.residual_mlp import ResidualMLP

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
