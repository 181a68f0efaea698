"""A blend of a one-shot decoder and a residual MLP."""

from dataclasses import replace

import torch
from torch import Tensor, nn

from pose.forecast.baseline_networks import ResidualMLP
from pose.forecast.config import ForecasterConfig
from pose.forecast.decoder import OneShot
from pose.forecast.format import POINTS
from pose.forecast.network import Displacements, ForecasterNetwork, between_steps
from pose.lifter.blocks import PreciseLinear

_USUAL = ForecasterConfig()


class Blended(ForecasterNetwork):
    """Forecaster whose output is a weighted mean of those of a one-shot decoder and of a residual MLP.

    The decoder predicts the weight w of its own output for every point and time; the MLP has the weight 1 - w. Both
    weights are initialised to one half.
    """

    def __init__(self, config: ForecasterConfig) -> None:
        super().__init__(config)
        alone = replace(config, kind="one-shot", mlp_dim=_USUAL.mlp_dim, mlp_depth=_USUAL.mlp_depth)
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
        own, other = self.decoding.read(tokens, past, ahead), between_steps(self.trend.predict(past), ahead)
        share = torch.sigmoid(self.trust(self.decoding.head.norm(tokens)).float())
        places = other.places + share.index_select(-1, self.point) * (own.places - other.places)
        return Displacements(places, other.log_sigma + share * (own.log_sigma - other.log_sigma))
