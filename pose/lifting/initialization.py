"""Initialisation of the lifter's weights, and which methods require normalisation.

T-Fixup (Huang et al., 2020) and DT-Fixup (Xu et al., 2021) scale the matrices of each residual branch by the depth. One
optimiser step then changes the output by the same amount at any depth, so neither LayerNorm nor a warm-up of the
learning rate is needed. The theory covers softmax attention; for other mechanisms it is a heuristic.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn


class Network(Protocol):
    """Network that can be initialised. Its blocks have the layers `attention`, `ffn.fc1` and `ffn.fc2`.

    `attention` has separate linear layers `v_proj` and `out_proj` for values and output. A block may also have `cross`,
    the attention to another sequence, with the same two layers.
    """

    @property
    def embed(self) -> nn.Module:
        """The layer that maps features to tokens."""

    @property
    def blocks(self) -> nn.ModuleList:
        """The blocks, first to last."""


def initialize(network: Network, init: str, features: Tensor | None = None) -> None:
    """Draw all weights of embedding and blocks; T-Fixup and DT-Fixup measure tokens on `features` (..., F)."""
    _INITIALIZERS[init](network, features)


def initialize_decoder(decoder: Network, init: str) -> None:
    """Initialise a decoder of N blocks with three residual branches each. T-Fixup scales the branches by (9 N)^(-1/4).

    Raises:
        ValueError: If `init` is DT-Fixup, which is derived for encoders only.
    """
    if init == "dt-fixup":
        raise ValueError("init: dt-fixup is derived for encoders and has no factor for a decoder; use t-fixup")
    if not init.startswith("t-fixup"):
        initialize(decoder, init)
        return
    with torch.no_grad():
        _xavier(decoder, None)
        factor = (9 * len(decoder.blocks)) ** -0.25
        _scale_branches(decoder, factor)
        embed = cast(nn.Linear, decoder.embed)
        nn.init.normal_(embed.weight, std=factor * embed.in_features**-0.5)


@torch.no_grad()
def _xavier(network: Network, features: Tensor | None) -> None:
    for module in (network.embed, *network.blocks.modules()):
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            if module.bias is not None:
                nn.init.zeros_(module.bias)


@torch.no_grad()
def _t_fixup(network: Network, features: Tensor | None, *, centred: bool = False) -> None:
    """Apply T-Fixup to an encoder of N blocks; `centred` scales tokens by their deviation from their mean token."""
    # The factor of value, output and feed-forward matrices is 0.67 N^(-1/4). The tokens are scaled to a root mean
    # square, or standard deviation, of (9 N)^(-1/4).
    _xavier(network, features)
    depth = len(network.blocks)
    _scale_branches(network, 0.67 * depth**-0.25)
    embed = cast(nn.Linear, network.embed)
    nn.init.normal_(embed.weight, std=embed.in_features**-0.5)
    size: Tensor | float = 1.0
    if features is not None:
        tokens = embed(features).flatten(0, -2)
        size = (tokens - tokens.mean(dim=0) if centred else tokens).square().mean().sqrt()
    embed.weight *= (9 * depth) ** -0.25 / size


@torch.no_grad()
def _dt_fixup(network: Network, features: Tensor | None) -> None:
    """Apply DT-Fixup to an encoder of N blocks."""
    # The factor of value, output and feed-forward matrices is (N (4 mu^2 + 2 mu + 2))^(-1/2), where mu is the largest
    # norm of a token at the input of the first block.
    _xavier(network, features)
    if features is None:
        features = torch.randn(1024, cast(nn.Linear, network.embed).in_features)
    mu = network.embed(features).norm(dim=-1).max().item()
    _scale_branches(network, (len(network.blocks) * (4 * mu**2 + 2 * mu + 2)) ** -0.5)


def _scale_branches(network: Network, scale: float) -> None:
    if any(isinstance(module, nn.LayerNorm) for module in cast(nn.Module, network).modules()):
        raise ValueError("T-Fixup and DT-Fixup need a network without LayerNorm")
    for block in dict.fromkeys(cast(Iterable[Any], network.blocks)):  # only once if blocks share it
        mixers = [mixer for mixer in (block.attention, getattr(block, "cross", None)) if mixer is not None]
        branch = [linear for mixer in mixers for linear in _values_and_output(mixer)]
        for linear in (*branch, block.ffn.fc1, block.ffn.fc2):
            linear.weight *= scale


def _values_and_output(mixer: nn.Module) -> list[nn.Linear]:
    linears: dict[str, nn.Linear] = {}
    for name, module in mixer.named_modules():
        if isinstance(module, nn.Linear):
            linears.setdefault(name.rpartition(".")[2], module)  # outer layers come first
    if linears and "out_proj" not in linears:
        raise ValueError(
            f"init: T-Fixup scales the layer out_proj of a mechanism, but {type(mixer).__name__} has no out_proj. "
            "Give its output layer this name, or use init: xavier"
        )
    return [linears[name] for name in ("v_proj", "global_v_proj", "transform", "out_proj") if name in linears]


_INITIALIZERS: dict[str, Callable[[Network, Tensor | None], None]] = {
    "t-fixup": _t_fixup,
    "t-fixup-centred": partial(_t_fixup, centred=True),
    "dt-fixup": _dt_fixup,
    "xavier": _xavier,
    "torch": lambda network, features: None,
}
