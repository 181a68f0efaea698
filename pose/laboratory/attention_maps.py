"""What a trained lifter's frames look at: the maps of its heads, and figures of them.

Axes: L layer, B batch, H head, T query, S key.
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor

from pose.lifter.features import Observations
from pose.lifter.model import Block, LifterNetwork


def attention_maps(network: LifterNetwork, observations: Observations, times: Tensor) -> Tensor:
    """(L, B, H, T, S) for observations (B, T) at `times` (B, T) s. Raises ValueError where the network's mechanism has
    no maps."""
    maps: list[Tensor] = []

    def keep(attention: torch.nn.Module, arguments: tuple[Tensor, object]) -> None:
        maps.append(attention.weights(*arguments))  # type: ignore[operator]

    layers = [cast(Block, block).attention for block in network.blocks]
    handles = [layer.register_forward_pre_hook(keep) for layer in layers]
    try:
        with torch.inference_mode():
            network(observations, times)
    finally:
        for handle in handles:
            handle.remove()
    return torch.stack(maps)


@dataclass(frozen=True, slots=True)
class HeadFigures:
    """Of each head, (L, H), means over queries. entropy: bits. seen: 2^entropy, as many frames as would be seen if all
    counted alike. reach: mean distance in time of what is seen, s. near: share of the weight within `NEAR` seconds.
    rank: how many singular values hold 90 % of the map's sum of them."""

    entropy: Tensor
    seen: Tensor
    reach: Tensor
    near: Tensor
    rank: Tensor


NEAR = 0.15
RANK_SHARE = 0.9


def head_figures(maps: Tensor, times: Tensor) -> HeadFigures:
    """maps: (L, B, H, T, S). times: (B, T) s. Weights that subtract count by their size."""
    shares = _shares(maps)
    entropy = -torch.special.xlogy(shares, shares).sum(dim=-1) / math.log(2)
    apart = (times[:, :, None] - times[:, None, :]).abs()[:, None].to(shares.dtype)
    near = (shares * (apart <= NEAR)).sum(dim=-1)
    values = torch.linalg.svdvals(maps.float())
    held = values.cumsum(dim=-1) / values.sum(dim=-1, keepdim=True).clamp_min(1e-12)
    rank = 1 + (held < RANK_SHARE).sum(dim=-1)
    reach = (shares * apart).sum(dim=-1)
    entropy, seen, reach, near = (part.mean(dim=(1, 3)) for part in (entropy, entropy.exp2(), reach, near))
    return HeadFigures(entropy, seen, reach, near, rank.float().mean(dim=1))


def neighbours_apart(maps: Tensor) -> Tensor:
    """(L - 1, H, H): mean Jensen-Shannon distance (base 2: 0 to 1) of each head of a layer to each of the next."""
    shares = _shares(maps)
    return torch.stack([_jensen_shannon(one, other) for one, other in pairwise(shares)])


def _jensen_shannon(one_BHTS: Tensor, other_BHTS: Tensor) -> Tensor:
    """(H, H): the divergence of each pair's rows, its root, and the mean of these."""
    p, q = one_BHTS[:, :, None], other_BHTS[:, None]
    middle = (p + q) / 2

    def surprise(x: Tensor) -> Tensor:
        return (torch.special.xlogy(x, x) - torch.special.xlogy(x, middle)).sum(dim=-1)

    divergence = (surprise(p) + surprise(q)) / (2 * math.log(2))
    return divergence.clamp(0, 1).sqrt().mean(dim=(0, 3))


def _shares(maps: Tensor) -> Tensor:
    """The size of each weight as a share of its row; rows of zeros stay so."""
    sizes = maps.abs()
    return sizes / sizes.sum(dim=-1, keepdim=True).clamp_min(1e-12)
