"""Networks whose parameters are all at work."""

import torch

from pose.lifting.forecast.build import build_network
from pose.lifting.forecast.config import ForecasterConfig
from pose.lifting.forecast.network import ForecasterNetwork


def stirred(config: ForecasterConfig, by: float) -> ForecasterNetwork:
    """Stirred by noise of so large a deviation, so that nothing is zero by its initialisation."""
    torch.manual_seed(1)
    built = build_network(config)
    for parameter in built.parameters():
        parameter.data += by * torch.randn_like(parameter)
    return built.eval()
