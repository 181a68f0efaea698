"""Study of why a lifter without LayerNorm learns differently.

Each condition changes one property of the tokens before the blocks or of the normalisation after them.
"""

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from pose.lifting.model import LifterNetwork
from pose.training.batches import TensorBatch
from pose.training.laboratory.studies import lifters
from pose.training.laboratory.trial import Outcome, Setup

COLUMNS = {
    "tokens": "tokens' size at first",
    "differs": "of it differs between frames",
    "gt": "exact 2D: MPJPE, mm",
    "gt_aligned": "P-MPJPE, mm",
    "detector": "detector's 2D: MPJPE, mm",
}
LAST_NORMS = ("as it is", "layer", "none")


@dataclass(frozen=True, slots=True, kw_only=True)
class WithoutNormSettings(lifters.LifterSettings):
    """Settings for one condition of a `without-norm` experiment."""

    centred: bool = False  # whether a bias removes the mean of the initial tokens
    token_size: float = 0.0  # root mean square of the initial tokens; 0 keeps that of the initialisation
    last_norm: str = "as it is"  # normalisation before the head

    def __post_init__(self) -> None:
        lifters.LifterSettings.__post_init__(self)
        if self.model.get("model", "transformer") != "transformer" or self.model.get("tokens", "frames") != "frames":
            raise ValueError("model: must be a transformer of frames")
        if self.last_norm not in LAST_NORMS:
            raise ValueError(f"last_norm: {self.last_norm!r} is not one of {', '.join(LAST_NORMS)}")
        if self.token_size < 0:
            raise ValueError(f"token_size: must be at least 0, got {self.token_size}")


def run(settings: WithoutNormSettings, setup: Setup) -> Outcome:
    """Change the initial network as the settings state, then train and measure it.

    Returns:
        The results of `lifters.metrics`. `tokens`: root mean square of the initial tokens. `differs`: root mean square
            of the tokens minus their mean over all frames, divided by `tokens`.
    """
    batches = setup.motion().training(settings.frames, settings.sequences, setup.seed)
    example = TensorBatch.of(batches(0))
    network = lifters.build_lifter(settings, example, setup.seed)
    features = network.features(example.observe(), example.times)[example.valid]
    change(network, settings, features)
    tokens = network.embed(features).detach()
    results = {"tokens": _size(tokens), "differs": _size(tokens - tokens.mean(dim=0)) / _size(tokens)}
    trained = lifters.train(network, batches, settings, setup)
    results |= lifters.metrics(network, trained, settings, setup)
    return Outcome(results, settings.steps, settings.steps * settings.sequences, trained.earlier_seconds)


@torch.no_grad()
def change(network: LifterNetwork, settings: WithoutNormSettings, features: Tensor) -> None:
    """Apply the settings to a network, with inputs (N, F), in place."""
    embed = cast(nn.Linear, network.embed)
    if settings.centred:
        embed.bias.copy_(-embed.weight @ features.mean(dim=0))
    if settings.token_size:
        factor = settings.token_size / _size(embed(features))
        for part in (embed.weight, embed.bias):
            part.mul_(factor)
    if settings.last_norm != "as it is":
        network.norm = nn.LayerNorm(settings.recipe()[0].dim) if settings.last_norm == "layer" else nn.Identity()


def _size(tokens: Tensor) -> float:
    return tokens.square().mean().sqrt().item()
